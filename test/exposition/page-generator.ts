// Pages as programs might write them, and as they must not: put together of the pieces of each format, most
// of them right, or real pages; then some are changed by a few bytes.

import { readdirSync } from 'node:fs';
import type { Format, TextFormat } from '../../src/exposition/format.ts';
import type { Random } from '../support/random.ts';
import { readRecordedBody } from '../support/recording.ts';

export type Page = { readonly format: Format; readonly body: Buffer };

/** Longer ones are left out: what is in them the shorter ones have too. */
const RECORDED_MAX_BYTES = 60_000;
const RECORDED_LINES = 30;

const RECORDINGS = ['expositions', 'formats']
  .flatMap((folder) =>
    readdirSync(new URL(`../../fixtures/recordings/${folder}/`, import.meta.url)).map((name) => `${folder}/${name}`),
  )
  .filter((path) => !path.endsWith('.md'));

const readPages = (isWanted: (path: string) => boolean) =>
  RECORDINGS.filter(isWanted)
    .map((path) => readRecordedBody(path))
    .filter(({ length }) => length < RECORDED_MAX_BYTES);
const REAL: Readonly<Record<Format, readonly Buffer[]>> = {
  text: readPages((path) => !/openmetrics|protobuf|prom3/.test(path)),
  openMetrics: readPages((path) => /openmetrics|prom3/.test(path)),
  protobuf: readPages((path) => path.includes('protobuf')),
};

/** Where it stands twice, it is chosen more often. */
const PIECES = {
  name: ['a', 'b_total', 'c:d', '_', 'a_bucket', 'x_seconds', 'TYPE', 'HELP', 'nan', 'e1'],
  oddName: ['1a', 'a-b', 'ю', '', 'a.b', '#', '"a"'],
  quoted: ['"a.b"', '"ю"', '"a"', '"x y"', '"q\\"q"', '"n\\nn"', '"__name__"', '"残り"', '"b\\\\"'],
  oddQuoted: ['""', '"a', '"\\', '"\xff"', '"a\nb"', '"a\0b"', "'a'"],
  label: ['a', 'b', 'c', 'le', 'quantile', '_x', 'a', '__x', 'job'],
  oddLabel: ['__name__', '9', 'a:b', 'ю', '', 'a b'],
  value: [
    ...['', 'x', 'a b', 'ю', '残り', '\\n', '\\"', '\\\\', '\\q', '{},=#', ' 1', 'a="1",a="2"', '0.5', '+Inf'],
    'x'.repeat(80),
  ],
  oddValue: [
    ...['\n', 'a\nb 1\n', '\xff', '\xc3', '\xed\xa0\x80', '\0', '\\\n', '\r', '"', '\\', '\xf4\x90\x80\x80'],
    '\\\0"',
  ],
  number: [
    ...['0', '1', '-1', '+1', '1.5', '.5', '1.', '1e5', '1E-5', '1e+05', 'NaN', 'Inf', '+Inf', '-Inf', 'nan'],
    ...['inf', '0.1e1'],
  ],
  oddNumber: [
    ...['', '1e', '.', '+', '+NaN', 'Infinity', '0x1p4', '0x10', '1_0', '1e999', '1e308', '1e-999'],
    ...['9'.repeat(400), 'one', '1,5', '1p4', '٣', '1\r', `${'9'.repeat(250)}e99`],
  ],
  time: ['1', '1700000000000', '0', '00', '9223372036854775807'],
  oddTime: ['-1', '1.5', '9223372036854775808', '1e3', 'NaN', '+5', 'Inf', '1e999', '-1.5e3', 'x', '9'.repeat(300)],
  help: ['', 'Help.', 'ю', 'back\\slash', 'quote"', '\\n', 'two  blanks ', '残り'],
  oddHelp: ['\xff', '\r', '\0', '\xc3x'],
  type: ['counter', 'gauge', 'histogram', 'summary', 'untyped', 'unknown', 'info', 'stateset', 'gaugehistogram'],
  oddType: ['', 'Counter', 'counter ', 'gauge\r', 'x', 'gauge gauge', '"gauge"', '\0gauge'],
  unit: ['seconds', '', 'd', 'total', 'x', 'b'],
  comment: [
    ...['', '#', '# ', '# x', '#x', '#HELP a b', '# HELPX a', '# help', '# EOF', '#\tHELP a b', '# TYPE'],
    ...['# TYPE ', '# HELP', '# \xff', '#x\0y', '# x\0y', '# \0', '#\0'],
  ],
  line: [
    ...['', ' ', '\t ', '\0', ' \0x', '\r', 'a', '1', '{} 1', '{', '}', '<html>', '\ufeff', 'a{', 'a 1 2 3'],
    '{a="b"} 1',
  ],
} as const;
const REAL_LINES: Readonly<Record<TextFormat, readonly (readonly string[])[]>> = {
  text: REAL.text.map(splitLines),
  openMetrics: REAL.openMetrics.map(splitLines),
};

function splitLines(page: Buffer): readonly string[] {
  return page
    .toString('latin1')
    .replace(/# EOF\n?$/, '')
    .split(/(?<=\n)/);
}

type PieceName = keyof typeof PIECES;

/** Bytes that mean something in one of the formats. */
const BYTES = Buffer.from('"\\{}=,# \t\n\r\0aeEN0195.+-_:x\xc3\xa9\xff\x08\x0a\x12\x22\x80', 'latin1');

/** In thousandths, how often a piece is an odd one. */
const ODD_SHARE = 15;

/** Generates one page. */
export function generatePage(random: Random): Page {
  const kind = random(100);
  const format: Format = kind < 50 ? 'text' : kind < 90 ? 'openMetrics' : 'protobuf';
  const body = format === 'protobuf' ? Buffer.concat(listMessages(random)) : writeText(random, format);
  return { format, body: random(3) === 0 ? change(body, random) : body };
}

function choose<One>(random: Random, from: readonly One[]): One {
  return from[random(from.length)] as One;
}

function writeText(random: Random, format: TextFormat): Buffer {
  const parts: Buffer[] = [];
  for (let count = random(6); count > 0; count--) {
    parts.push(random(6) === 0 ? takeLines(random, format) : Buffer.from(writeLine(random, format), 'latin1'));
  }
  if (format === 'openMetrics' && random(20) > 0) parts.push(Buffer.from(random(8) > 0 ? '# EOF\n' : '# EOF'));
  const page = Buffer.concat(parts);
  return random(12) === 0 ? page.subarray(0, -1) : page;
}

function takeLines(random: Random, format: TextFormat): Buffer {
  const lines = choose(random, REAL_LINES[format]);
  const from = random(lines.length);
  return Buffer.from(lines.slice(from, from + random(RECORDED_LINES)).join(''), 'latin1');
}

/** Each letter is a byte. */
function writeLine(random: Random, format: TextFormat): string {
  const isText = format === 'text';
  const isOdd = () => random(1000) < ODD_SHARE;
  const piece = (name: PieceName, odd?: PieceName) => {
    const chosen: string = choose(random, PIECES[odd !== undefined && isOdd() ? odd : name]);
    return [...chosen].some((letter) => letter > '\xff') ? Buffer.from(chosen).toString('latin1') : chosen;
  };
  /** Where text takes any blanks, and OpenMetrics none. */
  const blank = () => (isText ? choose(random, ['', '', '', ' ', '\t', '  ']) : isOdd() ? ' ' : '');
  const gap = () =>
    isText ? choose(random, [' ', ' ', ' ', '\t', '  ']) : isOdd() ? choose(random, ['  ', '\t', '']) : ' ';
  const end = () => (isOdd() ? choose(random, ['\r\n', ' \n', '', '\n\n']) : '\n');
  const name = () => (random(4) === 0 ? piece('quoted', 'oddQuoted') : piece('name', 'oddName'));
  const label = () => {
    const written = random(6) === 0 ? piece('quoted', 'oddQuoted') : piece('label', 'oddLabel');
    return `${written}${blank()}=${blank()}"${piece('value', 'oddValue')}"`;
  };
  const comma = () => (isOdd() ? choose(random, ['', ' ', ',,', ';']) : ',');
  const labels = (named: string) => {
    const all = Array.from({ length: random(4) }, label);
    if (named !== '') all.splice(random(3) > 0 ? 0 : random(all.length + 1), 0, named);
    const last = random(8) === 0 ? comma() : '';
    return `{${blank()}${all.map((each) => `${each}${blank()}`).join(`${comma()}${blank()}`)}${last}${blank()}}`;
  };
  const number = () => piece('number', 'oddNumber');
  const time = () => (random(4) > 0 ? '' : `${gap()}${piece('time', 'oddTime')}`);
  const exemplar = () => (isText || random(5) > 0 ? '' : `${gap()}#${gap()}${labels('')}${gap()}${number()}${time()}`);

  const kind = random(20);
  if (kind === 0) return `${piece('line')}\n`;
  if (kind === 1 && (isText || random(5) === 0)) return `${piece('comment')}\n`;
  if (kind < 4)
    return `${blank()}#${gap()}HELP${gap()}${name()}${random(9) > 0 ? gap() : ''}${piece('help', 'oddHelp')}${end()}`;
  if (kind < 7)
    return `${blank()}#${gap()}TYPE${gap()}${name()}${choose(random, [' ', ' ', ' ', ' ', '\t', '-', '  '])}${piece('type', 'oddType')}${end()}`;
  if (kind < 8 && !isText)
    return `# UNIT ${choose(random, ['a', 'x_', '', '"x.y_'])}${piece('unit')} ${piece('unit')}${end()}`;
  const isBraced = random(5) === 0;
  const series = isBraced
    ? labels(name())
    : `${piece('name', 'oddName')}${random(3) > 0 ? `${blank()}${labels('')}` : ''}`;
  return `${blank()}${series}${isText && random(30) === 0 ? '' : gap()}${number()}${time()}${exemplar()}${blank()}${end()}`;
}

function change(body: Buffer, random: Random): Buffer {
  let changed = body;
  for (let count = 1 + random(3); count > 0; count--) {
    const at = random(changed.length + 1);
    const to = Math.min(changed.length, at + random(4));
    const byte = Buffer.from([random(5) === 0 ? random(256) : choose(random, [...BYTES])]);
    const middle = choose(random, [[byte], [byte], [], [changed.subarray(at, at + 20), changed.subarray(at, at + 20)]]);
    const end = middle.length === 2 ? Math.min(changed.length, at + 20) : to;
    changed = Buffer.concat([changed.subarray(0, at), ...middle, changed.subarray(end)]);
  }
  return random(6) === 0 ? changed.subarray(0, random(changed.length + 1)) : changed;
}

function listMessages(random: Random): Buffer[] {
  const body = choose(random, REAL.protobuf);
  const messages: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    // The recorded ones have lengths of one or two bytes.
    const [low = 0, high = 0] = body.subarray(at, at + 2);
    const [size, from] = low < 0x80 ? [low, at + 1] : [(low & 0x7f) + high * 0x80, at + 2];
    messages.push(body.subarray(at, from + size));
    at = from + size;
  }
  return Array.from({ length: random(5) }, () => choose(random, messages));
}
