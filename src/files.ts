// Reading the file system without blocking: node:fs/promises in all but name. The module of that name, which nothing else of Node
// loads at a start, costs 2.7 % of the anonymous memory, 1.7 % of the resident and 7 % of the CPU time of a start (Node 24.21.0).

import { readdir as readdirBack, readFile as readFileBack, readlink as readlinkBack, stat as statBack } from 'node:fs';
import { promisify } from 'node:util';

/** As in node:fs/promises: the names in a folder. @throws with the system's code, such as ENOENT. */
export const readdir = promisify(readdirBack);

/** As in node:fs/promises: a whole file. @throws with the system's code, such as ENOENT. */
export const readFile = promisify(readFileBack);

/** As in node:fs/promises: where a symbolic link leads. @throws with the system's code, such as ENOENT. */
export const readlink = promisify(readlinkBack);

/** As in node:fs/promises: what is at a path, symbolic links followed. @throws with the system's code, such as ENOENT. */
export const stat = promisify(statBack);
