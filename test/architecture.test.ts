// Holds the shape of the code (CONTRIBUTING.md): which folder may import which, what the pure parts may not name, and that
// nothing lies about that the program does not reach.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const files = globSync('{src,bin}/**/*.ts', { cwd: ROOT }).filter((file) => !file.endsWith('.d.ts'));

type Import = { readonly from: string; readonly to: string; readonly isType: boolean; readonly isDynamic: boolean };

function listImports(file: string): Import[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const statements = text.matchAll(/^(?:import|export)\s+(type\s)?([^;]*?)\s*from\s+'([^']+)';/gm);
  const bare = [...text.matchAll(/^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm)].map((match) => [
    '',
    undefined,
    'all',
    match[1] ?? match[2],
    match[1] === undefined ? 'dynamic' : undefined,
  ]);
  return [...statements, ...bare].map(([, type, names = '', to = '', dynamic]) => {
    const isType =
      type !== undefined ||
      names
        .replace(/[{}]/g, '')
        .split(',')
        .every((name) => /^\s*(type\s|$)/.test(name));
    const isDynamic = dynamic !== undefined;
    return { from: file, to: to.startsWith('.') ? normalize(join(dirname(file), to)) : to, isType, isDynamic };
  });
}

const imports = files.flatMap(listImports);

/** The part of the program that a file belongs to. */
function findPart(file: string): string {
  const [, folder = '', name] = /^src\/([^/]+)(?:\/(.*))?$/.exec(file) ?? [];
  if (file.startsWith('bin/')) return 'bin';
  return name === undefined ? folder.replace('.ts', '') : folder;
}

/** What a part may import; `type` stands before what it may import types of only. */
const MAY_IMPORT: Readonly<Record<string, { readonly parts: readonly string[]; readonly why: string }>> = {
  decide: { parts: [], why: 'the rules know nothing of the world: no clock, no I/O, no configuration' },
  wire: { parts: [], why: 'bytes become values here, whoever reads them' },
  net: { parts: ['thread-call'], why: 'connections know nothing of what they are for' },
  'end-process': { parts: [], why: 'a leaf: it ends the process, whatever it did' },
  'thread-call': { parts: [], why: 'a leaf: it bounds what may hang, whatever that is' },
  'parse-result': { parts: [], why: 'a leaf' },
  'port-number': { parts: [], why: 'a leaf' },
  redact: { parts: [], why: 'a leaf' },
  version: { parts: [], why: 'a leaf' },
  files: { parts: [], why: 'a leaf' },
  'headers-file': { parts: ['small-file'], why: 'it reads a file, whosever headers it has' },
  'small-file': { parts: ['files', 'thread-call'], why: 'it reads a file, whatever that is for' },
  procfs: { parts: ['files'], why: 'it says what /proc shows, whoever asks' },
  'wait-unless': { parts: [], why: 'a leaf: it waits, whatever for' },
  observe: {
    parts: ['wire', 'net', 'files', 'procfs', 'clock', 'thread-call', 'port-number', 'decide', 'type parse-result'],
    why: 'an observation says what it saw; when to ask a server again is decided in decide/',
  },
  act: {
    parts: ['net', 'files', 'redact', 'procfs', 'port-number', 'thread-call', 'decide', 'type parse-result'],
    why: 'what is done was decided elsewhere',
  },
  log: { parts: ['decide'], why: 'the log writes entries and makes none' },
  'nearest-name': { parts: [], why: 'a leaf' },
  'config-advice': { parts: ['nearest-name'], why: 'it says what was meant, whatever it is used for' },
  'config-entries': {
    parts: ['config-advice', 'decide', 'redact', 'type observe', 'type act', 'type parse-result'],
    why: 'the kinds come in as a parameter',
  },
  'config-values': {
    parts: ['config-advice', 'port-number', 'type decide', 'type parse-result'],
    why: 'a text becomes a value, whatever variable it is of',
  },
  'config-lists': {
    parts: ['config-advice', 'config-entries', 'type parse-result'],
    why: 'how an entry is read comes in as a parameter',
  },
  'config-rows': {
    parts: [
      'config-lists',
      'config-thresholds',
      'config-values',
      'redact',
      'type config-exporter',
      'type observe',
      'type act',
      'type parse-result',
    ],
    why: 'a row says how its own text is read; what several have in common is found in config',
  },
  'config-thresholds': {
    parts: ['config-entries', 'config-lists', 'decide', 'type parse-result'],
    why: 'an entry becomes a threshold, whatever it is judged on',
  },
  'config-exporter': {
    parts: ['config-entries', 'config-values'],
    why: "another program's variables become texts of our own, whatever those are of",
  },
  'config-conflicts': {
    parts: ['config-entries', 'config-values', 'type config-rows'],
    why: 'it goes by what was read, whatever of it was set',
  },
  config: {
    parts: [
      'config-conflicts',
      'config-exporter',
      'config-rows',
      'config-lists',
      'config-values',
      'config-advice',
      'config-entries',
      'decide',
      'type observe',
      'type act',
    ],
    why: 'the kinds come in as a parameter',
  },
  help: { parts: ['config', 'decide', 'type config-rows'], why: 'it prints the table of variables' },
  host: { parts: ['type config'], why: 'what it is made of is up to bin' },
  signals: { parts: ['type host', 'type loop'], why: 'it hears signals, and what they mean is decided elsewhere' },
  'startup-checks': {
    parts: ['decide', 'procfs', 'type config'],
    why: 'it asks what the entries of a configuration say of this pod, and changes nothing',
  },
  inspect: {
    parts: [
      'act',
      'startup-checks',
      'front-check',
      'help',
      'observe',
      'odd-settings',
      'procfs',
      'redact',
      'send',
      'version',
      'config-values',
      'decide',
      'type config',
      'type plan',
    ],
    why: 'it looks at what a run would go by, and changes nothing',
  },
  'front-check': {
    parts: ['serve', 'observe', 'type clock', 'type config-values'],
    why: 'it goes by what a front would do, and serves nothing',
  },
  'odd-settings': {
    parts: ['config-values', 'decide', 'redact', 'type config'],
    why: 'what is odd is told by the configuration and by what answered',
  },
  plan: {
    parts: ['config-values', 'decide', 'redact', 'type config'],
    why: 'it prints a configuration and what was found, whoever found it',
  },
  run: {
    parts: [
      'act',
      'startup-checks',
      'config-values',
      'decide',
      'log',
      'loop',
      'observe',
      'policy',
      'redact',
      'send',
      'serve',
      'wait-unless',
      'version',
      'clock',
      'type config',
      'type host',
      'type signals',
    ],
    why: 'one run is made of parts; which kinds there are, and how they are asked for, is up to main',
  },
  policy: { parts: ['decide', 'type config'], why: 'the configuration as the rules want it' },
  clock: { parts: [], why: 'a leaf: time as a parameter' },
  serve: {
    parts: ['wire', 'net', 'observe', 'decide', 'files', 'thread-call', 'clock', 'headers-file'],
    why: 'bytes are moved here; what a scrape gets is decided in decide/',
  },
  push: { parts: ['wire'], why: 'what a receiver wants, whoever sends it' },
  send: {
    parts: [
      'decide',
      'headers-file',
      'net',
      'push',
      'redact',
      'serve',
      'small-file',
      'type config',
      'type observe',
      'type wire',
    ],
    why: 'who is told, and when, is decided in decide/; what a receiver wants is known in push/',
  },
  explain: {
    parts: ['wire', 'act', 'decide', 'config-values', 'version', 'type host'],
    why: 'it goes by an object that somebody else read from a cluster, and asks nobody',
  },
  loop: { parts: ['clock', 'decide', 'type observe', 'type act'], why: 'it drives interfaces, and main says which' },
};

for (const [part, { parts, why }] of Object.entries(MAY_IMPORT)) {
  test(`${part} imports ${parts.length === 0 ? 'no other part' : `only ${parts.join(', ')}`}`, () => {
    const wrong = imports
      .filter(({ from, to }) => findPart(from) === part && to.startsWith('src/') && findPart(to) !== part)
      .filter(({ to, isType }) => !parts.includes(findPart(to)) && !(isType && parts.includes(`type ${findPart(to)}`)))
      .map(({ from, to, isType }) => `${from} imports ${isType ? 'types of ' : ''}${to}`);
    assert.deepEqual(wrong, [], why);
  });
}

test('every part is in the table, and bin imports main only', () => {
  const parts = [...new Set(files.map(findPart))].filter((part) => part !== 'bin' && part !== 'main');
  assert.deepEqual(
    parts.toSorted(),
    Object.keys(MAY_IMPORT).toSorted(),
    'a new part needs a row here that says what it may import',
  );
  assert.deepEqual(
    imports.filter(({ from }) => from.startsWith('bin/')).map(({ to }) => to),
    ['src/end-process.ts', 'src/main.ts'],
  );
});

/** Names that a pure part may not use: time enters as `atMs` on an observation, everything else as a parameter. */
const IMPURE =
  /\b(async|await|process|Date|performance|Math\.random|setTimeout|setInterval|setImmediate|queueMicrotask|fetch|console)\b/;

test('decide, wire and config are pure', () => {
  for (const file of files.filter((each) =>
    [
      'decide',
      'wire',
      'config',
      'config-rows',
      'config-conflicts',
      'config-exporter',
      'config-lists',
      'config-thresholds',
      'config-values',
      'config-entries',
      'config-advice',
      'nearest-name',
      'parse-result',
      'port-number',
      'odd-settings',
      'plan',
      'redact',
      'help',
      'log',
    ].includes(findPart(each)),
  )) {
    const code = withoutCommentsAndStrings(readFileSync(join(ROOT, file), 'utf8'));
    assert.equal(IMPURE.exec(code)?.[0], undefined, `${file} must be a function of its parameters`);
    const outside = listImports(file).filter(({ to }) => to.startsWith('node:') || to === 'undici');
    assert.deepEqual(outside, [], `${file} must not do I/O`);
  }
});

test('explain is pure but for one file, and only it is given a Host', () => {
  const explainFiles = files.filter((file) => findPart(file) === 'explain' && file !== 'src/explain/run-explain.ts');
  assert.ok(explainFiles.length > 10);
  for (const file of explainFiles) {
    // Of a Date only what reads no clock.
    const code = withoutCommentsAndStrings(readFileSync(join(ROOT, file), 'utf8')).replaceAll(
      /\bDate\.parse\(|\bnew Date\((?!\))/g,
      '',
    );
    assert.equal(IMPURE.exec(code)?.[0], undefined, `${file} must be a function of its parameters`);
    const outside = listImports(file).filter(({ to }) => to.startsWith('node:') || to === 'src/host.ts');
    assert.deepEqual(outside, [], `${file} must not do I/O`);
  }
});

test('explain is loaded only where it is asked for', () => {
  const before = imports.filter(
    ({ from, to, isDynamic }) => findPart(from) !== 'explain' && findPart(to) === 'explain' && !isDynamic,
  );
  assert.deepEqual(before, [], 'a run without it costs what it did');
});

test('only bin names the process', () => {
  for (const file of files.filter((each) => each.startsWith('src/'))) {
    const [found] = /\bprocess\b.*/.exec(withoutCommentsAndStrings(readFileSync(join(ROOT, file), 'utf8'))) ?? [];
    assert.equal(found, undefined, `${file} must get what it needs of the process from a Host`);
    assert.ok(!listImports(file).some(({ to }) => to === 'node:process'), file);
  }
});

test('packages: undici in net, the parser in wire, YAML where it is looked at, nothing else', () => {
  const used = imports
    .filter(({ to }) => !to.startsWith('src/') && !to.startsWith('node:'))
    .map(({ from, to }) => `${findPart(from)} ${to}`);
  assert.deepEqual([...new Set(used)].toSorted(), ['net undici', 'observe yaml', 'wire parse-prometheus-text-format']);
});

test('the front, and what tells others, is loaded only where it is switched on, and nothing else has a server or zlib', () => {
  const late = ['serve', 'send', 'push'];
  const before = imports.filter(
    ({ from, to, isType, isDynamic }) =>
      !late.includes(findPart(from)) && late.includes(findPart(to)) && !isType && !isDynamic,
  );
  assert.deepEqual(before, [], 'without them, memory and start are what they were');
  const served = imports.filter(
    ({ from, to }) => ['node:http', 'node:zlib'].includes(to) && findPart(from) !== 'serve',
  );
  assert.deepEqual(served, [], 'only src/serve moves bytes of answers');
});

test('there are no cycles', () => {
  const done = new Set<string>();
  function visit(file: string, path: readonly string[]): void {
    assert.ok(!path.includes(file), `${[...path, file].join(' imports ')}`);
    if (done.has(file)) return;
    for (const { to } of listImports(file)) if (to.startsWith('src/')) visit(to, [...path, file]);
    done.add(file);
  }
  for (const file of files) visit(file, []);
});

test('bin reaches every file', () => {
  const reached = new Set<string>();
  function visit(file: string): void {
    if (reached.has(file)) return;
    reached.add(file);
    for (const { to } of listImports(file)) if (to.startsWith('src/')) visit(to);
  }
  visit('bin/lastscrape.ts');
  assert.deepEqual(
    files.filter((file) => !reached.has(file)),
    [],
    'delete what nobody needs',
  );
});

test('every file opens with what it owns, and a folder holds more than one file', () => {
  for (const file of files) assert.match(readFileSync(join(ROOT, file), 'utf8'), /^\/\/ \S/, file);
  for (const folder of new Set(files.map(dirname).filter((each) => each.startsWith('src/')))) {
    assert.ok(files.filter((file) => dirname(file) === folder).length > 1, `${folder} holds one file: make it a file`);
  }
});

function withoutCommentsAndStrings(text: string): string {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/^\s*\/\/.*$/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
    .replaceAll(/`[^`]*`/g, (template) => (template.match(/\$\{[^}]*\}/g) ?? []).join(' '));
}
