// The head of an answer, read as Go's HTTP client reads it, with which Prometheus scrapes (Go 1.26:
// net/http/response.go and transfer.go, net/textproto/reader.go), and written again for undici, whose parser
// is stricter. Pure.

/** Of the interim answers and the head of the final one. Go reads 10 MB. */
export const HEAD_MAX_BYTES = 1024 * 1024;

/** What is searched at once: most of a piece is the body. */
const SLICE_BYTES = 4096;

/** Reads the heads of one connection. */
export function openHeadReader() {
  // One letter per byte; null: the head was handed on, and what follows it is left alone.
  let head: string | null = '';
  let sizeBytes = 0;
  return {
    /** The next byte is the first of an answer. */
    begin(): void {
      head = '';
      sizeBytes = 0;
    },
    /**
     * What undici is to read instead of this piece; null: nothing until more has come. Leaves interim answers
     * out. @throws where Go's client does not take the head
     */
    take(piece: Buffer): Buffer | null {
      if (head === null) return piece;
      for (let at = 0; at < piece.length; at += SLICE_BYTES) {
        const slice = piece.subarray(at, at + SLICE_BYTES);
        sizeBytes += slice.length;
        // Its end may have begun in the slice before.
        const searchFrom = Math.max(0, head.length - 2);
        let text = skipEmptyLines(head + slice.toString('latin1'));
        for (let end = findEnd(text, searchFrom); end > 0; end = findEnd(text, 0)) {
          const written = rewriteHead(text.slice(0, end));
          text = written === null ? skipEmptyLines(text.slice(end)) : text.slice(end);
          if (written === null) continue;
          head = null;
          return Buffer.concat([Buffer.from(written, 'latin1'), piece.subarray(at + slice.length - text.length)]);
        }
        head = text;
        if (!'HTTP/'.startsWith(head.slice(0, 5))) throw malformed('is not HTTP', head);
        if (sizeBytes > HEAD_MAX_BYTES) throw malformed(`has a head of more than ${HEAD_MAX_BYTES} bytes`, head);
      }
      return null;
    },
  };
}

/** Before a status line: a server may have sent them after its last body. */
function skipEmptyLines(text: string): string {
  return text.replace(/^[\r\n]+/, '');
}

/** Where the head ends that the text begins with; 0: not in this text. */
function findEnd(text: string, searchFrom: number): number {
  const pattern = /\n\r?\n/g;
  pattern.lastIndex = searchFrom;
  return pattern.test(text) ? pattern.lastIndex : 0;
}

const STATUS_LINE = /^HTTP\/(\d)\.(\d) +([1-9]\d\d)(?: |$)/;
/** Go takes a name with spaces as one that means nothing. */
const FIELD = /^([\w!#$%&'*+.^`|~ -]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** The head for undici; null: of an interim answer. @throws as `take` */
function rewriteHead(head: string): string | null {
  const [statusLine = '', ...lines] = head.split('\n').map((line) => line.replace(/\r$/, ''));
  const [, major, minor, status] = STATUS_LINE.exec(statusLine) ?? [];
  if (status === undefined || status === '101') throw malformed('has no status line of an answer', statusLine);
  const isOld = Number(`${major}.${minor}`) < 1.1;
  const fields = readFields(lines.slice(0, -2));
  const encodings = fields.get('transfer-encoding') ?? [];
  const lengths = new Set(fields.get('content-length')?.map(trim));
  if (!isOld && encodings.length > 0 && encodings.join().toLowerCase() !== 'chunked') {
    throw malformed('has an unknown Transfer-Encoding', encodings.join());
  }
  if (lengths.size > 1 || [...lengths].some((each) => !/^\d+$/.test(each) || Number(each) >= 2 ** 63)) {
    throw malformed('has no Content-Length that can be read', [...lengths].join());
  }
  if (status.startsWith('1')) return null;
  const framing = isOld || encodings.length === 0 ? [...lengths].map((each) => `content-length: ${each}`) : [CHUNKED];
  const connection = fields.get('connection')?.map((each) => `connection: ${each}`) ?? [];
  const others = [...fields].filter(([name]) => !OWN.has(name)).map(([name, [first]]) => `${name}: ${first}`);
  return `${[`HTTP/1.${isOld ? 0 : 1} ${status} OK`, ...framing, ...connection, ...others].join('\r\n')}\r\n\r\n`;
}

const CHUNKED = 'transfer-encoding: chunked';
/** What is written by other rules, and what would make undici leave HTTP. */
const OWN = new Set(['connection', 'content-length', 'transfer-encoding', 'trailer', 'upgrade']);

/** The values of each field, in order; its name in lower case. */
function readFields(lines: readonly string[]): Map<string, string[]> {
  const unfolded: string[] = [];
  for (const line of lines) {
    const isFolded = /^[ \t]/.test(line);
    if (isFolded ? unfolded.length === 0 : !line.includes(':')) throw malformed('has a line without a name', line);
    if (isFolded) unfolded.push(`${unfolded.pop()} ${trim(line)}`);
    else unfolded.push(trim(line));
  }
  const fields = new Map<string, string[]>();
  for (const line of unfolded) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) throw malformed('has a line that is no field', line);
    const key = name.toLowerCase();
    if (!name.includes(' ')) fields.set(key, [...(fields.get(key) ?? []), value]);
  }
  return fields;
}

function trim(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '');
}

/** `text`: the part of the head that shows it. */
function malformed(what: string, text: string): Error {
  return new Error(`the answer ${what}: ${JSON.stringify(text.slice(0, 40))}`);
}
