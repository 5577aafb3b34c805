// A stand-in of quit-targets.ts as a process, on its preset's ports: `node quit-target-main.ts PRESET`. It
// exits with 0 when asked to quit, with 143 by SIGTERM. LASTSCRAPE_TEST_QUIT=off switches quitting off.

import process from 'node:process';
import { STAND_INS, startStandIn } from './quit-targets.ts';

/** Where the presets of the meshes look (src/quit/programs.ts, which an image of the tests does not have). */
const PORTS: Readonly<Record<string, readonly [number, number]>> = { istio: [15020, 15000], linkerd: [4191, 4191] };

// The kernel delivers no signal to PID 1 that it does not handle.
process.on('SIGTERM', () => process.exit(143));

const [preset = ''] = process.argv.slice(2);
const standIn = STAND_INS.find((each) => each.preset === preset);
const ports = PORTS[preset];
if (standIn === undefined || ports === undefined) {
  throw new Error(`Cannot start "${preset}": it must be one of ${Object.keys(PORTS).join(', ')}`);
}
const isEnabled = process.env['LASTSCRAPE_TEST_QUIT'] !== 'off';
const running = await startStandIn(standIn, { isEnabled, token: null }, ports);
process.stdout.write(`the stand-in for ${preset} listens on ${ports.join(' and ')}\n`);
await running.ended;
process.stdout.write(`it was asked: ${running.requests.join(', ')}\n`);
