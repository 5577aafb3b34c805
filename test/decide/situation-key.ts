// Tells the situations of the exhaustive checks apart.

const CAP_MS = 100_000;

/**
 * Writes a situation as a number of 53 bits: moments become ages, counters distances from `counter`, and
 * `without` is left out. Two of a million situations share a number once in 18,000 runs.
 */
export function createKeyWriter(without: readonly string[]) {
  const fields = new Map<
    string,
    { readonly number: number; readonly kind: 'left out' | 'moment' | 'counter' | 'other' }
  >();
  let low = 0;
  let high = 0;
  function add(number: number): void {
    low = Math.imul(low ^ number, 0x9e3779b1);
    low ^= low >>> 15;
    high = Math.imul(high ^ number, 0x85ebca6b) + low;
    high ^= high >>> 13;
  }
  function readField(name: string) {
    const known = fields.get(name);
    if (known !== undefined) return known;
    const isMoment = name.endsWith('Ms');
    const kind = without.includes(name)
      ? 'left out'
      : isMoment
        ? 'moment'
        : name === 'finishedCount'
          ? 'counter'
          : 'other';
    const field = { number: 1_000_000 + fields.size, kind } as const;
    fields.set(name, field);
    return field;
  }
  function addObject(value: object, nowMs: number, counter: number): void {
    for (const name in value) {
      const { number, kind } = readField(name);
      if (kind === 'left out') continue;
      const each = (value as Readonly<Record<string, unknown>>)[name];
      add(number);
      if (typeof each === 'object' && each !== null) addObject(each, nowMs, counter);
      else if (typeof each !== 'number') add(readField(String(each)).number);
      else if (kind === 'moment') add(Math.max(-CAP_MS, Math.min(CAP_MS, nowMs - each)));
      else add(kind === 'counter' ? each - counter : each);
    }
    add(-1);
  }
  return (situation: object, nowMs: number, counter: number): number => {
    low = 1;
    high = 2;
    addObject(situation, nowMs, counter);
    return (high >>> 0) * 2 ** 21 + (low >>> 11);
  };
}
