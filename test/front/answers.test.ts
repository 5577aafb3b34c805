import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OwnValues } from '../../src/exposition/own-families.ts';
import { serveGrowing, serveWhole } from '../../src/front/answers.ts';
import { openBody } from '../../src/snapshot/body.ts';
import { readPieces } from '../support/pieces.ts';

const VALUES: OwnValues = {
  isSourceUp: true,
  isMainEnded: false,
  mainEndSeconds: null,
  snapshotSeconds: 7,
  missesSeconds: null,
  scrapesCount: 0,
};

async function readAll(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  return String(await readPieces(pieces));
}

test('serveGrowing() leaves a family of ours out that the source has, wherever its pieces are cut', async () => {
  const text = 'lastscrape_source_up 42\n';
  for (let cut = 1; cut < 12; cut++) {
    const { body, push, end } = openBody();
    const iterator = serveGrowing(body, VALUES).read()[Symbol.asyncIterator]();
    const read: Buffer[] = [];
    for (const piece of [text.slice(0, cut), text.slice(cut)]) {
      const next = iterator.next();
      push(Buffer.from(piece));
      read.push(Buffer.from((await next).value));
    }
    end();
    const rest = await readAll({ [Symbol.asyncIterator]: () => iterator });
    assert.equal(Buffer.concat(read).toString(), text);
    assert.match(rest, /^# HELP lastscrape_main_ended /, `cut at ${cut}`);
  }
});

test('serveGrowing() has the families of a source without ours not listed', async () => {
  const { body, push, end } = openBody();
  push(Buffer.from('a 1\n'));
  end();
  const served = serveGrowing({ ...body, endsWithLineFeed: true, families: () => assert.fail('listed') }, VALUES);
  assert.match(await readAll(served.read()), /^a 1\n# HELP lastscrape_source_up /);
});

test('an empty page of OpenMetrics ends with # EOF behind our families, whole and growing', async () => {
  const { body, end } = openBody({ format: 'openMetrics', contentType: 'application/openmetrics-text' });
  end();
  const whole = await serveWhole(body, VALUES);
  const growing = serveGrowing(body, VALUES);
  const sent = await readAll(whole.read());
  assert.match(sent, /^# HELP lastscrape_source_up .*\n# EOF\n$/s);
  assert.equal(sent.length, whole.sizeBytes);
  assert.equal(await readAll(growing.read()), sent);
  assert.equal(growing.isCut?.(), false);
});

test('serveWhole() knows its size, and ends a last line that has no end', async () => {
  for (const text of ['a 1\n', 'a 1', 'lastscrape_build_info 1\na 1\n']) {
    const { body, push, end } = openBody();
    push(Buffer.from(text));
    end();
    const served = await serveWhole(body, VALUES);
    const sent = await readAll(served.read());
    assert.equal(Buffer.byteLength(sent), served.sizeBytes);
    assert.match(sent, /^a 1\n# HELP lastscrape_source_up |^lastscrape_build_info 1\na 1\n# HELP/);
    assert.equal(sent.match(/^lastscrape_build_info/gm)?.length, 1);
    assert.equal(await readAll(served.read()), sent);
  }
});
