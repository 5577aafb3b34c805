// What comes through stdin: each thing piped by mistake has a message that names it, and an exit code.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXIT } from '../../src/decide/quit/exit-codes.ts';
import { INPUT_MAX_BYTES } from '../../src/explain/input.ts';
import { EXPLAIN_STATES, readExplainFixture, readMoment, runExplain } from './fixture.ts';

const POD = readExplainFixture('succeeded');
const USAGE = '"kubectl get pod NAME --output=json | lastscrape explain"';

const MUST = `must be the JSON of pods or Jobs, 8 MiB at most: ${USAGE}`;
const NOT_FOUND = 'Error from server (NotFound): pods "x" not found';
const STATUS = '{"kind":"Status","message":"no"}';

/** What stdin has, and what is wrong with it. */
const REFUSED: readonly (readonly [text: string, is: string])[] = [
  ...['', ' \n'].map((text) => [text, 'it is empty (if kubectl found nothing, its own message says why)'] as const),
  ...(
    [
      ['apiVersion: v1\nkind: Pod\n', 'apiVersion: v1 kind: Pod'],
      [NOT_FOUND, NOT_FOUND],
      ['\u001b[31mhello', '[31mhello'],
      [`${STATUS}${STATUS}`, `${STATUS}${STATUS}`.slice(0, 59).concat('…')],
    ] as const
  ).map(
    ([text, shown]) => [text, `it is not one whole JSON document (it begins with ${JSON.stringify(shown)})`] as const,
  ),
  ...(
    [
      ['[]', 'nothing'],
      ['{"kind":"List","items":[]}', 'nothing'],
      ['{"kind":"List","items":[{"kind":"Node"},{"kind":"Node"},{"kind":"A"}]}', 'Node, A'],
      ['{"kind":"Pod","spec":{}}', 'Pod'],
      ['{"kind":"Job","spec":{}}', 'Job'],
      ['{"spec":{}}', 'an object without a kind'],
      [STATUS, 'Status (no)'],
    ] as const
  ).map(([text, found]) => [text, `it has no whole pod or Job, but ${found}`] as const),
];

for (const [text, is] of REFUSED) {
  test(`explain refuses ${JSON.stringify(text.slice(0, 60))}, and names what to do`, async () => {
    const { code, stdout, stderr } = await runExplain(text);
    assert.deepEqual([code, stdout, stderr], [EXIT.unreadable, '', `Cannot explain what stdin has: ${is}; ${MUST}\n`]);
  });
}

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
  assert.match(stderr, /it is too long; name one pod, or add --selector; must be /);
  assert.equal(readCount, INPUT_MAX_BYTES / 1024 / 1024 + 1);
});

test('explain reports a stdin that cannot be read, and refuses a terminal as wrong usage, without waiting for it', async () => {
  const read = () => ({ next: () => Promise.reject(Object.assign(new Error('is a directory'), { code: 'EISDIR' })) });
  const pieces = { [Symbol.iterator]: () => assert.fail('it is read as it comes'), [Symbol.asyncIterator]: read };
  const unread = await runExplain(pieces as unknown as readonly string[]);
  const says = (is: string) => `Cannot explain what stdin has: ${is}; ${MUST}\n`;
  assert.deepEqual([unread.code, unread.stderr], [EXIT.unreadable, says('it cannot be read (EISDIR)')]);
  const { code, stderr } = await runExplain('', { isTTY: true });
  assert.deepEqual([code, stderr], [EXIT.usage, says('it is a terminal')]);
});

test('explain refuses arguments, and names how a file is read', async () => {
  for (const rest of ['pod.json', '--yaml']) {
    const { code, stderr } = await runExplain(POD, { argv: ['explain', rest] });
    assert.equal(code, EXIT.usage);
    assert.equal(
      stderr,
      `Cannot read the command line: it is "explain ${rest}"; must be "explain", with --json or --targets FILE, and reads stdin: "lastscrape explain < FILE"\n`,
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

test('explain prints nothing of a hostile object that could move a cursor or begin a line', async () => {
  for (const name of EXPLAIN_STATES.map(({ name }) => name)) {
    const text = readExplainFixture(name);
    let isMore = true;
    for (let wanted = 0; isMore; wanted++) {
      let index = 0;
      const hostile = JSON.parse(text, (_, value) => {
        if (typeof value !== 'string' && typeof value !== 'number') return value;
        return index++ === wanted ? `${value}\u001b[2J\u202ey\r\nz` : value;
      });
      isMore = index > wanted;
      const { stdout, stderr } = await runExplain(JSON.stringify(hostile), { nowMs: readMoment(name) });
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      const found = /[\u0000-\u0009\u000b-\u001f\u007f\u202e]|^z/m.exec(stdout + stderr);
      assert.equal(found, null, `${name} ${wanted}: ${JSON.stringify(stdout + stderr)}`);
    }
  }
});
