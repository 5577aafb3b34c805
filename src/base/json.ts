// Reads JSON of any shape: what is missing or of another kind reads as empty. Pure.

import { orNull } from './parse.ts';

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** Parses a JSON object; null if the text is anything else. */
export function parseObject(text: string): Json | null {
  const value: unknown = orNull(() => JSON.parse(text));
  return isObject(value) ? value : null;
}

/** Whether the value is an object, and no array. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object under a key, or an empty one. */
export function at(object: Json, key: string): Json {
  return toObject(object[key]);
}

/** The object, or an empty one. */
export function toObject(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** The objects of a list. */
export function toObjects(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The text, or a blank one. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The texts of a list; blank ones are left out. */
export function toTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(toText).filter(Boolean) : [];
}

/** The number, or `otherwise`. */
export function toNumber(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
