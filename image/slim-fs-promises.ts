// Stands in the bundle for the one function of node:fs/promises that the sources import; esbuild refuses any other. The real
// one costs 0.5 MB of anonymous and 1.3 MB of resident memory (measured, Node 24.21.0).

import { type Stats, stat as statWithCallback } from 'node:fs';

/** The same as in node:fs/promises, without options. */
export function stat(path: string): Promise<Stats> {
  return new Promise((resolve, reject) => {
    statWithCallback(path, (error, stats) => {
      if (error === null) resolve(stats);
      else reject(error);
    });
  });
}
