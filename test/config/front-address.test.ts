// Where the front listens: how it is written, and what advice a mistyped one gets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFrontAddress } from '../../src/config/front-address.ts';

/** A text, the host, the port. */
const FRONTS: readonly (readonly [text: string, host: string | null, port: number])[] = [
  ['9469', null, 9469],
  ['1', null, 1],
  ['65535', null, 65535],
  ['localhost:9469', 'localhost', 9469],
  ['127.0.0.1:9469', '127.0.0.1', 9469],
  ['0.0.0.0:9469', '0.0.0.0', 9469],
  ['[::1]:9469', '::1', 9469],
  ['[::]:9469', '::', 9469],
  ['[fd00:0::5]:80', 'fd00::5', 80],
];
for (const [text, host, port] of FRONTS) {
  test(`parseFrontAddress() reads ${text}`, () => {
    assert.deepEqual(parseFrontAddress(text), { value: { host, port, text } });
  });
}

const HIGH_PORT = '; … is above the highest port, 65535';
const NAME = '; host names are not looked up: use the port alone to listen on all addresses';
/** Wrong texts, without blanks, and the advice after what they must be. */
const WRONG: readonly (readonly [texts: string, advice: string])[] = [
  ['0 true -1 9469x 127.0.0.1 127.0.0.256:9469 127.0.0.01:9469 127.1:9469 [::g]:9469 [::1]:0 [::1 ::x:9469 :0', ''],
  ['http://127.0.0.1/metrics http://host:9469/metrics', ''],
  ['65536', HIGH_PORT.replace('…', '65536')],
  ['127.0.0.1:94690', HIGH_PORT.replace('…', '94690')],
  [':9469 *:9469 tcp://:9469', '; did you mean "9469"?'],
  ['http://0.0.0.0:9469/metrics', '; did you mean "0.0.0.0:9469"?'],
  ['http://localhost:9469', '; did you mean "localhost:9469"?'],
  ['::1:9469', '; did you mean "[::1]:9469"?'],
  ['locust:9469 LOCALHOST:9469', NAME],
];
for (const [texts, advice] of WRONG) {
  test(`parseFrontAddress() says what ${texts} must be`, () => {
    const problem = `"none", or a port from 1 to 65535, with or without an IP address or localhost before it, such as "9469" or "[::1]:9469"${advice}`;
    for (const text of texts.split(' ')) assert.deepEqual(parseFrontAddress(text), { problem }, text);
  });
}
