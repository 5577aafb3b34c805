// Reads in a value of JSON whose shape nobody vouches for: what is not there, or is of another kind, is empty. Pure.

/** An object of JSON. */
export type Json = Readonly<Record<string, unknown>>;

/** The object that a text is; null where it is none. */
export function parseObject(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Whether it is an object, and no array. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object under a key; an empty one where there is none. */
export function at(object: Json, key: string): Json {
  const value = object[key];
  return isObject(value) ? value : {};
}

/** The objects of a list; none where it is no list. */
export function toObjects(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The text; blank where it is none. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The number; `otherwise` where it is none. */
export function toNumber(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
