import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { readPageType } from '../../../src/exposition/format.ts';
import { type Grouping, readPushedText, writePushedFamilies } from '../../../src/exposition/pushed-families.ts';
import { readPushedMessages } from '../../../src/exposition/pushed-messages.ts';
import {
  EMPTY_STORE,
  listFamilies,
  type PushStore,
  readGrouping,
  takePush,
} from '../../../src/front/sources/push-groups.ts';
import { normalizePage, PUSH_CASES, type PushCaseRequest, type PushOutcome } from './push-cases.ts';

/** What a real Pushgateway 1.11.3 answered, built from its sources. */
const RECORDED: Readonly<Record<string, PushOutcome>> = JSON.parse(
  readFileSync('fixtures/recordings/pushgateway/1.11.3.json', 'utf8'),
);
const writePage = (store: PushStore) => [...writePushedFamilies(listFamilies(store))].join('');

/** A request without HTTP. `takenAtMs`: default: everything was taken. */
function send(
  store: PushStore,
  [method, path, body = '', headers = {}]: PushCaseRequest,
  atMs: number,
  takenAtMs = Infinity,
) {
  const grouping = readGrouping(path);
  if (grouping === null || typeof grouping === 'string') return { store, status: grouping === null ? 404 : 400 };
  const bytes = headers['Content-Encoding'] === undefined ? Buffer.from(body) : gunzipSync(body);
  const format = readPageType(headers['Content-Type'] ?? '')?.format ?? 'text';
  const readText = (to: Grouping) => readPushedText(bytes, format === 'protobuf' ? 'text' : format, to);
  const read = format === 'protobuf' ? readPushedMessages(bytes, grouping) : readText(grouping);
  if (method !== 'DELETE' && read.kind === 'unreadable') return { store, status: 400 };
  const kept = method === 'DELETE' || read.kind === 'unreadable' ? null : read;
  const request = { grouping, body: kept, isReplaced: method === 'PUT', atMs, seconds: 1, takenAtMs };
  return takePush(store, request);
}

/** Those of HTTP itself are held against a real Pushgateway in test/pods. */
const isLaw = ({ requests }: { readonly requests: readonly PushCaseRequest[] }) =>
  requests.every(([method, path, body, headers]) => {
    if (!['PUT', 'POST', 'DELETE'].includes(method) || readGrouping(path) === null) return false;
    try {
      return headers?.['Content-Encoding'] === undefined || gunzipSync(body ?? '').length >= 0;
    } catch {
      return false;
    }
  });

for (const { name, requests, ours } of PUSH_CASES.filter(isLaw)) {
  test(`takePush() answers as Pushgateway 1.11.3: ${name}`, () => {
    let store = EMPTY_STORE;
    const statuses = requests.map((request, index) => {
      const result = send(store, request, index + 1);
      ({ store } = result);
      return result.status;
    });
    const recorded = RECORDED[name];
    assert.deepEqual(statuses, ours ?? recorded?.statuses);
    if (ours === undefined) assert.deepEqual(normalizePage(writePage(store)), recorded?.page);
  });
}
