// Reads the recorded answers of real programs (fixtures/recordings) as `curl -i` wrote them.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const FOLDER = new URL('../../fixtures/recordings/', import.meta.url);
const END_OF_HEADERS = '\r\n\r\n';

/** The body of a recorded answer, byte for byte; `path` is below fixtures/recordings. */
export function readRecordedBody(path: string): Buffer {
  const file = readFileSync(new URL(path, FOLDER));
  const answer = path.endsWith('.gz') ? gunzipSync(file) : file;
  const end = answer.indexOf(END_OF_HEADERS);
  if (end === -1) throw new Error(`Cannot read ${path}: it has no end of headers`);
  return answer.subarray(end + END_OF_HEADERS.length);
}

/** A header of a recorded answer; empty: it has none of that name. */
export function readRecordedHeader(path: string, name: string): string {
  const [head = ''] = readFileSync(new URL(path, FOLDER), 'latin1').split(END_OF_HEADERS);
  return new RegExp(`^${name}: *(.*?)\\r?$`, 'im').exec(head)?.[1] ?? '';
}

export function readRecordedText(path: string): string {
  return readFileSync(new URL(path, FOLDER), 'utf8');
}
