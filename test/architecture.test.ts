// The shape of the code (CONTRIBUTING.md): who imports whom, what the pure parts may not name, no dead file.

import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { test } from 'node:test';
import {
  FILES as files,
  findFolder,
  type Import,
  listFloors,
  listFolderImports,
  listImports,
  readSource,
} from './tools/house.ts';

const imports = files.flatMap(listImports);

/** What a folder may import: folders or files of `src/`; behind `type`, types of them only. One rule for each folder. */
const MAY_IMPORT: Readonly<Record<string, { readonly from: readonly string[]; readonly why: string }>> = {
  base: { from: [], why: 'leaves: they know nothing of what they are for' },
  decide: { from: ['base/text'], why: 'the rules know nothing of the world: no clock, no I/O, no configuration' },
  exposition: { from: ['base'], why: 'bytes become values here, for every reader' },
  pod: { from: ['base'], why: 'which pod this is, for all who ask' },
  snapshot: {
    from: ['base', 'exposition', 'decide/serve/serve', 'type decide'],
    why: 'a body is kept; what it stands for is decided in decide/',
  },
  observe: {
    from: ['base', 'exposition', 'pod', 'decide/run/pace', 'decide/serve/budget', 'decide/serve/reads', 'type decide'],
    why: 'an observation says what it saw',
  },
  quit: { from: ['base', 'type decide'], why: 'what is done was decided elsewhere' },
  front: {
    from: ['base', 'exposition', 'snapshot', 'observe', 'decide'],
    why: 'bytes are moved here; what a scrape gets is decided in decide/',
  },
  tell: {
    from: ['base', 'exposition', 'pod', 'snapshot', 'type decide'],
    why: 'who gets what, and when, is decided in decide/',
  },
  config: {
    from: ['base', 'decide', 'exposition/lexer', 'type observe', 'type quit'],
    why: 'the environment is a parameter, and so are the kinds',
  },
  run: {
    from: ['base', 'config', 'decide', 'front', 'observe', 'pod', 'quit', 'snapshot', 'tell'],
    why: 'one run is made of the parts below it',
  },
  keeper: {
    from: ['base', 'config', 'decide', 'exposition', 'front', 'pod', 'snapshot/packing', 'run/host', 'run/log'],
    why: "pages of others are kept and served by the front's server; for how long is decided in decide/",
  },
  check: {
    from: ['base', 'config', 'decide', 'front', 'observe', 'pod', 'quit', 'run', 'tell'],
    why: 'it looks at what a run would go by, and changes nothing',
  },
  explain: {
    from: ['base', 'config', 'decide', 'pod', 'quit', 'type run'],
    why: 'it goes by an object that was read from a cluster, and connects to nothing',
  },
};

for (const [folder, { from: allowed, why }] of Object.entries(MAY_IMPORT)) {
  test(`${folder} imports ${allowed.length === 0 ? 'no other folder' : `only ${allowed.join(', ')}`}`, () => {
    const isAllowed = ({ to, isType }: Import) =>
      allowed.some((each) => {
        const place = each.replace(/^type /, '');
        const isThere = to.startsWith(`src/${place}/`) || to === `src/${place}.ts`;
        return isThere && (isType || place === each);
      });
    const wrong = imports
      .filter(({ from, to }) => findFolder(from) === folder && to.startsWith('src/') && findFolder(to) !== folder)
      .filter((each) => !isAllowed(each))
      .map(({ from, to, isType }) => `${from} imports ${isType ? 'types of ' : ''}${to}`);
    assert.deepEqual(wrong, [], why);
  });
}

/** What a law of `decide/` may import of the others; all share the files of `decide/` itself. */
const LAWS: Readonly<Record<string, readonly string[]>> = {
  run: ['serve', 'quit'],
  serve: [],
  quit: [],
  report: ['run', 'serve', 'quit'],
  keep: ['serve'],
};

test('each law of decide/ knows only those below it, and what they share knows none but by its types', () => {
  const findLaw = (file: string) => /^src\/decide\/(\w+)\//.exec(file)?.[1] ?? null;
  const laws = new Set(files.filter((file) => findFolder(file) === 'decide').map(findLaw));
  assert.deepEqual([...laws].filter((law) => law !== null).toSorted(), Object.keys(LAWS).toSorted());
  const wrong = imports
    .filter(({ from, to }) => from.startsWith('src/decide/') && findLaw(to) !== null && findLaw(to) !== findLaw(from))
    .filter(({ from, to, isType }) => {
      const law = findLaw(from);
      const allowed = law === null ? Object.keys(LAWS).map((each) => `type ${each}`) : (LAWS[law] ?? []);
      return !allowed.includes(String(findLaw(to))) && !(isType && allowed.includes(`type ${findLaw(to)}`));
    })
    .map(({ from, to }) => `${from} imports ${to}`);
  assert.deepEqual(wrong, []);
});

test('every folder has its rule, and bin imports main and the end of the process only', () => {
  const folders = [...new Set(files.map(findFolder))].filter((folder) => folder !== 'bin' && folder !== 'main');
  assert.deepEqual(
    folders.toSorted(),
    Object.keys(MAY_IMPORT).toSorted(),
    'a new folder needs a rule here that says what it may import',
  );
  const entries = imports.filter(({ from }) => from.startsWith('bin/')).map(({ to }) => to);
  assert.deepEqual(entries, ['src/main.ts', 'src/run/end-process.ts', 'src/run/host.ts']);
});

/** Names that a pure part may not use: time enters as `atMs` on an observation, everything else as a parameter. */
const IMPURE =
  /\b(async|await|process|Date|performance|Math\.random|setTimeout|setInterval|setImmediate|queueMicrotask|fetch|console)\b/;

/** The pure parts, by folder or file. */
const PURE = [
  'src/config/',
  'src/decide/',
  'src/exposition/',
  'src/base/parse.ts',
  'src/base/text.ts',
  'src/check/help.ts',
  'src/check/setting-warnings.ts',
  'src/check/plan.ts',
  'src/front/locust/csv.ts',
  'src/front/locust/memory.ts',
  'src/front/locust/pace.ts',
  'src/front/locust/page.ts',
  'src/front/locust/rows.ts',
  'src/front/pushgateway/groups.ts',
  'src/front/pushgateway/pushed-families.ts',
  'src/front/pushgateway/pushed-messages.ts',
  'src/pod/pod-request.ts',
  'src/pod/pod-status.ts',
  'src/run/log.ts',
];

test('decide, exposition, config and what else is said to be is pure', () => {
  for (const file of files.filter((each) => PURE.some((place) => each.startsWith(place)))) {
    const code = withoutCommentsAndStrings(readSource(file));
    assert.equal(IMPURE.exec(code)?.[0], undefined, `${file} must be a function of its parameters`);
    const outside = listImports(file).filter(({ to }) => to.startsWith('node:') || to === 'undici');
    assert.deepEqual(outside, [], `${file} must not do I/O`);
  }
});

/** Cursors over bytes, which are read a hundred million times, and what is built from them. */
const FAST = /^src\/(exposition|front\/pushgateway)\//;

test('what is pure assigns no field and adds to nothing it was given, but for a regular expression', () => {
  for (const file of files.filter((each) => PURE.some((place) => each.startsWith(place)) && !FAST.test(each))) {
    const code = withoutCommentsAndStrings(readSource(file));
    const assigned =
      /^\s*[\w.]+\.(?!lastIndex\b)\w+ (?:[-+*/%]|\?\?|\|\||&&)?= .*|\.\w+(?:\+\+|--)|\w\.\w+\.push\(.*/m.exec(code);
    assert.equal(assigned?.[0], undefined, `${file} must return what is new`);
  }
});

test('explain is pure but for one file, and only it is given a Host', () => {
  const explainFiles = files.filter((file) => findFolder(file) === 'explain' && file !== 'src/explain/run-explain.ts');
  assert.ok(explainFiles.length > 10);
  for (const file of explainFiles) {
    // Of a Date only what reads no clock.
    const code = withoutCommentsAndStrings(readSource(file)).replaceAll(/\bDate\.parse\(|\bnew Date\((?!\))/g, '');
    assert.equal(IMPURE.exec(code)?.[0], undefined, `${file} must be a function of its parameters`);
    const outside = listImports(file).filter(({ to }) => to.startsWith('node:') || to === 'src/run/host.ts');
    assert.deepEqual(outside, [], `${file} must not do I/O`);
  }
});

/** A file and every file that it imports, and so on. */
function listReached(from: string, follows: (each: Import) => boolean = () => true): readonly string[] {
  const reached = new Set([from]);
  for (const file of reached) {
    for (const each of listImports(file)) if (each.to.startsWith('src/') && follows(each)) reached.add(each.to);
  }
  return [...reached];
}

test('explain reaches nothing that connects', () => {
  const reached = listReached('src/explain/run-explain.ts', ({ isType }) => !isType);
  assert.ok(reached.length > 10);
  const early = reached.filter((file) => /^src\/(base\/net|observe|front|tell|snapshot)\//.test(file));
  assert.deepEqual(early, []);
});

test('explain is loaded only where it is asked for', () => {
  const before = imports.filter(
    ({ from, to, isDynamic }) => findFolder(from) !== 'explain' && findFolder(to) === 'explain' && !isDynamic,
  );
  assert.deepEqual(before, [], 'a run without it costs what it did');
});

test('only bin names the process', () => {
  for (const file of files.filter((each) => each.startsWith('src/'))) {
    const [found] = /\bprocess\b.*/.exec(withoutCommentsAndStrings(readSource(file))) ?? [];
    assert.equal(found, undefined, `${file} must get what it needs of the process from a Host`);
    assert.ok(!listImports(file).some(({ to }) => to === 'node:process'), file);
  }
});

test('packages: undici in base/net, the parser in exposition, YAML where it is looked at, nothing else', () => {
  const used = imports
    .filter(({ to }) => !to.startsWith('src/') && !to.startsWith('node:'))
    .map(({ from, to }) => `${findFolder(from)} ${to}`);
  assert.deepEqual([...new Set(used)].toSorted(), [
    'base undici',
    'exposition parse-prometheus-text-format',
    'observe yaml',
  ]);
});

test('the front, what is kept and what notifies others is loaded only where it is switched on, and nothing else has a server or zlib', () => {
  const late = ['front', 'keeper', 'snapshot', 'tell'];
  const before = imports.filter(
    ({ from, to, isType, isDynamic }) =>
      !late.includes(findFolder(from)) && late.includes(findFolder(to)) && !isType && !isDynamic,
  );
  assert.deepEqual(before, [], 'without them, memory and start are what they were');
  const served = imports.filter(
    ({ from, to }) => ['node:http', 'node:zlib'].includes(to) && !['front', 'snapshot'].includes(findFolder(from)),
  );
  assert.deepEqual(served, [], 'only src/front and src/snapshot move bytes of answers');
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

test('the folders stand on at most ten floors, and every import points down', () => {
  const floors = listFloors(listFolderImports());
  assert.ok(floors.length <= 10, floors.map((floor) => floor.join(', ')).join(' | '));
});

test('bin reaches every file', () => {
  const reached = listReached('bin/lastscrape.ts');
  const unreached = files.filter((file) => !reached.includes(file));
  assert.deepEqual(unreached, [], 'delete what is not needed');
});

test('every file opens with what it owns, and a folder holds more than one file', () => {
  for (const file of files) assert.match(readSource(file), /^\/\/ \S/, file);
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
