// A text that may be of any length, for a person: its beginning.

/** The text, or its beginning and `…`: at most `maxLength` UTF-16 units, never half a character of two. */
export function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return `${text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
