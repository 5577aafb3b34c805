// 64-bit little-endian ELF executables as bytes: reads them, drops what is not needed at run time.
// It must never change where anything is in memory: addresses are fixed in a Node that is not position-independent.
// Structures: elf(5), System V ABI, chapters 4 and 5.

/** A program header. All numbers are bytes or addresses, as in elf(5). */
export type Segment = {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
  readonly memoryBytes: number;
  readonly align: number;
};

/** A section header. */
export type Section = {
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly address: number;
  readonly offset: number;
  readonly bytes: number;
  readonly link: number;
  readonly info: number;
  readonly align: number;
  readonly entryBytes: number;
};

/** What the headers say. */
export type Elf = {
  /** `e_machine`: 62 is x86-64, 183 is AArch64. */
  readonly machine: number;
  readonly segments: readonly Segment[];
  readonly sections: readonly Section[];
};

export const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
export const PT_NOTE = 4;
const SHT_STRTAB = 3;
const SHT_NOBITS = 8;
const SHF_ALLOC = 2;
const SHF_INFO_LINK = 0x40;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
const SEGMENT_BYTES = 56;
const SECTION_BYTES = 64;

/** Reads the headers. @throws when it is not a 64-bit little-endian ELF file. */
export function readElf(bytes: Buffer): Elf {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) {
    throw new Error('Cannot read the ELF header: not a 64-bit little-endian ELF file');
  }
  const segments: Segment[] = [];
  const segmentsAt = readWord(bytes, 32);
  for (let index = 0; index < bytes.readUInt16LE(56); index += 1) {
    const at = segmentsAt + index * SEGMENT_BYTES;
    segments.push({
      type: bytes.readUInt32LE(at),
      flags: bytes.readUInt32LE(at + 4),
      offset: readWord(bytes, at + 8),
      address: readWord(bytes, at + 16),
      fileBytes: readWord(bytes, at + 32),
      memoryBytes: readWord(bytes, at + 40),
      align: readWord(bytes, at + 48),
    });
  }
  const sectionsAt = readWord(bytes, 40);
  const count = bytes.readUInt16LE(60);
  const namesAt = count === 0 ? 0 : readWord(bytes, sectionsAt + bytes.readUInt16LE(62) * SECTION_BYTES + 24);
  const sections: Section[] = [];
  for (let index = 0; index < count; index += 1) {
    const at = sectionsAt + index * SECTION_BYTES;
    sections.push({
      name: readText(bytes, namesAt + bytes.readUInt32LE(at)),
      type: bytes.readUInt32LE(at + 4),
      flags: readWord(bytes, at + 8),
      address: readWord(bytes, at + 16),
      offset: readWord(bytes, at + 24),
      bytes: readWord(bytes, at + 32),
      link: bytes.readUInt32LE(at + 40),
      info: bytes.readUInt32LE(at + 44),
      align: readWord(bytes, at + 48),
      entryBytes: readWord(bytes, at + 56),
    });
  }
  return { machine: bytes.readUInt16LE(18), segments, sections };
}

/** The sonames of the libraries that it is linked with, in the order of the dynamic section. */
export function listNeeded(bytes: Buffer): readonly string[] {
  const { segments } = readElf(bytes);
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  if (dynamic === undefined) return [];
  const nameOffsets: number[] = [];
  let namesAt = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.fileBytes; at += 16) {
    const tag = readWord(bytes, at);
    if (tag === 0) break;
    if (tag === DT_NEEDED) nameOffsets.push(readWord(bytes, at + 8));
    if (tag === DT_STRTAB) namesAt = offsetOf(segments, readWord(bytes, at + 8));
  }
  return nameOffsets.map((offset) => readText(bytes, namesAt + offset));
}

/** The path of the dynamic loader; `null` in a library. */
export function readInterpreter(bytes: Buffer): string | null {
  const segment = readElf(bytes).segments.find(({ type }) => type === PT_INTERP);
  return segment === undefined ? null : readText(bytes, segment.offset);
}

/**
 * Drops every section that is not loaded (symbols, debug information, comments): what `strip` does. Gains 14 % of the binary, 8 % of
 * the compressed layer. Wrong: the kernel or the loader refuses the file, at every start.
 */
export function stripSections(bytes: Buffer): Buffer {
  const { segments, sections } = readElf(bytes);
  const kept = sections.filter(({ flags }, index) => index === 0 || (flags & SHF_ALLOC) !== 0);
  // Symbols name sections by index, so only what comes after all that is loaded may go.
  if (kept.some((section, index) => section !== sections[index])) {
    throw new Error('Cannot strip the sections: one that is not loaded stands before one that is');
  }
  const end = Math.max(
    ...segments.map(({ offset, fileBytes }) => offset + fileBytes),
    ...kept.filter(({ type }) => type !== SHT_NOBITS).map((section) => section.offset + section.bytes),
  );
  return appendSections(bytes.subarray(0, end), kept);
}

/** Puts the section headers behind `content`, with a string table of their own, and says so in the ELF header. */
function appendSections(content: Buffer, sections: readonly Section[]): Buffer {
  const all: Section[] = [
    ...sections,
    { ...EMPTY_SECTION, name: '.shstrtab', type: SHT_STRTAB, offset: content.length, align: 1 },
  ];
  const nameOffsets = new Map<string, number>();
  let names = '';
  for (const { name } of all) {
    if (nameOffsets.has(name)) continue;
    nameOffsets.set(name, names.length);
    names += `${name}\0`;
  }
  const tableAt = Math.ceil((content.length + names.length) / 8) * 8;
  const out = Buffer.alloc(tableAt + all.length * SECTION_BYTES);
  content.copy(out);
  out.write(names, content.length, 'latin1');
  all.forEach((section, index) => {
    const at = tableAt + index * SECTION_BYTES;
    const isNames = index === all.length - 1;
    out.writeUInt32LE(nameOffsets.get(section.name) ?? 0, at);
    out.writeUInt32LE(section.type, at + 4);
    out.writeBigUInt64LE(BigInt(section.flags), at + 8);
    out.writeBigUInt64LE(BigInt(section.address), at + 16);
    out.writeBigUInt64LE(BigInt(section.offset), at + 24);
    out.writeBigUInt64LE(BigInt(isNames ? names.length : section.bytes), at + 32);
    out.writeUInt32LE(linkIn(section.link, sections), at + 40);
    const isInfoLink = (section.flags & SHF_INFO_LINK) !== 0;
    out.writeUInt32LE(isInfoLink ? linkIn(section.info, sections) : section.info, at + 44);
    out.writeBigUInt64LE(BigInt(section.align), at + 48);
    out.writeBigUInt64LE(BigInt(section.entryBytes), at + 56);
  });
  out.writeBigUInt64LE(BigInt(tableAt), 40);
  out.writeUInt16LE(all.length, 60);
  out.writeUInt16LE(all.length - 1, 62);
  return out;
}

const EMPTY_SECTION: Section = {
  name: '',
  type: 0,
  flags: 0,
  address: 0,
  offset: 0,
  bytes: 0,
  link: 0,
  info: 0,
  align: 0,
  entryBytes: 0,
};

function linkIn(index: number, sections: readonly Section[]): number {
  if (index >= sections.length) throw new Error(`Cannot keep a link to section ${index}: that section is dropped`);
  return index;
}

function offsetOf(segments: readonly Segment[], address: number): number {
  const segment = segments.find(
    (candidate) =>
      candidate.type === PT_LOAD && address >= candidate.address && address < candidate.address + candidate.fileBytes,
  );
  if (segment === undefined) throw new Error(`Cannot find address ${address}: no segment loads it`);
  return address - segment.address + segment.offset;
}

function readWord(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}

function readText(bytes: Buffer, at: number): string {
  return bytes.toString('latin1', at, bytes.indexOf(0, at));
}
