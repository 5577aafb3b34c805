// Reads configuration values: a variable, the result of reading one, port numbers, hosts of loopback; and
// anything whose reader throws. Pure.

/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The text of a variable; blank where it is not set. */
export function readVariable(env: Environment, name: string): string {
  return env[name]?.trim() ?? '';
}

/** The value, or what the text must be: the end of the sentence "must be …". */
export type ParseResult<Value> = { readonly value: Value } | { readonly problem: string };
/** Reads the text of a value. */
export type Parse<Value> = (text: string) => ParseResult<Value>;

/** What `read` returns; null where it throws. */
export function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** A host of loopback, as in a URL or without its brackets. */
export const LOOPBACK = /^(localhost|127\..*|\[?::1\]?)$/;

/** The name of a container (documentation, "Object Names and IDs": RFC 1123 label). */
export const CONTAINER_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

const PORT_MAX = 65_535;

/** Whether the digits are a port from 1 to 65535. */
export function isPortNumber(digits: string): boolean {
  return /^\d{1,5}$/.test(digits) && Number(digits) >= 1 && Number(digits) <= PORT_MAX;
}
