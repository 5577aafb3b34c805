// Reads and writes tar archives (POSIX ustar) as bytes. Written ones are the same for the same entries: sorted as given,
// owned by 0:0, one time for all.

/** One entry; `path` is relative, without `./` and without a slash at the end. */
export type Entry =
  | { readonly kind: 'directory'; readonly path: string; readonly mode: number }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly bytes: Buffer }
  | { readonly kind: 'symlink'; readonly path: string; readonly mode: number; readonly target: string };

const BLOCK_BYTES = 512;
const KINDS = { file: '0', symlink: '2', directory: '5' } as const;

/** Writes an archive; `seconds` since 1970 is the time of every entry. @throws when a path is too long for ustar. */
export function writeTar(entries: readonly Entry[], seconds: number): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.kind === 'file' ? entry.bytes : Buffer.alloc(0);
    const path = entry.kind === 'directory' ? `${entry.path}/` : entry.path;
    const target = entry.kind === 'symlink' ? entry.target : '';
    if (Buffer.byteLength(path) > 100 || Buffer.byteLength(target) > 100) {
      throw new Error(`Cannot write ${path} to an archive: its path has more than 100 bytes`);
    }
    const header = Buffer.alloc(BLOCK_BYTES);
    header.write(path, 0);
    header.write(octal(entry.mode, 7), 100);
    header.write(octal(0, 7), 108);
    header.write(octal(0, 7), 116);
    header.write(octal(content.length, 11), 124);
    header.write(octal(seconds, 11), 136);
    header.write('        ', 148);
    header.write(KINDS[entry.kind], 156);
    header.write(target, 157);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const padding = Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES);
    return [header, content, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

/** Reads an archive: files, directories and symbolic links. @throws on any other kind of entry. */
export function readTar(bytes: Buffer): readonly Entry[] {
  const entries: Entry[] = [];
  let longPath: string | null = null;
  for (let at = 0; at + BLOCK_BYTES <= bytes.length && bytes[at] !== 0; ) {
    const text = (from: number, length: number) => {
      const field = bytes.subarray(at + from, at + from + length);
      const end = field.indexOf(0);
      return field.toString('utf8', 0, end === -1 ? length : end);
    };
    const size = Number.parseInt(text(124, 12), 8);
    const content = bytes.subarray(at + BLOCK_BYTES, at + BLOCK_BYTES + size);
    const prefix = text(257, 6) === 'ustar' ? text(345, 155) : '';
    const named: string = longPath ?? (prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`);
    const path = named.replace(/^\.\//, '').replace(/\/$/, '');
    const mode = Number.parseInt(text(100, 8), 8);
    const kind = String.fromCharCode(bytes[at + 156] ?? 0);
    longPath = null;
    // GNU's way to name what has more than 100 bytes, which Debian's packages use.
    if (kind === 'L') longPath = content.toString('utf8').replace(/\0+$/, '');
    else if (kind === KINDS.directory) entries.push({ kind: 'directory', path, mode });
    else if (kind === KINDS.symlink) entries.push({ kind: 'symlink', path, mode, target: text(157, 100) });
    else if (kind === KINDS.file || kind === '\0')
      entries.push({ kind: 'file', path, mode, bytes: Buffer.from(content) });
    else throw new Error(`Cannot read the archive: entry ${path} is of kind "${kind}"; must be a file, folder or link`);
    at += BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
  return entries;
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}
