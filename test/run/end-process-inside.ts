// Run by end-process.test.ts: reads the file argv[2], and ends with the code argv[3] while that is under way.
import { readFile } from 'node:fs';
import { endProcess, hasThreadCall, readExitCode } from '../../src/run/end-process.ts';

const [path = '', code = ''] = process.argv.slice(2);
const exitCode = readExitCode(process.argv.slice(2));
if (exitCode !== null) process.exit(exitCode);
const before = hasThreadCall(process);
readFile(path, () => {});
console.log(`${before} ${hasThreadCall(process)}`);
endProcess(process, Number(code));
