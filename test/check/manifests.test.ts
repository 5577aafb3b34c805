// `--check` in every lastscrape of the manifests, the policies' goldens and the pages: what it would warn of there.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { listOddSettings } from '../../src/check/setting-warnings.ts';
import { readConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { listWarnings } from '../../src/run/startup-checks.ts';
import { CONTEXT } from '../observe/condition-context.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** What may be warned of, by the file: with a reason why it is right, or cannot be known there. */
const EXPECTED: Readonly<Record<string, readonly [ids: readonly string[], because: string]>> = {
  'fixtures/injected/jobs/not-last.yaml': [['ttlAboveGrace'], 'a pod by hand, with one variable'],
  'fixtures/injected/jobs/wrong-hook.yaml': [['misconfigured'], 'that is what it shows'],
  'fixtures/injected/jobs/wrong-ttl.yaml': [['misconfigured'], 'that is what it shows'],
  'docs/keeper.md': [['misconfigured'], 'a part: what is added to a front'],
};

type Fields = { readonly [field: string]: unknown };
type Variable = { readonly name: string; readonly value?: unknown; readonly valueFrom?: { fieldRef?: Fields } };
type Found = { readonly where: string; readonly env: Readonly<Record<string, string>> };

/** Each list of variables that has one of ours, with the annotations that stand nearest above it. */
function* findLists(value: unknown, annotations: Fields = {}): Generator<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return;
  const own = (value as { metadata?: { annotations?: Fields } }).metadata?.annotations ?? annotations;
  if (!Array.isArray(value)) {
    for (const each of Object.values(value)) yield* findLists(each, own);
  } else if (value.some((each) => /^LASTSCRAPE_(?!SNAPSHOT_URL$)/.test(each?.name))) {
    yield Object.fromEntries((value as readonly Variable[]).map((each) => [each.name, readValue(each, own)]));
  } else for (const each of value) yield* findLists(each, own);
}

function readValue({ value = '', valueFrom }: Variable, annotations: Fields): string {
  const [, annotation = ''] =
    /^metadata\.annotations\['(.+)'\]$/.exec(String(valueFrom?.fieldRef?.['fieldPath'])) ?? [];
  return String(annotation === '' ? value : (annotations[annotation] ?? ''));
}

/** Those of manifests and goldens. */
function listManifests(): readonly Found[] {
  const files = globSync(['deploy/**/*.yaml', 'fixtures/injected/**/*.yaml'], {
    cwd: ROOT,
    exclude: ['deploy/chart/**'],
  });
  return files.toSorted().flatMap((where) => {
    const documents = parseAllDocuments(readFileSync(join(ROOT, where), 'utf8'));
    return [...findLists(documents.map((each) => each.toJS()))].map((env) => ({ where, env }));
  });
}

/** Those of a page: blocks of YAML, and commands that set variables in front of lastscrape. */
function listOfPages(language: 'yaml' | 'sh'): readonly Found[] {
  return globSync(['README.md', 'docs/*.md', 'deploy/*.md'], { cwd: ROOT }).flatMap((where) => {
    const text = readFileSync(join(ROOT, where), 'utf8');
    const blocks = [...text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\``, 'gms'))].map(
      ([, indent = '', block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    );
    const lists = blocks
      .filter((block) => block.includes('LASTSCRAPE_'))
      .flatMap((block) => (language === 'yaml' ? [...findLists(parse(block))] : readCommands(block)));
    return lists.map((env) => ({ where, env }));
  });
}

/** `LASTSCRAPE_A=… LASTSCRAPE_B=… PROGRAM`, on one line or several; not a part of one. */
function readCommands(block: string): Record<string, string>[] {
  const commands = block.replaceAll(/\\\n\s*/g, '').matchAll(/^(?:L\w+=(?:'[^']*'|"[^"]*"|[^\s'"]+) +)+\S/gm);
  return [...commands]
    .map(([text]) => [...text.matchAll(/(L\w+)=(?:'([^']*)'|"([^"]*)"|(\S+))/g)])
    .map((found) =>
      Object.fromEntries(found.map(([, name, ...values]) => [name, values.join('').replace('$PWD', '/tmp')])),
    )
    .filter((env) => 'LASTSCRAPE_DONE_WHEN' in env || 'LOCUST_EXPORTER_URI' in env);
}

/** The ids of what is warned of, by the rules that need no pod. */
function listIds({ env }: Found, isPod: boolean): readonly string[] {
  const read = readConfig(env, KINDS, { pid: 1, kill: () => {}, pod: CONTEXT.pod });
  if ('problems' in read) return ['misconfigured'];
  const odd = listOddSettings({ config: read.config, isPod, exporter: null });
  return [...odd.map(({ id }) => id), ...listWarnings(read.config).map(({ id }) => id)];
}

function check(found: readonly Found[], isPod: boolean, leastCount: number): void {
  assert.ok(found.length >= leastCount, `${found.length} found`);
  for (const each of found) {
    const [expected = []] = EXPECTED[each.where] ?? [];
    const ids = listIds(each, isPod).filter((id) => !expected.includes(id));
    assert.deepEqual(ids, [], `${each.where}: ${JSON.stringify(each.env)}`);
  }
}

test('--check has nothing to warn of in the pods of the manifests and of the policies', () => {
  check(listManifests(), true, 30);
});

test('--check has nothing to warn of in the pods that the pages show', () => {
  check(listOfPages('yaml'), true, 5);
});

test('--check has nothing to warn of on a laptop, with the commands that the pages show', () => {
  check(listOfPages('sh'), false, 3);
});

test('each warning that is expected is there, or its row can go', () => {
  const lists = [listManifests(), listOfPages('yaml'), listOfPages('sh')];
  const all = lists.flat().flatMap((each) => listIds(each, true).map((id) => `${each.where}: ${id}`));
  const expected = Object.entries(EXPECTED).flatMap(([where, [ids]]) => ids.map((id) => `${where}: ${id}`));
  assert.deepEqual(
    expected.filter((each) => !all.includes(each)),
    [],
  );
});
