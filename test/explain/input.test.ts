// What comes through stdin: each thing that people pipe by mistake has a message that names it and what to type, and an exit code.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXIT } from '../../src/decide/report.ts';
import { INPUT_MAX_BYTES } from '../../src/explain/input.ts';
import { readExplainFixture, runExplain } from './fixture.ts';

const POD = readExplainFixture('succeeded');
const USAGE = '"kubectl get pod NAME --output=json | lastscrape explain"';

/** What stdin has, and the message behind "Cannot explain what stdin has: ". */
const REFUSED: readonly (readonly [what: string, text: string, message: string])[] = [
  [
    'nothing',
    '',
    `stdin is empty; must be a pod's JSON: ${USAGE} (if kubectl found nothing, its own message says why)`,
  ],
  [
    'blanks',
    ' \n',
    `stdin is empty; must be a pod's JSON: ${USAGE} (if kubectl found nothing, its own message says why)`,
  ],
  ['YAML', 'apiVersion: v1\nkind: Pod\n', `it is YAML; must be JSON: ${USAGE}`],
  ['YAML of a list', 'items:\n- a', `it is YAML; must be JSON: ${USAGE}`],
  ['a table', 'NAME   READY   STATUS\nx  1/2 Running', `it is kubectl's table; must be JSON: ${USAGE}`],
  [
    'a description',
    'Name:             x\nNamespace: y',
    `it is what "kubectl describe" prints; must be JSON: ${USAGE}`,
  ],
  [
    'an error',
    'Error from server (NotFound): pods "x" not found',
    `it is an error of kubectl (Error from server (NotFound): pods "x" not found); must be JSON: ${USAGE}`,
  ],
  ['another text', '\u001b[31mhello', `it is not JSON (it begins with "[31mhello"); must be JSON: ${USAGE}`],
  ['a cut pod', POD.slice(0, 500), `it is cut after 500 characters; must be the whole of it: ${USAGE}`],
  ['no object', '[]', 'the list is empty; must be a list with a pod or a Job: check the namespace and the selector'],
  [
    'an empty list',
    '{"kind":"List","items":[]}',
    'the list is empty; must be a list with a pod or a Job: check the namespace and the selector',
  ],
  [
    'a list of others',
    '{"kind":"List","items":[{"kind":"Node"},{"kind":"Node"}]}',
    `the list has no pod or Job, but Node; must be a list with one: ${USAGE}`,
  ],
  ['a part of a pod', '{"kind":"Pod","spec":{}}', `the Pod has no spec.containers; must be the whole object: ${USAGE}`],
  ['a part of a Job', '{"kind":"Job","spec":{}}', `the Job has no spec.template; must be the whole object: ${USAGE}`],
  ['no kind', '{"spec":{}}', `it has no "kind"; must be the whole object that kubectl prints: ${USAGE}`],
  ['a Status', '{"kind":"Status","message":"no"}', 'it is an error of the API server (no); must be a pod or a Job'],
  [
    'a Deployment',
    '{"kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}}}}',
    'it is a Deployment; must be a Pod, a Job or a List of them: "kubectl get pods --selector=app=web --output=json | lastscrape explain"',
  ],
  ['a Service', '{"kind":"Service"}', `it is a Service; must be a Pod, a Job or a List of them: ${USAGE}`],
  [
    'a CronJob',
    '{"kind":"CronJob"}',
    'it is a CronJob; must be a Job that it made, or a pod: "kubectl get jobs --output=json | lastscrape explain"',
  ],
  [
    'a LocustTest',
    '{"kind":"LocustTest","metadata":{"name":"load"}}',
    'it is a LocustTest; must be its pod: "kubectl get pods --selector=performance-test-pod-name=load-master --output=json | lastscrape explain"',
  ],
];

for (const [what, text, message] of REFUSED) {
  test(`explain refuses ${what}, and names what to do`, async () => {
    const { code, stdout, stderr } = await runExplain(text);
    assert.deepEqual([code, stdout, stderr], [EXIT.unreadable, '', `Cannot explain what stdin has: ${message}\n`]);
  });
}

test('explain refuses two documents', async () => {
  const { code, stderr } = await runExplain(`${POD}${POD}`);
  assert.equal(code, EXIT.unreadable);
  assert.match(stderr, /it is not JSON \(.+\); must be one document of JSON: /);
});

test('explain refuses a pod cut at any length', async () => {
  for (let length = 1; length < POD.trimEnd().length; length += 97) {
    const { code, stdout } = await runExplain(POD.slice(0, length));
    assert.deepEqual([code, stdout], [EXIT.unreadable, ''], `${length}`);
  }
});

test('explain refuses what is too long, and reads no further', async () => {
  let readCount = 0;
  async function* read() {
    for (;;) {
      readCount++;
      yield new Uint8Array(1024 * 1024);
    }
  }
  const pieces = { [Symbol.iterator]: () => assert.fail('it is read as it comes'), [Symbol.asyncIterator]: read };
  const { code, stderr } = await runExplain(pieces as unknown as readonly Uint8Array[]);
  assert.equal(code, EXIT.unreadable);
  assert.match(stderr, /it is longer than 8 MiB; must be fewer objects: name one pod, or add --selector/);
  assert.equal(readCount, INPUT_MAX_BYTES / 1024 / 1024 + 1);
});

test('explain tells of a stdin that cannot be read', async () => {
  const read = () => ({
    next: () => Promise.reject(Object.assign(new Error('is a directory'), { code: 'EISDIR' })),
  });
  const pieces = { [Symbol.iterator]: () => assert.fail('it is read as it comes'), [Symbol.asyncIterator]: read };
  const { code, stderr } = await runExplain(pieces as unknown as readonly string[]);
  assert.deepEqual(
    [code, stderr],
    [EXIT.unreadable, `Cannot explain what stdin has: it cannot be read (EISDIR); must be a pod's JSON: ${USAGE}\n`],
  );
});

test('explain refuses a terminal as wrong usage, and does not wait for it', async () => {
  const { code, stderr } = await runExplain('', { isTTY: true });
  assert.deepEqual(
    [code, stderr],
    [EXIT.usage, `Cannot explain what stdin has: it is a terminal; must be a pod's JSON: ${USAGE}\n`],
  );
});

test('explain refuses arguments, and names how a file is read', async () => {
  for (const rest of ['pod.json', '--yaml']) {
    const { code, stderr } = await runExplain(POD, { argv: ['explain', rest] });
    assert.equal(code, EXIT.usage);
    assert.equal(
      stderr,
      `Cannot read the command line: it is "explain ${rest}"; must be "explain" or "explain --json", and reads stdin: "lastscrape explain < FILE"\n`,
    );
  }
});

test('explain reads UTF-16 and a byte order mark, as PowerShell pipes them, bytes in any pieces, and bare arrays', async () => {
  const { stdout: wanted } = await runExplain(POD);
  assert.match(wanted, /^Nothing keeps pod default\/done-/);
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(POD, 'utf16le')]);
  const bytes = [...Buffer.from(POD, 'utf8')].map((byte) => new Uint8Array([byte]));
  for (const input of [[utf16], [`\ufeff${POD}`], bytes, `[${POD}]`]) {
    assert.equal((await runExplain(input)).stdout, wanted);
  }
});

test('explain takes a PodList of the API, whose items have no kind', async () => {
  const { kind: _, apiVersion: _version, ...item } = JSON.parse(POD);
  const { code, stdout } = await runExplain(JSON.stringify({ kind: 'PodList', items: [item] }));
  assert.deepEqual([code, stdout], [0, (await runExplain(POD)).stdout]);
});

test('explain prints nothing of a hostile pod that could move a cursor', async () => {
  const text = readExplainFixture('image').replaceAll('registry.invalid/none:1', 'x\\u001b[2J\\u202ey\\r\\nz');
  const { stdout } = await runExplain(text);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  assert.equal(/[\u0000-\u0009\u000b-\u001f\u007f\u202e]/.test(stdout), false, JSON.stringify(stdout));
});
