// Stands in the bundle for the functions of node:fs/promises that the sources import; esbuild refuses any other. The real
// one costs 0.5 MB of anonymous and 1.3 MB of resident memory (measured, Node 24.21.0).

import {
  readdir as readdirWithCallback,
  readFile as readFileWithCallback,
  readlink as readlinkWithCallback,
  type Stats,
  stat as statWithCallback,
} from 'node:fs';

type Callback<Value> = (error: NodeJS.ErrnoException | null, value: Value) => void;

/** The same as in node:fs/promises, without options. */
export function stat(path: string): Promise<Stats> {
  return settled((callback) => statWithCallback(path, callback));
}

/** The same as in node:fs/promises, for text. */
export function readFile(path: string, encoding: 'utf8'): Promise<string> {
  return settled((callback) => readFileWithCallback(path, encoding, callback));
}

/** The same as in node:fs/promises, without options. */
export function readdir(path: string): Promise<string[]> {
  return settled((callback) => readdirWithCallback(path, callback));
}

/** The same as in node:fs/promises, without options. */
export function readlink(path: string): Promise<string> {
  return settled((callback) => readlinkWithCallback(path, callback));
}

function settled<Value>(call: (callback: Callback<Value>) => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    call((error, value) => {
      if (error === null) resolve(value);
      else reject(error);
    });
  });
}
