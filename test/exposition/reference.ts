// The slow, obvious reader that src/exposition is held against: letter by letter, keeps all, shares no code;
// written from prometheus.io, "Exposition formats".

import type { Exposition, Reading, Selector, SelectorReading } from '../../src/exposition/exposition.ts';

/** A line by its name; without a sample it is a comment, or none of the text format. */
export type ReferenceLine = { readonly name: string; readonly sample: Sample | null; readonly text: string };
type Sample = { readonly labels: readonly (readonly [name: string, value: string])[]; readonly value: number };

/** What openExposition() must read; `<prefix>` is always `locust` here. */
export function readReference(
  body: Buffer,
  metricNames: readonly string[],
  selectors: readonly Selector[] = [],
): Exposition {
  const lines: ReferenceLine[] = [];
  for (let start = 0; start < body.length; ) {
    const lineFeed = body.indexOf('\n', start);
    const end = lineFeed === -1 ? body.length : lineFeed;
    lines.push(readReferenceLine(body.toString('utf8', start, end)));
    start = end + 1;
  }
  const isTotal = (labels: string) => labels === 'method=,name=Aggregated' || labels === 'name=Aggregated,method=';
  const finishedCount = firstNumber(lines, 'promhttp_metric_handler_requests_total', (labels) => labels === 'code=200');
  const inFlightCount = firstNumber(lines, 'promhttp_metric_handler_requests_in_flight', (labels) => labels === '');
  return {
    metrics: new Map(metricNames.map((name) => [name, readOnly(lines.filter((line) => line.name === name))])),
    selected: selectors.map((selector) => select(lines, selector)),
    hasRequests: lines.some(
      ({ name, sample }) =>
        name.startsWith('locust_requests_') &&
        sample?.labels
          .map(([label]) => label)
          .sort()
          .join() === 'method,name',
    ),
    requests: firstNumber(lines, 'locust_requests_num_requests', isTotal),
    failures: firstNumber(lines, 'locust_requests_num_failures', isTotal),
    users: firstNumber(lines, 'locust_users', (labels) => labels === ''),
    scrapes: finishedCount === null || inFlightCount === null ? null : { finishedCount, inFlightCount },
    isFront: lines.some(
      ({ name, sample }) =>
        name === 'lastscrape_build_info' && sample?.labels.map(([label]) => label).join() === 'version',
    ),
  };
}

function readOnly(lines: readonly ReferenceLine[]): Reading {
  const [line] = lines;
  if (line === undefined) return { kind: 'unknown', why: 'not in the exposition' };
  if (lines.length > 1) return { kind: 'unknown', why: 'there more than once' };
  if (line.sample === null) return { kind: 'unknown', why: 'unreadable' };
  if (line.sample.labels.length > 0) return { kind: 'unknown', why: 'it has labels' };
  if (!Number.isFinite(line.sample.value)) return { kind: 'unknown', why: 'no finite number' };
  return { kind: 'value', value: line.sample.value };
}

function select(lines: readonly ReferenceLine[], { name, labels }: Selector): SelectorReading {
  const named = lines.filter((line) => line.name === name);
  const values: number[] = [];
  for (const { sample, text } of named) {
    if (sample === null) {
      // What cannot be read, and may be the sample that is meant; of several it is not asked any more.
      const isMeant = labels.every(([, value]) => text.includes(`"${value}"`) || /^$|[\\"\n]/.test(value));
      if (isMeant) return { kind: 'none' };
      continue;
    }
    const find = (label: string) => sample.labels.findLast(([each]) => each === label)?.[1] ?? '';
    if (labels.every(([label, value]) => find(label) === value)) values.push(sample.value);
    if (values.length === 2) return { kind: 'several' };
  }
  const [value] = values;
  if (value !== undefined) return { kind: 'value', value };
  return { kind: named.some(({ sample }) => sample !== null) ? 'unmatched' : 'none' };
}

function firstNumber(
  lines: readonly ReferenceLine[],
  name: string,
  isWanted: (labels: string) => boolean,
): number | null {
  for (const line of lines) {
    if (line.name !== name || line.sample === null) continue;
    const { labels, value } = line.sample;
    if (isWanted(labels.map((label) => label.join('=')).join(',')) && Number.isFinite(value) && value >= 0)
      return value;
  }
  return null;
}

/** One line, without its line feed. */
export function readReferenceLine(text: string): ReferenceLine {
  const line = text.replace(/\r$/, '');
  let at = 0;
  const readWhile = (isRight: RegExp) => {
    let word = '';
    while (at < line.length && isRight.test(line[at] as string)) word += line[at++];
    return word;
  };
  const skipBlanks = () => readWhile(/[ \t]/);
  const accept = (letter: string) => line[at] === letter && at++ >= 0;
  /** What stands between quotes, unescaped; null: it does not end. */
  const readQuoted = () => {
    let value = '';
    for (at++; line[at] !== '"'; at++) {
      if (at >= line.length) return null;
      if (line[at] !== '\\') value += line[at];
      else {
        const escaped = line[++at] ?? '';
        value += escaped === 'n' ? '\n' : escaped === '"' || escaped === '\\' ? escaped : `\\${escaped}`;
      }
    }
    at++;
    return value;
  };
  skipBlanks();
  let name = readWhile(/[a-zA-Z0-9_:]/);
  const labels: [string, string][] = [];
  const hasBlank = skipBlanks() !== '';
  const unreadable = (): ReferenceLine => ({ name, sample: null, text });
  if (accept('{')) {
    let hasName = name !== '';
    for (skipBlanks(); !accept('}'); skipBlanks()) {
      const isQuoted = line[at] === '"';
      const label = isQuoted ? readQuoted() : readWhile(/[a-zA-Z0-9_]/);
      skipBlanks();
      if (isQuoted && !hasName && label !== '' && /[,}]/.test(line[at] ?? '')) {
        name = label as string;
        hasName = true;
        accept(',');
        continue;
      }
      if (label === null || !(isQuoted || /^[a-zA-Z_]/.test(label)) || !accept('=')) return unreadable();
      skipBlanks();
      const value = line[at] === '"' ? readQuoted() : null;
      if (value === null) return unreadable();
      labels.push([label, value]);
      skipBlanks();
      accept(',');
    }
    if (!hasName) return unreadable();
    skipBlanks();
  } else if (!hasBlank && !/[-+.]/.test(line[at] ?? '')) return unreadable();
  const value = toNumber(readWhile(/[^ \t]/));
  skipBlanks();
  const timestamp = readWhile(/[^ \t]/);
  skipBlanks();
  if (value === null || at < line.length || !/^(?:-?[0-9]+)?$/.test(timestamp)) return unreadable();
  return { name, sample: { labels, value }, text };
}

function toNumber(text: string): number | null {
  if (text.toLowerCase() === 'nan') return Number.NaN;
  const word = text.replace(/^[+-]/, '').toLowerCase();
  const sign = text.startsWith('-') ? -1 : 1;
  if (word === 'inf' || word === 'infinity') return sign * Number.POSITIVE_INFINITY;
  if (!/^[0-9.]+(e[+-]?[0-9]+)?$/.test(word)) return null;
  const number = Number(word);
  return Number.isNaN(number) ? null : sign * number;
}
