// A hand-over as it comes: a line of JSON, then its pages one after the other. Trusts nothing of it.

import { at, type Json, parseObject, toNumber, toObject, toObjects, toText } from '../base/json.ts';
import { FORMATS_MAX_COUNT, PLAIN_MAX_BYTES, type Refusal } from '../decide/keep/keep.ts';
import type { HandOver } from '../decide/keep/targets.ts';
import { readPageType } from '../exposition/format.ts';
import { HEAD_MAX_BYTES } from '../pod/identity.ts';

/** Why a hand-over is not taken; the message is for the pod's log. */
export class Refused extends Error {
  readonly reason: Refusal;
  constructor(reason: Refusal, detail = '') {
    super(detail);
    this.reason = reason;
  }
}

/** Who the pod is, where that was proven. `node`: empty where it is not known. */
export type ProvenPod = Pick<HandOver['pod'], 'namespace' | 'name' | 'uid' | 'node'>;

/** The body of a hand-over, read part by part. */
export function openBody(pieces: AsyncIterator<Uint8Array>) {
  let left: Buffer = Buffer.alloc(0);
  async function readOn(): Promise<boolean> {
    const { done, value } = await pieces.next();
    if (done !== true) left = Buffer.concat([left, value]);
    return done !== true;
  }
  return {
    /** The line that it begins with. @throws Refused */
    async readLine(): Promise<string> {
      while (!left.includes('\n') && left.length <= HEAD_MAX_BYTES) {
        if (!(await readOn())) throw new Refused('unreadable', 'it ends within its first line');
      }
      const endAt = left.indexOf('\n');
      const isTooLarge = endAt < 0 || endAt > HEAD_MAX_BYTES;
      if (isTooLarge) throw new Refused('tooLarge', `labels and annotations of more than ${HEAD_MAX_BYTES} bytes`);
      const line = left.toString('utf8', 0, endAt);
      left = left.subarray(endAt + 1);
      return line;
    },
    /** The next that many bytes. @throws Refused where it ends before */
    async *read(sizeBytes: number): AsyncGenerator<Uint8Array> {
      for (let gotBytes = 0; gotBytes < sizeBytes; ) {
        if (left.length === 0 && !(await readOn())) throw new Refused('unreadable', 'its pages are cut off');
        const piece = left.subarray(0, sizeBytes - gotBytes);
        left = left.subarray(piece.length);
        gotBytes += piece.length;
        yield piece;
      }
    },
    /** @throws Refused where more came than was read */
    async end(): Promise<void> {
      if (left.length > 0 || (await readOn())) throw new Refused('unreadable', 'its pages are longer than declared');
    },
  };
}

/** The names of objects (documentation, "Object Names and IDs"). */
const OBJECT_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
/** With a "labelmap" `__meta_kubernetes_namespace` would make the page another namespace's. */
const META_NAME = /^[a-zA-Z0-9]([\w./-]*[a-zA-Z0-9])?$/;
const HEADER_VALUE = /^[\x20-\x7e]{0,1000}$/;

/** Reads the first line. `proven`: who the pod is; null: as it says. `address`: its own. @throws Refused */
export function readHandOver(line: string, proven: ProvenPod | null, address: string): HandOver {
  const root = parseObject(line);
  if (root === null) throw new Refused('unreadable', 'its first line is not JSON');
  const [said, target] = [at(root, 'pod'), at(root, 'target')];
  const text = (key: string) => toText(said[key]);
  const named = proven ?? { namespace: text('namespace'), name: text('name'), uid: text('uid'), node: '' };
  const pod = { ...named, ip: text('ip') || address, node: named.node || text('node') };
  if (proven !== null && pod.ip !== address) throw new Refused('otherAddress', `${address} is not ${pod.ip}`);
  const port = toNumber(target['port'], 0);
  const endedAtSeconds = toNumber(root['endedAtSeconds'], -1);
  const listed = toObjects(root['formats']);
  const formats = listed.flatMap(readFormat);
  const rights = {
    'pod.namespace': OBJECT_NAME.test(pod.namespace),
    'pod.name': OBJECT_NAME.test(pod.name),
    'pod.uid': /^[0-9a-zA-Z-]{1,64}$/.test(pod.uid),
    'pod.ip': /^[0-9a-fA-F.:]{2,45}$/.test(pod.ip),
    'target.port': port >= 1 && port <= 65_535,
    endedAtSeconds: endedAtSeconds >= 0 && endedAtSeconds <= Number.MAX_SAFE_INTEGER,
    formats: formats.length >= 1 && formats.length <= FORMATS_MAX_COUNT && formats.length === listed.length,
  };
  const [wrong] = Object.entries(rights).find(([, isRight]) => !isRight) ?? [];
  if (wrong !== undefined) throw new Refused('unreadable', `${wrong} of its first line is missing or wrong`);
  const sizeBytes = formats.reduce((sum, each) => sum + each.sizeBytes, 0);
  if (sizeBytes > PLAIN_MAX_BYTES) throw new Refused('tooLarge', `${sizeBytes} bytes; at most ${PLAIN_MAX_BYTES}`);
  return {
    pod: { ...pod, labels: readTexts(said['labels']), annotations: readTexts(said['annotations']) },
    target: { container: toText(target['container']), portName: toText(target['portName']), port },
    endedAtSeconds,
    formats,
  };
}

function readFormat(format: Json): HandOver['formats'] {
  const [accept, contentType] = [toText(format['accept']), toText(format['contentType'])];
  const sizeBytes = toNumber(format['sizeBytes'], 0);
  const isText = [accept, contentType].every((each) => HEADER_VALUE.test(each));
  const isRight = isText && Number.isSafeInteger(sizeBytes) && sizeBytes >= 1;
  return isRight ? [{ accept, contentType: readPageType(contentType).contentType, sizeBytes }] : [];
}

function readTexts(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(toObject(value)).filter(([name]) => META_NAME.test(name));
  // 16 KB hold thousands of tiny ones, which take 10 ms.
  if (entries.length > 256) throw new Refused('tooLarge', `${entries.length} labels or annotations; at most 256`);
  return Object.fromEntries(entries.filter((each): each is [string, string] => typeof each[1] === 'string'));
}
