// What a front costs, as tables, and the budgets that it has.

import { cpus } from 'node:os';
import { type Budget, nameBytes, ratio, writeTable } from './budgets.ts';
import { type FrontFigures, type FrontMemory, MIDDLE_BYTES, SCRAPE_SECONDS } from './front.ts';
import { SMALL_BYTES } from './runner.ts';

/** Both tables, with their headings and what they mean. */
export function writeFrontTables({ scrapes, memory }: FrontFigures): string {
  const milliseconds = (seconds: number) => (seconds * 1000).toFixed(1);
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
  return [
    '### A scrape through the front',
    writeTable(
      [
        ...['source', 'its page', 'encoding', 'direct (ms)', 'bare relay (ms)', 'through the front (ms)'],
        ...['CPU of the relay (ms)', 'CPU of lastscrape (ms)'],
      ],
      scrapes.map((one) => [
        nameBytes(one.bodyBytes),
        one.isSame ? 'the same' : 'changes',
        one.encoding,
        milliseconds(one.directSeconds),
        milliseconds(one.relaySeconds),
        milliseconds(one.frontSeconds),
        milliseconds(one.relayCpuSeconds),
        milliseconds(one.frontCpuSeconds),
      ]),
    ),
    `Medians on ${process.platform} ${process.arch}, ${cpus().length} cores, each scrape over a kept connection, direct and through the front in turn, without own polls in between. ` +
      'The source sends its page as it lies in memory (for gzip it is packed each time, as promhttp does). ' +
      'The bare relay is undici and node:http with the flags of the binary, and passes the pieces on as they are, without gzip. ' +
      'The CPU of lastscrape has in it what it does after the answer: it checks a page that has changed, and packs it.',
    '### Memory with a front',
    writeTable(
      ['exposition', 'front', 'resident (MB)', 'anonymous (MB)', 'CPU seconds a minute', 'own polls a minute'],
      memory.map((one) => [
        nameBytes(one.bodyBytes),
        one.hasFront ? 'yes' : 'no',
        megabytes(one.residentBytes),
        megabytes(one.anonymousBytes),
        one.cpuSecondsAMinute.toFixed(2),
        one.ownPollsAMinute.toFixed(0),
      ]),
    ),
    `All at the same time, POLL 1 s, each scraped with gzip every ${SCRAPE_SECONDS} s: through the front, or its source. Own polls are the reads of the source that no scrape asked for.`,
  ].join('\n\n');
}

export function listFrontBudgets({ scrapes, memory }: FrontFigures): readonly Budget[] {
  const judgeScrape = (bodyBytes: number, isSame: boolean, mostSeconds: number, mostCpu: number) => {
    const found = scrapes.find(
      (one) => one.bodyBytes === bodyBytes && one.isSame === isSame && one.encoding === 'identity',
    );
    if (found === undefined) throw new Error(`Bug: no scrape of ${bodyBytes} bytes was timed`);
    const name = `${nameBytes(bodyBytes)}, ${isSame ? 'the same page' : 'a page that changes'}`;
    return [
      // Only printed: on a busy machine a time, of two programs even, says who had the processor.
      {
        ...ratio(`time of ${name}, front / relay`, mostSeconds, found.frontSeconds, found.relaySeconds),
        isJudged: false,
      },
      ratio(`CPU of ${name}, front / relay`, mostCpu, found.frontCpuSeconds, found.relayCpuSeconds),
    ];
  };
  const memoryOf = (hasFront: boolean, bodyBytes: number): FrontMemory => {
    const found = memory.find((one) => one.hasFront === hasFront && one.bodyBytes === bodyBytes);
    if (found === undefined) throw new Error(`Bug: the memory at ${bodyBytes} bytes was not watched`);
    return found;
  };
  const [own, other] = [memoryOf(true, SMALL_BYTES), memoryOf(false, SMALL_BYTES)];
  const judgeGrowth = (name: string, most: number, hasFront: boolean) => {
    const [small, middle] = [memoryOf(hasFront, SMALL_BYTES), memoryOf(hasFront, MIDDLE_BYTES)];
    return ratio(`anonymous memory ${name}, 3 MB / 50 KB`, most, middle.anonymousBytes, small.anonymousBytes);
  };
  return [
    ratio('resident memory with a front / without, 50 KB', 1.12, own.residentBytes, other.residentBytes),
    judgeGrowth('with a front', 1.6, true),
    judgeGrowth('without', 1.3, false),
    ...judgeScrape(SMALL_BYTES, true, 2.2, 2.8),
    ...judgeScrape(MIDDLE_BYTES, true, 1.1, 1.2),
    ...judgeScrape(SMALL_BYTES, false, 2.6, 4),
    ...judgeScrape(MIDDLE_BYTES, false, 1.5, 5),
    ratio('own polls with a front / without, 50 KB', 1, own.ownPollsAMinute, other.ownPollsAMinute),
  ];
}
