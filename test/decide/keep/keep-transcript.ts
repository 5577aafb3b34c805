// Plays a transcript of the keeper's pages (fixtures/transcripts/keeper/README.md).

import {
  addDiscovery,
  addTake,
  advancePage,
  beginPage,
  findLivingAskers,
  NO_DISCOVERY,
  type PageLife,
} from '../../../src/decide/keep/keep.ts';

/** The transcript with its decisions written again. */
export function playKeeper(text: string): string {
  const pages = new Map<string, PageLife>();
  let discovery = NO_DISCOVERY;
  let sinceMs = Number.NEGATIVE_INFINITY;
  let isStopping = false;
  const out: string[] = [];
  for (const line of text.split('\n')) {
    if (!line.startsWith('>')) {
      // An indented line is a decision of the last run.
      if (!line.startsWith(' ')) out.push(line);
      continue;
    }
    out.push(line);
    const [time = '', what = '', name = '', by = ''] = line.slice(1).trim().split(/\s+/);
    const nowMs = Number(/^(\d+)s$/.exec(time)?.[1]) * 1000;
    if (what === 'page') pages.set(name, beginPage(nowMs));
    if (what === 'start') [discovery, sinceMs] = [NO_DISCOVERY, nowMs];
    if (what === 'stop') isStopping = true;
    if (what === 'asks') {
      const refreshMs = by === '' ? null : Number(/^refresh=(\d+)s$/.exec(by)?.[1]) * 1000;
      discovery = addDiscovery(discovery, { startedAtMs: nowMs, ...readClient(name) }, refreshMs);
    }
    const life = pages.get(name);
    if (what === 'scraped' && life !== undefined) {
      pages.set(name, addTake(life, { startedAtMs: nowMs, ...readClient(by) }));
    }
    const living = findLivingAskers(discovery, sinceMs, nowMs);
    for (const [page, before] of pages) {
      const after = advancePage(before, living, isStopping);
      if (after === null) {
        pages.delete(page);
        out.push(`    ${page} forgotten`);
      } else pages.set(page, after);
      if (after?.kind === 'answered' && before.kind === 'listed') {
        out.push(`    ${page} ${after.end}: off the list, answered until ${after.untilMs / 1000}s`);
      }
    }
    if (what === 'look')
      out.push(`    ${[...pages].map(([page, { kind }]) => `${page} ${kind}`).join(', ') || 'nothing'}`);
  }
  return out.join('\n');
}

/** `A`, or `A/2`: its second connection, open beside the first. */
function readClient(text: string) {
  const [address = '', number = '1'] = text.split('/');
  const connection = Number(number);
  const openConnections = Array.from({ length: connection - 1 }, (_, index) => index + 1);
  return { address, agent: 'Prometheus', connection, openConnections };
}
