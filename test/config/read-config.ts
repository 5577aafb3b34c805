// Configurations for tests, with main's tables of kinds.

import assert from 'node:assert/strict';
import type { Environment } from '../../src/base/parse.ts';
import { type Config, type OwnProcess, readConfig } from '../../src/config/config.ts';
import { KINDS } from '../../src/main.ts';
import { CONTEXT } from '../observe/condition-context.ts';

/** A lastscrape that may send no signal. */
export const PROGRAM: OwnProcess = { pid: 1, kill: () => assert.fail('no signal'), pod: CONTEXT.pod };

/** The configuration; fails with its problems. */
export function readValid(env: Environment): Config {
  const result = readConfig(env, KINDS, PROGRAM);
  if (!('config' in result)) assert.fail(result.problems.join('\n'));
  return result.config;
}

/** The problems; none where it is valid. */
export function readProblems(env: Environment): readonly string[] {
  const result = readConfig(env, KINDS, PROGRAM);
  return 'config' in result ? [] : result.problems;
}

/** `A=1; B=2` as an environment, with the prefix of the variables. */
export function toEnvironment(settings: string): Environment {
  return Object.fromEntries(
    settings
      .split('; ')
      .filter((each) => each !== '')
      .map((each) => [`LASTSCRAPE_${each.split('=')[0]}`, each.slice(each.indexOf('=') + 1)]),
  );
}
