import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ConditionObservation } from '../../src/decide/model.ts';
import { TOMBSTONE_MAX_BYTES, tombstoneKind } from '../../src/observe/tombstone.ts';
import { makeFolder } from '../support/folder.ts';
import { CONTEXT, UNDISTURBED } from './condition-context.ts';

const folder = makeFolder();
const path = join(folder, 'main');

async function observe(text: string | null, at = path): Promise<ConditionObservation> {
  const parsed = tombstoneKind.read(at, CONTEXT);
  assert.ok('value' in parsed);
  assert.deepEqual([parsed.value.text, parsed.value.metricName], [`tombstone:${at}`, null]);
  if (text !== null) writeFileSync(at, text);
  return parsed.value.observe(UNDISTURBED);
}

/** As the README of kubexit shows it. */
const DIED = `Born: "2020-04-28T10:41:46.9926314Z"
Died: "2020-04-28T10:41:47.0498724Z"
ExitCode: 0
`;

const BORN = DIED.slice(0, DIED.indexOf('Died'));

const done = (said: string, exitCode: number | null) => ({
  kind: 'done',
  seen: `tombstone ${path} ${said}`,
  provesWasAlive: true,
  provesNeverRan: false,
  ...(exitCode === null ? {} : { exitCodes: { main: exitCode } }),
});
const alive = { kind: 'alive', seen: `tombstone ${path} born` };
const unknown = (why: string) => ({ kind: 'unknown', why: `tombstone ${path} unknown: ${why}` });
const halfWritten = unknown('it cannot be read (half written?)');
const neverBorn = {
  kind: 'done',
  seen: `tombstone ${path} died, and was never born`,
  provesWasAlive: false,
  provesNeverRan: true,
};

const TOMBSTONES: readonly (readonly [string, string, unknown])[] = [
  ['dead', DIED, done('died, exit code 0', 0)],
  ['dead with an error', DIED.replace(': 0', ': 3'), done('died, exit code 3', 3)],
  ['killed by a signal', DIED.replace(': 0', ': -1'), done('died, exit code -1', -1)],
  ['bare timestamps', DIED.replaceAll('"', ''), done('died, exit code 0', 0)],
  ['single quotes', DIED.replaceAll('"', "'"), done('died, exit code 0', 0)],
  ['a local zone', DIED.replaceAll('Z"', '+02:00"'), done('died, exit code 0', 0)],
  ['lower case', DIED.toLowerCase(), done('died, exit code 0', 0)],
  ['upper case', DIED.toUpperCase(), done('died, exit code 0', 0)],
  ['the exact name before another case', `died: null\n${DIED}`, done('died, exit code 0', 0)],
  ['unknown keys', `Name: main\nLabels: {a: [1]}\n${DIED}`, done('died, exit code 0', 0)],
  [
    'JSON',
    '{\n\t"Born": "2020-04-28T10:41:46Z",\n\t"Died": "2020-04-28T10:41:47Z",\n\t"ExitCode": 137\n}\n',
    done('died, exit code 137', 137),
  ],
  ['CRLF and a comment', `# kubexit\r\n${DIED.replaceAll('\n', '\r\n')}`, done('died, exit code 0', 0)],
  ['no exit code', DIED.replace(/ExitCode.*\n/, ''), done('died', null)],
  ['born', BORN, alive],
  ['a null Died', `${BORN}Died: null\n`, alive],
  ['a blank Died', `${BORN}Died:\n`, alive],
  ['an exit code is no death', `${BORN}ExitCode: 0\n`, alive],
  ['Died in a comment', `${BORN}# Died: "2020-04-28T10:41:47Z"\n`, alive],
  ['never born', 'Died: "2020-04-28T10:41:47Z"\nExitCode: -1\n', neverBorn],
  ['empty', '', halfWritten],
  ['cut in a string', DIED.slice(0, 30), halfWritten],
  ['cut in a name', `${BORN}Di`, halfWritten],
  ['no mapping', '- Died\n', halfWritten],
  ['a text', 'Died', halfWritten],
  ['two documents', `${DIED}---\n${DIED}`, halfWritten],
  [
    'aliases without end',
    `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghij'.replaceAll(/./g, (name) => `${name}: &${name} [${`*${String.fromCharCode(name.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}${DIED}`,
    halfWritten,
  ],
  ['neither', 'ExitCode: 0\n', unknown('it has neither Born nor Died')],
  ['too long', `${DIED}${'#'.repeat(TOMBSTONE_MAX_BYTES)}`, unknown(`it has more than ${TOMBSTONE_MAX_BYTES} bytes`)],
];

for (const [name, text, observation] of TOMBSTONES) {
  test(`observe() at a tombstone: ${name}`, async () => assert.deepEqual(await observe(text), observation));
}

test('observe() never takes a part of a dead tombstone for dead without its whole Died', async () => {
  for (let length = 0; length < DIED.length; length++) {
    const observation = await observe(DIED.slice(0, length));
    const isDiedWhole = length >= DIED.indexOf('ExitCode') - 1;
    assert.ok(observation.kind !== 'done' || isDiedWhole, `${length}: ${JSON.stringify(observation)}`);
  }
});

test('observe() knows nothing of a file that is not there or cannot be read', async () => {
  const missing = join(folder, 'missing');
  assert.deepEqual(await observe(null, missing), { kind: 'notStarted', why: `tombstone ${missing} not there yet` });
  const directory = join(folder, 'directory');
  mkdirSync(directory);
  assert.deepEqual(await observe(null, directory), {
    kind: 'unknown',
    why: `tombstone ${directory} unknown: it is no regular file`,
  });
  const below = join(path, 'below');
  assert.deepEqual(await observe(null, below), { kind: 'unknown', why: `tombstone ${below} unknown: ENOTDIR` });
});

test('read() takes absolute paths', () => {
  for (const each of ['', 'main', './main']) {
    assert.deepEqual(tombstoneKind.read(each, CONTEXT), { problem: 'an absolute path such as "/graveyard/main"' });
  }
});
