// What is in the bundle, and what must not be.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { gateDist, ROOT, readDist, readDistJson } from './dist.ts';

const skip = gateDist('test/image/bundle.test.ts');
/** The code of ours: what is always there, and what is asked for by import(). */
const readText = () => `${readDist('bundle.cjs').toString('utf8')}${readDist('bundle.lazy.cjs').toString('utf8')}`;
const readInputs = () => readDistJson<readonly string[]>('bundle-inputs.json');
const readCode = (path: string) => readFileSync(join(ROOT, path), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
const YAML_BUILD = 'node_modules/yaml/browser';

test('the bundle holds the packages that package.json names, and theirs, from the checkout', { skip }, () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const packages = new Set(readInputs().flatMap((path) => /^node_modules\/([^/]+)\//.exec(path)?.[1] ?? []));
  assert.deepEqual([...packages].sort(), [...Object.keys(dependencies), 'shallow-equal'].sort());
  // image/ has an undici of its own, for pkg.
  assert.deepEqual(
    readInputs().filter((path) => path.startsWith('image/')),
    ['image/absent.cjs', 'image/asset.cjs', 'image/slim-assert.cjs', 'image/slim-headers.cjs', 'image/slim-http.cjs'],
  );
});

test('the bundle leaves out HTTP/2, the web API, the second parser and every other dispatcher of undici', {
  skip,
}, () => {
  const inputs = readInputs();
  assert.deepEqual(
    inputs.filter(
      (path) => !path.startsWith('src/') && /client-h2|parser-h1|\/web\/|\/mock\/|pool|agent|cache|socks/.test(path),
    ),
    [],
  );
  assert.ok(inputs.includes('node_modules/undici/lib/dispatcher/client-h1.js'));
  // A CPU without SSE 4.1 (kvm64 is one) takes the one without SIMD.
  for (const name of ['llhttp_simd-wasm', 'llhttp-wasm'])
    assert.ok(inputs.includes(`node_modules/undici/lib/llhttp/${name}.js`), name);
});

test('the bundle asks for what it leaves out only on ways that lastscrape never takes', { skip }, () => {
  // A new way in another undici must be looked at: allowH2 is false, and no request has a body.
  const undici = readInputs().filter((path) => path.startsWith('node_modules/undici/'));
  const asked = undici.flatMap((path) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/require\('([^']*(?:client-h2\.js|web\/[^']*))'\)/g)].map(
      ([, name]) => `${path.replace('node_modules/undici/lib/', '')}: ${name}`,
    ),
  );
  assert.deepEqual(asked.sort(), [
    'core/request.js: ../web/fetch/formdata',
    'core/request.js: ../web/webidl',
    'dispatcher/client-h1.js: ../web/fetch/body.js',
    'dispatcher/client.js: ./client-h2.js',
  ]);
});

test('the bundle has the build of yaml that asks nothing of the process', { skip }, () => {
  const yaml = readInputs().filter((path) => path.startsWith('node_modules/yaml/'));
  assert.ok(yaml.includes(`${YAML_BUILD}/dist/parse/parser.js`));
  const others = yaml.filter((path) => !path.startsWith(YAML_BUILD));
  assert.deepEqual(others, []);
  // It is text next to the bundle, out of sight of the tests of what is loaded and read.
  const found = yaml.flatMap((path) => readCode(path).match(/\bprocess\b|\brequire\(|from '[^.].*'/g) ?? []);
  assert.deepEqual(found, []);
});

test('the build of yaml in the bundle reads what the sources read', async () => {
  const options = { mapAsMap: true, logLevel: 'error' } as const;
  const { parse: other }: { readonly parse: typeof parse } = await import(join(ROOT, YAML_BUILD, 'index.js'));
  const read = (one: typeof parse, text: string) => {
    try {
      return one(text, options);
    } catch (error) {
      return String(error);
    }
  };
  const whole =
    '# of main\n%YAML 1.2\n---\nBorn: 2020-04-28T10:41:46Z\n"Died": \'x\'\nExitCode: -1\nLabels: {c: &b !!str 2, a: [1, *b]}\n';
  for (const text of [
    '{"Born": "x", "ExitCode": 3}',
    'a: 1\na: 2',
    'a: |\n  b\n\n  c\n',
    '%YAML 1.1\n---\n<<: {a: 0o17}\nb: yes',
  ])
    assert.deepEqual(read(other, text), read(parse, text), text);
  for (let length = 0; length <= whole.length; length++)
    assert.deepEqual(read(other, whole.slice(0, length)), read(parse, whole.slice(0, length)), `${length} characters`);
});

test('the slim stand-ins have all that undici calls', { skip }, () => {
  const undici = readInputs().filter((path) => path.startsWith('node_modules/undici/'));
  const texts = undici.map(readCode);
  const find = (pattern: RegExp) => [...new Set(texts.flatMap((text) => text.match(pattern) ?? []))].sort();
  assert.deepEqual(find(/\bhttp\.\w+|\w+(?= } = require\('node:http'\))/g), ['IncomingMessage', 'http.maxHeaderSize']);
  assert.deepEqual(find(/\bassert\.\w+/g), []);
  const headers = find(/(?<=\{)[\w,\s]+(?=\} = require\('[^']*\/constants'\))/g).flatMap(
    (names) => names.match(/\w+/g) ?? [],
  );
  assert.deepEqual([...new Set(headers)].sort(), [
    'defaultWebSocketMaxFragments',
    'defaultWebSocketMaxPayloadSize',
    'headerNameLowerCasedRecord',
    'wellknownHeaderNames',
  ]);
  // Those of llhttp (image/bundle.ts).
  assert.deepEqual(find(/\bconstants\.[A-Z]\w*/g), ['constants.ERROR', 'constants.TYPE']);
});

test('the bundle loads only modules that are built into Node', { skip }, () => {
  const loaded = [...readText().matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name ?? '');
  assert.ok(loaded.length > 5);
  const foreign = loaded.filter((name) => !name.startsWith('node:') && name !== 'buffer');
  assert.deepEqual(foreign, []);
});

test('the bundle reads no variable of the environment by name', { skip }, () => {
  const read = [...readText().matchAll(/process\.env\.\w+|process\.env\[/g)].map(([found]) => found);
  assert.deepEqual(read, []);
});

test('the bundle is ASCII: for one other character V8 would hold all of it with two bytes each', { skip }, () => {
  assert.doesNotMatch(readText(), /[^\0-\x7f]/);
});

test('the bundle names no folder of the machine that built it', { skip }, () => {
  for (const folder of [ROOT, homedir()].filter((path) => path.length > 1))
    assert.ok(!readText().includes(`${folder}/`), folder);
});
