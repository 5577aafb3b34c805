// Hands the last pages over to a keeper: one request with the pages of every format, and whose they are; and
// takes them back. Imported only where one is set. Decides nothing: what follows is the rules' to say.

import { prepareSmallFile } from '../base/mounted-file.ts';
import { type Environment, orNull, readVariable } from '../base/parse.ts';
import type { HandOver } from '../decide/keep/targets.ts';
import type { HandOverResult } from '../decide/state.ts';
import { findIdentity, findIdentitySources, HEAD_MAX_BYTES } from '../pod/identity.ts';
import { readOwnContainer } from '../pod/pod-status.ts';
import { describeResult, openDelivery } from './deliver.ts';

/** One format of the last page. `read` gives all its bytes, in pieces valid until the next is asked for. */
export type HandedPage = HandOver['formats'][number] & { readonly read: () => AsyncIterable<Uint8Array> };

/** Of which pod, and to which keeper. */
export type KeeperParts = {
  readonly url: URL;
  readonly env: Environment;
  /** Of `token`, `labels` and `annotations`; what is not there is left out. */
  readonly folder: string;
  readonly target: HandOver['target'];
  /** Ends it; the reason is a string. */
  readonly signal: AbortSignal;
};

/** What is asked of a keeper: each sends who the pod is, and only the first one its pages. */
const REQUESTS = {
  handOver: { method: 'POST', path: '/hand-over', wanted: 201 },
  check: { method: 'POST', path: '/hand-over/check', wanted: 200 },
  withdraw: { method: 'DELETE', path: '/hand-over', wanted: 200 },
} as const;

const FILE_TIMEOUT_MS = 500;
/** The API server takes 256 KiB of annotations. */
const FILE_MAX_BYTES = 512 * 1024;
/** Longer values are no labels: kubectl's last-applied-configuration, for one. */
const ANNOTATION_MAX_LENGTH = 512;
/** Added by the kubelet, which the API server and Prometheus do not have (seen with Kubernetes 1.36.3). */
const KUBELETS_OWN = /^kubernetes\.io\/config\./;
/** The signal comes before. */
const TIMEOUT_MS = 60_000;

/** Hands over; accepted once the keeper has it on its disk. Never rejects. */
export async function handOver(
  to: KeeperParts,
  { pages, endedAtSeconds }: { readonly pages: readonly HandedPage[]; readonly endedAtSeconds: number },
): Promise<HandOverResult> {
  if (pages.length === 0) return { kind: 'failed', why: 'no page was kept' };
  return ask('handOver', to, { pages, endedAtSeconds });
}

/** A page of which a keeper learns only that there is one. */
const SOME_PAGE: HandedPage = { accept: '', contentType: 'text/plain', sizeBytes: 1, async *read() {} };

/** Asks whether a page of this pod would be taken, or has the keeper forget what it has. Never rejects. */
export function askKeeper(what: 'check' | 'withdraw', to: KeeperParts): Promise<HandOverResult> {
  return ask(what, to, { pages: [SOME_PAGE], endedAtSeconds: 0 });
}

async function ask(
  what: keyof typeof REQUESTS,
  { url, env, folder, target, signal }: KeeperParts,
  { pages, endedAtSeconds }: Parameters<typeof handOver>[1],
): Promise<HandOverResult> {
  const { method, path, wanted } = REQUESTS[what];
  const formats = pages.map(({ accept, contentType, sizeBytes }) => ({ accept, contentType, sizeBytes }));
  const pod = await readPod(env, folder);
  const { line, leftOutCount } = writeLine({ pod, target, endedAtSeconds, formats }, HEAD_MAX_BYTES);
  const sent = what === 'handOver' ? pages : [];
  async function* write(): AsyncGenerator<Uint8Array> {
    yield line;
    // The client keeps a piece until the kernel takes it.
    for (const { read } of sent) for await (const piece of read()) yield Buffer.from(piece);
  }
  const token = (await readFile(`${folder}/token`)).trim();
  const delivery = openDelivery({ url, headersFile: null, caFile: null });
  const result = await delivery.send({
    method,
    path,
    headers: {
      'content-type': 'application/octet-stream',
      'content-length': `${sent.reduce((sum, { sizeBytes }) => sum + sizeBytes, line.length)}`,
      ...(token !== '' && { authorization: `Bearer ${token}` }),
    },
    body: write(),
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  await delivery.close();
  return result.kind === 'answered' && result.status === wanted
    ? { kind: 'accepted', ...(leftOutCount > 0 && { leftOutCount }) }
    : { kind: 'failed', why: describeResult(result) };
}

/** The first line of a hand-over, without the longest annotations where it were too long for a keeper. */
export function writeLine(head: HandOver, maxBytes: number): { readonly line: Buffer; readonly leftOutCount: number } {
  const byLength = Object.entries(head.pod.annotations).toSorted(
    ([name, value], [otherName, other]) => other.length + otherName.length - value.length - name.length,
  );
  for (let leftOutCount = 0; ; leftOutCount++) {
    const pod = { ...head.pod, annotations: Object.fromEntries(byLength.slice(leftOutCount)) };
    const line = Buffer.from(`${JSON.stringify({ ...head, pod })}\n`);
    if (line.length <= maxBytes || leftOutCount === byLength.length) return { line, leftOutCount };
  }
}

async function readPod(env: Environment, folder: string): Promise<HandOver['pod']> {
  const [identity, labels, annotations, mounts] = await Promise.all([
    findIdentity(findIdentitySources(env)),
    readFile(`${folder}/labels`),
    readFile(`${folder}/annotations`),
    readFile('/proc/self/mountinfo'),
  ]);
  const own = Object.entries(readDownward(annotations)).filter(([name]) => !KUBELETS_OWN.test(name));
  const short = own.filter(([, { length }]) => length <= ANNOTATION_MAX_LENGTH);
  return {
    namespace: identity.namespace ?? '',
    name: identity.pod ?? identity.hostname ?? '',
    uid: readVariable(env, 'POD_UID') || (readOwnContainer(mounts)?.podUid ?? ''),
    ip: readVariable(env, 'POD_IP'),
    node: readVariable(env, 'NODE_NAME'),
    labels: readDownward(labels),
    annotations: Object.fromEntries(short),
  };
}

/** The text of a file; blank where it cannot be read. */
async function readFile(path: string): Promise<string> {
  const file = await prepareSmallFile(path, FILE_MAX_BYTES)({ timeoutMs: FILE_TIMEOUT_MS });
  return 'text' in file ? file.text : '';
}

/** Labels as the kubelet writes them (pkg/fieldpath/fieldpath.go): `name="value"` a line, quoted by Go. */
export function readDownward(text: string): Readonly<Record<string, string>> {
  const entries = text.split('\n').flatMap((line) => {
    const [, name = '', quoted = ''] = /^([^="]+)=(".*")$/.exec(line) ?? [];
    const value = name === '' ? null : unquote(quoted);
    return value === null ? [] : [[name, value]];
  });
  return Object.fromEntries(entries);
}

/** Go has escapes that JSON lacks; null: not a quoted text. */
function unquote(quoted: string): string | null {
  const short: Readonly<Record<string, string>> = { a: '\\u0007', v: '\\u000b' };
  const json = quoted.replaceAll(/\\(?:x([0-9a-f]{2})|U000([0-9a-f]{5})|(.))/g, (all, byte, wide, letter) => {
    if (byte !== undefined) return `\\u00${byte}`;
    if (wide !== undefined) return String.fromCodePoint(Number.parseInt(wide, 16));
    return short[letter] ?? all;
  });
  return orNull(() => String(JSON.parse(json)));
}
