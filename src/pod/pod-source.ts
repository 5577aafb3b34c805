// The one reader of this pod, shared by all conditions. Its code, and TLS with it, is imported at the first
// use.

import type { Environment } from '../base/parse.ts';
import type { PodEnvironment, PodReader } from './pod-reader.ts';

export type PodSource = {
  /** Opens the reader at the first call; later calls return the same one. */
  readonly open: () => Promise<PodReader>;
  /** Closes what was opened, if anything. */
  readonly close: () => Promise<void>;
};

/** Prepares a source; opens nothing yet. `environment`: for tests. */
export function openPodSource(env: Environment, environment?: PodEnvironment): PodSource {
  let opened: Promise<PodReader> | null = null;
  return {
    open() {
      opened ??= import('./pod-reader.ts').then(({ openPodReader, POD_ENVIRONMENT }) =>
        openPodReader(env, environment ?? POD_ENVIRONMENT),
      );
      return opened;
    },
    async close() {
      const reader = await opened;
      opened = null;
      await reader?.close();
    },
  };
}
