// Takes out of a Node the data of ICU that lastscrape never reads (29 of 33 MB: locales, collation, converters, word breaks).
// The entries go from the table of contents too, so that ICU finds them missing and falls back to English, as it does where
// they were never built in. Zeros stay in its place: gains 28 % of the compressed layer, and nothing of the binary.
// Wrong: what asks for a missing entry gets English, or an error of Intl; test/image/node.test.ts has what V8 and Node can come to.
// Format: icu/source/common/ucmndata.h (UDataOffsetTOC), ICU 78 in Node 24.21.0.

/** UDataInfo behind the size of the header: magic, its own size, little endian, ASCII, 2 bytes a char, "CmnD". */
const SIGNATURE = Buffer.from([0xda, 0x27, 20, 0, 0, 0, 0, 0, 2, 0, 0x43, 0x6d, 0x6e, 0x44]);

/**
 * What stays: what has no locale, and the root locale and English in each tree: about what Node's own small-icu build has
 * (tools/icu/icu_small.json in its source). So Intl still works, in English, should code ever come to it: without these V8
 * ends the process. What goes: other locales, converters of old charsets, dictionaries, transliteration, names of characters.
 */
function isKept(path: string): boolean {
  const [, tree = '', name = ''] = /^[^/]+\/(?:(\w+)\/)?([^/]+)$/.exec(path) ?? [];
  if (tree === 'translit' || /\.(cnv|dict|spp|cfu)$/.test(name) || name === 'unames.icu') return false;
  if (tree === '') return !/^[a-z]{2,3}(_\w+)?\.res$/.test(name) || KEPT_LOCALES.test(name);
  return /\.(brk|icu)$/.test(name) || KEPT_LOCALES.test(name);
}

const KEPT_LOCALES = /^(root|en|en_US|pool|res_index)\.res$/;

/** Below this count the table that was found is not the one of Node: refuse to guess. */
const LEAST_ITEM_COUNT = 1000;

type Item = { readonly name: string; readonly nameOffset: number; readonly start: number; readonly end: number };

/** Takes it out of `bytes`, in place. @throws when the data is not there or not as expected. */
export function blankIcu(bytes: Buffer): void {
  const table = findTable(bytes);
  const items = readItems(bytes, table);
  const last = items.at(-1);
  if (last === undefined || items.length < LEAST_ITEM_COUNT) {
    throw new Error(`Cannot blank the data of ICU: the table has ${items.length} items; Node's has some thousands`);
  }
  const kept = items.filter(({ name }) => isKept(name));
  if (kept.length < 50) throw new Error(`Cannot blank the data of ICU: only ${kept.length} items to keep`);

  // The names stay where they are, behind the whole table; the data moves together behind them.
  const namesEnd = items[0]?.start ?? 0;
  const contents = kept.map(({ start, end }) => Buffer.from(bytes.subarray(table + start, table + end)));
  bytes.fill(0, table + namesEnd, table + last.start);
  bytes.fill(0, table + 4, table + 4 + items.length * 8);
  bytes.writeUInt32LE(kept.length, table);
  let offset = namesEnd;
  kept.forEach((item, index) => {
    const content = contents[index] as Buffer;
    bytes.writeUInt32LE(item.nameOffset, table + 4 + index * 8);
    bytes.writeUInt32LE(offset, table + 8 + index * 8);
    content.copy(bytes, table + offset);
    // ICU aligns each item to 16 bytes; the length of one is the distance to the next.
    offset += Math.ceil(content.length / 16) * 16;
  });
}

/** The names of all items that `bytes` has. */
export function listIcuItems(bytes: Buffer): readonly string[] {
  return readItems(bytes, findTable(bytes)).map(({ name }) => name);
}

function findTable(bytes: Buffer): number {
  const at = bytes.indexOf(SIGNATURE);
  if (at < 2 || bytes.indexOf(SIGNATURE, at + 1) !== -1) {
    throw new Error('Cannot find the data of ICU: its signature must be there exactly once');
  }
  return at - 2 + bytes.readUInt16LE(at - 2);
}

// The end of the last is not known: it is its start.
function readItems(bytes: Buffer, table: number): readonly Item[] {
  const count = bytes.readUInt32LE(table);
  const startOf = (index: number) => bytes.readUInt32LE(table + 8 + index * 8);
  return Array.from({ length: count }, (_, index) => {
    const nameOffset = bytes.readUInt32LE(table + 4 + index * 8);
    const nameAt = table + nameOffset;
    const start = startOf(index);
    return {
      name: bytes.toString('latin1', nameAt, bytes.indexOf(0, nameAt)),
      nameOffset,
      start,
      end: index + 1 < count ? startOf(index + 1) : start,
    };
  });
}
