// The one reader of this pod, shared by all conditions. Its code, and TLS with it, is imported at the first
// use.

import type { Environment } from '../base/parse.ts';
import type { PodEnvironment, PodReader } from './pod-reader.ts';

export type PodSource = ReturnType<typeof openPodSource>;

/** Prepares a source; opens nothing yet. `environment`: for tests. */
export function openPodSource(env: Environment, environment?: PodEnvironment) {
  let opened: Promise<PodReader> | null = null;
  return {
    /** Opens the reader at the first call; later calls return the same one. */
    open(): Promise<PodReader> {
      opened ??= import('./pod-reader.ts').then(({ openPodReader, POD_ENVIRONMENT }) =>
        openPodReader(env, environment ?? POD_ENVIRONMENT),
      );
      return opened;
    },
    /** Closes what was opened, if anything. */
    async close(): Promise<void> {
      const reader = await opened;
      opened = null;
      await reader?.close();
    },
  };
}
