// The npm package as a user gets it: packed, installed into an empty folder, and run by each Node that it takes.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { writeKrewManifest } from '../../image/npm.ts';
import { VERSION } from '../../src/base/version.ts';
import { makeFolder } from '../support/folder.ts';
import { gateMissing, OTHER_NODES, otherNodePath } from '../support/programs.ts';
import { DIST, gateDist, ROOT } from './dist.ts';

const FILE = 'test/image/npm.test.ts';
const POD = readFileSync(join(ROOT, 'fixtures/explain/exporter.json'), 'utf8');

describe('the npm package', { skip: gateDist(FILE) }, () => {
  let folder = '';
  const installed = (name: string) => join(folder, 'node_modules/.bin', name);

  before(() => {
    folder = makeFolder();
    const options = { cwd: folder, encoding: 'utf8' } as const;
    const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json', join(DIST, 'npm')], options));
    assert.equal(packed.filename, `lastscrape-${VERSION}.tgz`);
    execFileSync('npm', ['install', '--silent', '--offline', '--no-audit', `./${packed.filename}`], options);
  });

  function run(node: string, args: readonly string[], input = '', preload = '') {
    const flags = preload === '' ? [] : ['--require', preload];
    const { status, stdout, stderr } = spawnSync(node, [...flags, ...args], {
      cwd: folder,
      input,
      env: { PATH: `${folder}:${process.env['PATH']}` },
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  }

  for (const version of [process.versions.node, ...OTHER_NODES]) {
    const node =
      version === process.versions.node
        ? process.execPath
        : join(otherNodePath(version), `node_modules/node-linux-${process.arch}/bin/node`);
    test(`with Node ${version}: --version, --check, explain, and the plugin of kubectl`, {
      skip: gateNode(node),
    }, () => {
      const bin = installed('lastscrape');
      const printed = run(node, [bin, '--version']).stdout;
      assert.match(printed, new RegExp(`^lastscrape ${VERSION} \\(commit .*, Node ${version}\\)$`, 'm'));
      assert.equal(run(node, [bin, '--check']).status, 0);
      const explained = run(node, [bin, 'explain'], POD);
      assert.equal(explained.status, 0, explained.stderr);
      assert.match(explained.stdout, /^node-exporter keeps pod /);

      writeFileSync(join(folder, 'pod.json'), POD);
      writeFileSync(join(folder, 'kubectl'), `#!/bin/sh\necho "$*" >&2\ncat '${folder}/pod.json'\n`);
      chmodSync(join(folder, 'kubectl'), 0o755);
      const plugin = run(node, [installed('kubectl-lastscrape'), 'explain', 'pod', 'backup', '--namespace', 'shop']);
      assert.deepEqual([plugin.status, plugin.stdout], [0, explained.stdout]);
      assert.equal(plugin.stderr, 'get pod backup --namespace shop --output=json\n');
    });
  }

  test('the plugin says its usage, and ends as kubectl does', () => {
    const plugin = installed('kubectl-lastscrape');
    for (const args of [[], ['explain'], ['explain', 'pod'], ['explain', 'node', 'a'], ['explain', 'pod', '--json']]) {
      const { status, stderr } = run(process.execPath, [plugin, ...args]);
      assert.equal(status, 64);
      assert.match(stderr, /^Usage: kubectl lastscrape explain pod\|job NAME/);
    }
    writeFileSync(join(folder, 'kubectl'), '#!/bin/sh\necho "pods \\"a\\" not found" >&2\nexit 3\n');
    chmodSync(join(folder, 'kubectl'), 0o755);
    assert.deepEqual(run(process.execPath, [plugin, 'explain', 'pod', 'a']), {
      status: 3,
      stdout: '',
      stderr: 'pods "a" not found\n',
    });
  });

  test('a Node that is too old and a machine that is not Linux are said', () => {
    const preload = join(folder, 'preload.cjs');
    const bin = installed('lastscrape');
    writeFileSync(preload, "Object.defineProperty(process.versions, 'node', { value: '20.1.0' });");
    assert.deepEqual(run(process.execPath, [bin], '', preload), {
      status: 1,
      stdout: '',
      stderr: 'lastscrape needs Node 22 or later; this is 20.1.0\n',
    });
    writeFileSync(preload, "Object.defineProperty(process, 'platform', { value: 'darwin' });");
    const ran = run(process.execPath, [bin], '', preload);
    assert.equal(ran.status, 64);
    assert.match(ran.stderr, /^lastscrape runs in a pod, on Linux; on this machine: lastscrape explain, /);
    assert.equal(run(process.execPath, [bin, 'explain'], POD, preload).status, 0);
    assert.equal(run(process.execPath, [bin, '--check'], '', preload).status, 0);
  });
});

test("krew's manifest has the version, the package and its sum", () => {
  const { spec } = parse(writeKrewManifest('1.2.3', 'https://example.com/lastscrape-1.2.3.tgz', 'a'.repeat(64)));
  assert.equal(spec.version, 'v1.2.3');
  const [platform] = spec.platforms;
  assert.deepEqual([platform.uri, platform.sha256], ['https://example.com/lastscrape-1.2.3.tgz', 'a'.repeat(64)]);
  assert.ok(existsSync(join(ROOT, 'image/npm', platform.bin)));
  // On Windows krew runs nothing but an .exe.
  assert.deepEqual(platform.selector.matchExpressions, [{ key: 'os', operator: 'In', values: ['darwin', 'linux'] }]);
});

function gateNode(node: string): string | false {
  const how = `there is no ${node}; run "npm exec -- node test/tools/install-programs.ts"`;
  return gateMissing(FILE, existsSync(node) ? [] : [how]);
}
