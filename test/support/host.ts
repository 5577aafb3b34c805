// The process that main() runs in, played by a test: what it prints, and the listeners it is given.

import assert from 'node:assert/strict';
import type { Environment } from '../../src/base/parse.ts';
import type { SignalName } from '../../src/decide/model.ts';
import type { Host } from '../../src/run/host.ts';

/** A process with these variables; `more` replaces parts of it. */
export function openHost(env: Environment, more: Partial<Host> = {}) {
  const out = {
    ...{ stdout: '', stderr: '', signal: (_: SignalName): void => {} },
    onUncaught: (_: unknown): number => assert.fail('no listener'),
  };
  const host: Host = {
    env,
    argv: [],
    stdin: () => assert.fail('stdin is not read'),
    stdout: (text) => {
      out.stdout += text;
    },
    stderr: (text) => {
      out.stderr += text;
    },
    onSignal: (listener) => {
      out.signal = listener;
    },
    onUncaught: (listener) => {
      out.onUncaught = listener;
    },
    pid: 1,
    kill: () => assert.fail('no signal'),
    nodeVersion: '24.0.0',
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    cpuMs: () => 0,
    ...more,
  };
  return { host, out };
}
