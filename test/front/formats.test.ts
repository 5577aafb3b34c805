import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RICH_ACCEPT, TEXT_ACCEPT } from '../../src/decide/serve/pages.ts';
import { openFamilyScan } from '../../src/exposition/families.ts';
import { type Format, readPageType } from '../../src/exposition/format.ts';
import { openReadableCheck } from '../../src/exposition/readable.ts';
import { ENDED, LIVING, NEVER, openWorld, readNewest, turn, untilKept, type World } from './front-world.ts';
import { ACCEPTS as ACCEPTS_OF_OTHERS, END_LINE, TYPES, writeFamily } from './simulation/page.ts';
import { type Answer, hang, reply, type Scraped } from './source.ts';

const ACCEPTS: Readonly<Record<Format, string>> = {
  text: 'text/plain;version=1.0.0;escaping=allow-utf-8,*/*;q=0.1',
  ...ACCEPTS_OF_OTHERS,
};
const FORMATS = Object.keys(TYPES) as readonly Format[];

/** A page of counters, by family. */
type Numbers = Readonly<Record<string, number>>;

function writePage(format: Format, numbers: Numbers): Buffer {
  const families = Object.entries(numbers).map(([name, value]) => writeFamily(format, `${name}_total`, value));
  return Buffer.from(families.join('') + (format === 'openMetrics' ? END_LINE : ''), 'latin1');
}

/** Answers as client_golang does: in the format that is asked for first. */
function negotiate(numbers: Numbers, asked: string[] = []): Answer {
  return (socket, number, accept = '') => {
    asked.push(accept);
    const format = FORMATS.find((each) => accept === ACCEPTS[each]) ?? 'text';
    reply(writePage(format, numbers), { type: TYPES[format] })(socket, number, accept);
  };
}

/** What the source's part of an answer is, byte for byte; checks that all of it is what its type says. */
function readWhole({ status, bytes, headers, isWhole }: Scraped): { format: Format; page: Buffer; names: string[] } {
  assert.equal(status, 200, bytes.toString());
  assert.ok(isWhole);
  const format = readPageType(headers['content-type'] ?? '')?.format;
  assert.ok(format !== undefined);
  const check = openReadableCheck(format);
  check.write(bytes);
  assert.equal(check.end(), null, bytes.toString());
  const scan = openFamilyScan(format);
  scan.write(bytes);
  const names = [...scan.end()];
  const own = names.filter((name) => name.startsWith('lastscrape_'));
  assert.ok(own.includes(format === 'openMetrics' ? 'lastscrape_scrapes' : 'lastscrape_scrapes_total'));
  const first = format === 'protobuf' ? bytes.indexOf('\nlastscrape_') : bytes.indexOf('# HELP lastscrape_');
  // Before it stand the length of the message, two bytes of it, and the tag and length of its name.
  const at = format === 'protobuf' ? bytes.indexOf('lastscrape_source_up') - 3 : first;
  const end = format === 'openMetrics' ? '# EOF\n' : '';
  const page = Buffer.concat([bytes.subarray(0, at), Buffer.from(end)]);
  return { format, page, names: names.filter((name) => !own.includes(name)) };
}

/** Scrapes in these formats, so that they are in use and kept. */
async function useFormats({ ask }: World, formats: readonly Format[]): Promise<void> {
  for (const format of formats) assert.equal(readWhole(await ask(ACCEPTS[format])).format, format);
}

for (const format of FORMATS) {
  test(`${format}: bytes and type come back while main lives, and the last page when the source is gone`, async (t) => {
    const world = await openWorld(t);
    const { source, front, ask } = world;
    const asked: string[] = [];
    source.answer = negotiate({ rows: 1, users: 2 }, asked);
    const live = await ask(ACCEPTS[format]);
    assert.equal(live.headers['content-type'], TYPES[format]);
    assert.deepEqual(readWhole(live).page, writePage(format, { rows: 1, users: 2 }));
    assert.deepEqual(asked, [ACCEPTS[format]]);
    assert.equal((await world.post()).text, 'kept\n');
    assert.deepEqual(asked, [ACCEPTS[format], ACCEPTS[format]]);
    front.tell(ENDED);
    await source.stop();
    const last = await ask(ACCEPTS[format]);
    assert.equal(last.headers['content-type'], TYPES[format]);
    assert.deepEqual(readWhole(last).page, writePage(format, { rows: 1, users: 2 }));
    assert.equal(Number(last.headers['content-length']), last.bytes.length);
  });

  test(`${format}: after the end what has vanished is joined, before the last line`, async (t) => {
    const world = await openWorld(t);
    const { source, front, ask } = world;
    source.answer = negotiate({ rows: 1, users: 2 });
    await ask(ACCEPTS[format]);
    await world.post();
    front.tell(ENDED);
    source.answer = negotiate({ rows: 3 });
    const joined = readWhole(await ask(ACCEPTS[format]));
    assert.deepEqual(joined.page, writePage(format, { rows: 3, users: 2 }));
    await source.stop();
    assert.deepEqual(readWhole(await ask(ACCEPTS[format])).page, writePage(format, { rows: 3, users: 2 }));
  });

  test(`${format}: a page that is cut anywhere is whole for no reader, never kept, and never counted`, async (t) => {
    const world = await openWorld(t);
    const { source, front, ask } = world;
    const whole = writePage(format, { rows: 1, users: 2 });
    source.answer = reply(whole, { type: TYPES[format] });
    await ask(ACCEPTS[format]);
    await world.post();
    // In text a page without its last lines is a page; without any bytes it is one in each format.
    const lengths = format === 'text' ? [] : Array.from({ length: whole.length - 2 }, (_, index) => index + 1);
    const messageEnd = writePage('protobuf', { rows: 1 }).length;
    for (const length of lengths) {
      if (format === 'protobuf' && length === messageEnd) continue;
      source.answer = reply(whole.subarray(0, length), { type: TYPES[format] });
      const cut = await ask(ACCEPTS[format]);
      const check = openReadableCheck(format);
      check.write(cut.bytes);
      assert.notEqual(check.end(), null, `${length} bytes`);
      assert.deepEqual(cut.bytes, whole.subarray(0, length));
      assert.equal((await world.post()).status, 503);
    }
    let countedCount = 0;
    for (let event = front.takeEvent(); event; event = front.takeEvent())
      countedCount += Number(event.kind === 'scraped');
    assert.equal(countedCount, 1);
    front.tell(ENDED);
    await source.stop();
    assert.deepEqual(readWhole(await ask(ACCEPTS[format])).page, whole);
  });
}

test('each Accept in use has a page of its own, which polls read in turn and /-/snapshot all at once', async (t) => {
  const world = await openWorld(t);
  const { source, front, clock, ask } = world;
  const asked: string[] = [];
  source.answer = negotiate({ rows: 1, users: 2 }, asked);
  await useFormats(world, FORMATS);
  asked.length = 0;
  for (const [index] of FORMATS.entries()) {
    clock.advance(30_000);
    await front.readExporter(NEVER);
    while (asked.length < index + 1) await turn();
    await untilKept(world, clock.nowMs());
  }
  const newestFirst = FORMATS.map((format) => ACCEPTS[format]).toReversed();
  assert.deepEqual(asked.toSorted(), newestFirst.toSorted());
  asked.length = 0;
  // What vanishes now is joined at the end, with every page.
  source.answer = negotiate({ rows: 2 }, asked);
  assert.equal((await world.post()).text, 'kept\n');
  assert.deepEqual(asked.toSorted(), newestFirst.toSorted());
  asked.length = 0;
  await front.readExporter(NEVER, 'last');
  assert.deepEqual(asked, newestFirst, 'the last read');
  front.tell(ENDED);
  await source.stop();
  for (const format of FORMATS) {
    assert.deepEqual(readWhole(await ask(ACCEPTS[format])).page, writePage(format, { rows: 2, users: 2 }));
  }
});

test('each page says for how long before the end it may miss changes; none does after a call', async (t) => {
  const world = await openWorld(t);
  const { source, front, clock, ask, post } = world;
  source.answer = negotiate({ rows: 1 });
  await useFormats(world, ['text', 'openMetrics']);
  clock.advance(1_000);
  await useFormats(world, ['openMetrics']);
  const endedAtMs = clock.nowMs() + 500;
  const readMisses = async (format: Format) =>
    /^lastscrape_may_miss_seconds (.*)$/m.exec((await ask(ACCEPTS[format])).text)?.[1];
  for (const expected of [
    ['1.5', '0.5'],
    ['0', '0'],
  ]) {
    await source.stop();
    front.tell({ ...ENDED, endedAtMs });
    assert.deepEqual([await readMisses('text'), await readMisses('openMetrics')], expected);
    front.tell(LIVING);
    await source.start();
    assert.equal((await post()).text, 'kept\n');
  }
});

test('/-/snapshot is not 200 before the page of each format is whole', async (t) => {
  const world = await openWorld(t);
  const { source } = world;
  source.answer = negotiate({ rows: 1 });
  await useFormats(world, FORMATS);
  source.answer = (socket, number, accept) => {
    if (accept !== ACCEPTS.openMetrics) return negotiate({ rows: 2 })(socket, number, accept);
    return reply('# TYPE rows counter\nrows_total 2\n', { type: TYPES.openMetrics })(socket, number, accept);
  };
  const { status, text } = await world.post();
  assert.deepEqual([status, text], [503, 'no "# EOF" at its end\n']);
});

test('scrapes share a read only where their Accept is the same, byte for byte', async (t) => {
  const { source, ask } = await openWorld(t);
  const asked: string[] = [];
  const held: (() => void)[] = [];
  source.answer = (socket, number, accept = '') => {
    asked.push(accept);
    held.push(() => negotiate({ rows: number })(socket, number, accept));
  };
  const first = ask(ACCEPTS.text);
  while (held.length < 1) await turn();
  const others = [ACCEPTS.openMetrics, `${ACCEPTS.openMetrics} `.trimEnd(), ACCEPTS.protobuf, `${ACCEPTS.text};a`].map(
    (accept) => ask(accept),
  );
  // All of them wait.
  for (let count = 0; count < 50; count++) await turn();
  for (let at = 0; at < 4; at++) {
    while (held.length <= at) await turn();
    held[at]?.();
  }
  await first;
  const formats = (await Promise.all(others)).map((each) => readWhole(each).format);
  assert.deepEqual(formats, ['openMetrics', 'openMetrics', 'protobuf', 'text']);
  assert.deepEqual(asked, [ACCEPTS.text, ACCEPTS.openMetrics, ACCEPTS.protobuf, `${ACCEPTS.text};a`]);
});

test('a newcomer after the end always gets what has vanished, also while the source answers in its format', async (t) => {
  const { source, front, ask } = await openWorld(t);
  source.answer = negotiate({ rows: 1, users: 2 });
  await ask(TEXT_ACCEPT);
  front.tell(ENDED);
  for (const rows of [3, 4]) {
    source.answer = negotiate({ rows });
    assert.deepEqual(readWhole(await ask(ACCEPTS.openMetrics)).page, writePage('text', { rows, users: 2 }));
  }
});

for (const main of ['living', 'ending'] as const) {
  test(`of a program that always answers in text the newest page is served and pushed: ${main}`, async (t) => {
    const { source, front, clock, ask } = await openWorld(t, { selectors: [{ name: 'rows_total', labels: [] }] });
    source.answer = reply(writePage('text', { rows: 0, users: 2 }), { type: TYPES.text });
    await front.readExporter(NEVER, 'last');
    clock.advance(1);
    source.answer = async (...all) => {
      front.tell({ ...LIVING, main });
      reply(writePage('text', main === 'living' ? { rows: 1, users: 2 } : { rows: 1 }), { type: TYPES.text })(...all);
    };
    await ask(ACCEPTS.protobuf);
    while (front.observe().answeredAtMs !== clock.nowMs()) await turn();
    front.tell(ENDED);
    await source.stop();
    const wanted = writePage('text', { rows: 1, users: 2 });
    for (const accept of [TEXT_ACCEPT, ACCEPTS.openMetrics]) {
      assert.deepEqual(readWhole(await ask(accept)).page, wanted);
    }
    assert.equal(await readNewest({ front }), String(wanted));
  });
}

test('where the page of a format is unreadable the text is kept, however new the last readable one is', async (t) => {
  const world = await openWorld(t);
  const { source, front, ask, log } = world;
  let openMetrics = 'rows_total 1\n# EOF\n';
  source.answer = (socket, number, accept) => {
    const format = accept === ACCEPTS.openMetrics ? 'openMetrics' : 'text';
    reply(format === 'text' ? 'rows_total 2\n' : openMetrics, { type: TYPES[format] })(socket, number, accept);
  };
  readWhole(await ask(ACCEPTS.openMetrics));
  assert.equal((await world.post()).status, 200);
  openMetrics = 'rows_total 2\nbroken{ 1\n# EOF\n';
  for (let count = 0; count < 3; count++) assert.equal((await world.post()).status, 503);
  const why = 'a line that Prometheus refuses: "broken{ 1"';
  assert.deepEqual(log, [{ id: 'pageUnreadable', fields: { accept: ACCEPTS.openMetrics, why } }]);
  front.tell(ENDED);
  await source.stop();
  const { format, page } = readWhole(await ask(ACCEPTS.openMetrics));
  assert.deepEqual([format, page.toString()], ['text', 'rows_total 2\n']);
});

test('a page begins at the end with what was asked for before, unless it lacks what has vanished', async (t) => {
  for (const [numbers, format] of [
    [{ rows: 3, users: 4 }, 'openMetrics'],
    [{ rows: 3 }, 'text'],
  ] as const) {
    const { source, front, ask } = await openWorld(t);
    source.answer = negotiate({ rows: 1, users: 2 });
    await front.readExporter(NEVER, 'last');
    source.answer = (...all) => {
      front.tell({ ...LIVING, main: 'ending' });
      negotiate(numbers)(...all);
    };
    await ask(ACCEPTS.openMetrics);
    front.tell(ENDED);
    await source.stop();
    const last = readWhole(await ask(ACCEPTS.openMetrics));
    assert.deepEqual([last.format, last.names.length], [format, 2]);
  }
});

test('a restart after the end shows in an answer of which no page is kept', async (t) => {
  const { source, front, ask, post } = await openWorld(t);
  const name = 'promhttp_metric_handler_requests';
  const show = (count: number, rest: string) => `${name}_total{code="200"} ${count}\n${name}_in_flight 1\n${rest}`;
  source.answer = reply(show(1, 'rows_total 7\nusers_total 2\n'));
  await ask(ACCEPTS.text);
  await post();
  source.answer = (...all) => {
    front.tell(ENDED);
    reply(show(0, 'rows_total 0\n# EOF\n'), { type: TYPES.openMetrics })(...all);
  };
  await ask(ACCEPTS.openMetrics);
  source.answer = reply(show(1, 'rows_total 0\n'));
  assert.match((await ask(ACCEPTS.text)).text, /^rows_total 7$/m);
});

test('any client is answered in its format; only scrapers have pages kept', async (t) => {
  const world = await openWorld(t);
  const { source, ask } = world;
  const asked: string[] = [];
  source.answer = negotiate({ rows: 1 }, asked);
  assert.equal(readWhole(await ask(ACCEPTS.openMetrics, false)).format, 'openMetrics');
  asked.length = 0;
  await world.post();
  assert.deepEqual(asked, [TEXT_ACCEPT, RICH_ACCEPT]);
  await world.post();
  assert.deepEqual(asked, [TEXT_ACCEPT, RICH_ACCEPT, TEXT_ACCEPT], 'it has text alone');
});

test('a program that fails while it starts is asked for the rich page again, and kept in text until there is one', async (t) => {
  // Also by an empty page, as of a registry with vectors only, unless its type says that it has text alone.
  for (const [failsCount, failure, wanted] of [
    [1, { status: 503 }, 'TR TR TR'],
    [9, { status: 503 }, 'TR TR TR'],
    [1, { type: TYPES.protobuf }, 'TR TR TR'],
    [1, { type: TYPES.text }, 'TR T T'],
  ] as const) {
    const { source, post } = await openWorld(t);
    let asked = '';
    source.answer = (socket, number, accept = '') => {
      const isRich = accept === RICH_ACCEPT;
      asked += isRich ? 'R' : 'T';
      const isFailed = isRich && asked.replaceAll(/[^R]/g, '').length <= failsCount;
      const page = writePage(isRich ? 'protobuf' : 'text', { rows: 1 });
      const answer = isFailed ? reply('', failure) : reply(page, { type: TYPES[isRich ? 'protobuf' : 'text'] });
      answer(socket, number, accept);
    };
    for (const before of ['', ' ', ' ']) {
      asked += before;
      assert.equal((await post()).text, 'kept\n');
    }
    assert.equal(asked, wanted);
  }
});

test('a call is kept where text alone is refused, which no scraper has asked for', async (t) => {
  const { source, post } = await openWorld(t);
  const rich = reply(writePage('protobuf', { rows: 1 }), { type: TYPES.protobuf });
  source.answer = (socket, number, accept) =>
    (accept === RICH_ACCEPT ? rich : reply('', { status: 406 }))(socket, number, accept);
  assert.equal((await post()).text, 'kept\n');
});

test('an Accept of 8 KB passes as it is; of ten different ones the newest four are kept', async (t) => {
  const world = await openWorld(t);
  const { source, front, ask } = world;
  const asked: string[] = [];
  source.answer = (socket, number, accept = '') => {
    asked.push(accept);
    reply('rows_total 1\n', { type: `text/plain; by=${accepts.indexOf(accept)}` })(socket, number, accept);
  };
  const long = `text/plain;version=0.0.4,\xe9,${'application/x;q=0.1,'.repeat(400)}*/*`;
  assert.ok(long.length > 8_000);
  const accepts = [long, ...Array.from({ length: 9 }, (_, index) => `${ACCEPTS.text};a=${index}`)];
  for (const accept of accepts) readWhole(await ask(accept));
  assert.deepEqual(asked, accepts);
  asked.length = 0;
  assert.equal((await world.post()).status, 200);
  assert.deepEqual(asked.toSorted(), accepts.slice(-4).toSorted());
  front.tell(ENDED);
  await source.stop();
  const served = await Promise.all(accepts.map(async (accept) => (await ask(accept)).headers['content-type']));
  assert.deepEqual(new Set(served), new Set([6, 7, 8, 9].map((by) => `text/plain; by=${by}`)));
});

test('a source that answers now in one format and now in another never has them mixed', async (t) => {
  const world = await openWorld(t);
  const { source, front, ask } = world;
  for (const [index, format] of [...FORMATS, ...FORMATS.toReversed()].entries()) {
    source.answer = reply(writePage(format, { rows: index, [`only_${format}`]: 1 }), { type: TYPES[format] });
    assert.deepEqual(readWhole(await ask(ACCEPTS.text)).format, format);
    await world.post();
  }
  front.tell(ENDED);
  for (const [index, format] of FORMATS.entries()) {
    const numbers = { [`end_${format}`]: index };
    source.answer = reply(writePage(format, numbers), { type: TYPES[format] });
    assert.ok(readWhole(await ask(ACCEPTS.text)).names.some((name) => name.startsWith(`end_${format}`)));
  }
});

test('where a number is judged, or the page is pushed, the text is read as well', async (t) => {
  for (const options of [{ selectors: [{ name: 'rows_total', labels: [] }] }, { isPushed: true }]) {
    const { source, ask, post } = await openWorld(t, options);
    const asked: string[] = [];
    source.answer = negotiate({ rows: 7 }, asked);
    await ask(ACCEPTS.protobuf);
    await post();
    assert.ok(asked.includes(TEXT_ACCEPT), asked.join());
  }
});

for (const [what, answer, shownCount] of [
  ['is read once more', negotiate({ rows: 9 }), 9],
  ['stays where the source hangs for a second', hang, 7],
] as const) {
  test(`what is pushed, and is older than main's end and what was served since, ${what}`, async (t) => {
    const { source, front, clock, ask, post } = await openWorld(t, { isPushed: true });
    source.answer = negotiate({ rows: 7 });
    await ask(ACCEPTS.protobuf);
    await post();
    clock.advance(2);
    front.tell({ ...ENDED, endedAtMs: clock.nowMs() - 1 });
    await ask(ACCEPTS.protobuf);
    while (front.observe().answeredAtMs !== clock.nowMs()) await turn();
    source.answer = answer;
    const { requestsCount } = source;
    const retired = front.retire();
    await source.requests(requestsCount + 1);
    if (answer === hang) clock.advance(1_000);
    await retired;
    assert.equal(await readNewest({ front }), String(writePage('text', { rows: shownCount })));
  });
}

test('what another format shows of a metric does not hide what the text shows', async (t) => {
  const { source, front, clock, ask } = await openWorld(t, { metricNames: ['rows_total'] });
  source.answer = negotiate({ rows: 7 });
  clock.advance(30_000);
  await front.readExporter(NEVER);
  clock.advance(30_000);
  await ask(ACCEPTS.protobuf);
  const { metric, observation } = await front.readExporter(NEVER);
  assert.deepEqual([metric('rows_total'), observation.kind], [{ kind: 'value', value: 7 }, 'answered']);
});
