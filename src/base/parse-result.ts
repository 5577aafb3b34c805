// The result of reading a configuration value. Pure.

/** The value, or what the text must be: the end of the sentence "must be …". */
export type ParseResult<Value> = { readonly value: Value } | { readonly problem: string };
