// The source of a story: a program that answers as the last line about it said.

import type { Exchange, ExchangeResult, Request } from '../../src/base/net/exchange.ts';
import { TEXT_ACCEPT } from '../../src/decide/serve/budget.ts';
import type { Format } from '../../src/exposition/format.ts';
import { END_LINE, TYPES, writeFamily } from './simulation/page.ts';
import type { World } from './simulation/world.ts';

type Answer = {
  readonly status: number;
  readonly hasLength: boolean;
  readonly end: 'whole' | 'cut' | 'stalls';
  readonly tookMs: number;
  /** By what is asked for. */
  readonly write: (acceptName: string) => { readonly type: string; readonly bytes: Buffer };
};

type Behaviour = Answer | 'hangs' | 'drops';

/** `tell` gets what comes of it. */
export function openStorySource(world: World, accepts: Readonly<Record<string, string>>, tell: (text: string) => void) {
  let isDown = false;
  let requestsCount = 0;
  const once: Behaviour[] = [];
  const always = new Map<string, Behaviour>([['', 'hangs']]);
  const open = new Map<number, { readonly reply: (answer: Behaviour) => void; readonly drop: () => void }>();

  function send(request: Request): Promise<ExchangeResult> {
    const { promise, resolve } = Promise.withResolvers<ExchangeResult>();
    const { signal } = request;
    if (signal?.aborted) resolve({ kind: 'failed', why: String(signal.reason), wasSent: false, status: null });
    else if (isDown) {
      tell('the source refuses');
      world.deliver(() => resolve({ kind: 'refused' }));
    } else follow(request, resolve);
    return promise;
  }

  function follow({ headers, signal, ...request }: Request, resolve: (result: ExchangeResult) => void): void {
    const number = ++requestsCount;
    const accept = String(headers['accept']);
    const name = Object.keys(accepts).find((each) => accepts[each] === accept) ?? accept;
    let status: number | null = null;
    const end = (result: ExchangeResult) => {
      if (open.delete(number)) world.deliver(() => resolve(result));
    };
    const fail = (why: string) => end({ kind: 'failed', why, wasSent: true, status });
    const drop = () => (status === null ? end({ kind: 'dropped' }) : fail('other side closed'));
    signal?.addEventListener('abort', () => {
      if (open.has(number)) tell(`request ${number} given up: ${signal.reason}`);
      fail(String(signal.reason));
    });
    const reply = (answer: Behaviour) => {
      if (answer === 'hangs') return;
      if (answer === 'drops') return drop();
      const { type, bytes } = answer.write(name);
      ({ status } = answer);
      request.onAnswer?.(status, {
        ...(type !== '' && { 'content-type': type }),
        ...(answer.hasLength && { 'content-length': '1' }),
      });
      if (bytes.length > 0) status === 200 ? request.onBody?.(bytes) : request.onOtherBody?.(bytes);
      if (answer.end === 'cut' && answer.hasLength) fail('other side closed');
      else if (answer.end !== 'stalls') end({ kind: 'answered', status, contentType: type });
    };
    open.set(number, { reply, drop });
    tell(`request ${number}${accept === TEXT_ACCEPT ? '' : ` for ${name}`}`);
    const behaviour = once.shift() ?? always.get(name) ?? always.get('') ?? 'hangs';
    const answer = () => open.has(number) && reply(behaviour);
    if (typeof behaviour === 'string' || behaviour.tookMs === 0) world.deliver(answer);
    else world.outside(world.nowMs() + behaviour.tookMs, answer);
  }

  return {
    exchange: { send, close: async () => {} } satisfies Exchange,
    take(text: string): void {
      if (text.startsWith('answers ')) {
        for (const each of text.slice('answers '.length).split(' and ')) {
          const [, number, answer = ''] = /^request (\d+): (.*)$/.exec(each) ?? [];
          open.get(Number(number))?.reply(readBehaviour(`shows ${answer}`).behaviour);
        }
        return;
      }
      if (text === 'starts') isDown = false;
      else if (text === 'stops') {
        isDown = true;
        for (const { drop } of open.values()) drop();
      } else {
        const { behaviour, isOnce, to } = readBehaviour(text);
        if (isOnce) once.push(behaviour);
        else if (to === '') {
          always.clear();
          always.set('', behaviour);
        } else always.set(to, behaviour);
      }
    },
  };
}

/** `shows (once, no length, cut) a 1; b 2`, `hangs`, `drops`. */
function readBehaviour(text: string) {
  const [, what = '', list = '', body = ''] = /^(\w+) ?(?:\(([^)]*)\) ?)?(.*)$/.exec(text) ?? [];
  const words = new Set(list.split(', ').filter(Boolean));
  const take = (word: string) => words.delete(word);
  const takeAfter = (start: string) => {
    const found = [...words].find((word) => word.startsWith(start));
    if (found !== undefined) words.delete(found);
    return found?.slice(start.length);
  };
  const isOnce = take('once');
  const to = takeAfter('to ') ?? '';
  const format = takeAfter('as ');
  const type = takeAfter('type ') ?? TYPES.text;
  const answer: Answer = {
    status: Number(takeAfter('HTTP ') ?? 200),
    hasLength: !take('no length'),
    tookMs: Number(takeAfter('after ')?.replace('s', '') ?? 0) * 1_000,
    end: take('cut') ? 'cut' : take('stalls') ? 'stalls' : 'whole',
    write: (name) =>
      format === undefined ? { type: TYPES[type as Format] ?? type, bytes: Buffer.from(lines) } : writePage(name),
  };
  const lines =
    body === '' ? '' : body.replaceAll('; ', '\n').replaceAll('\\r', '\r') + (take('within a line') ? '' : '\n');
  if (words.size > 0 || !['shows', 'hangs', 'drops'].includes(what)) throw new Error(`cannot read "source ${text}"`);
  return { isOnce, to, behaviour: what === 'shows' ? answer : (what as 'hangs' | 'drops') };

  /** A page of these numbers, in the format that is asked for or in one that is not. */
  function writePage(name: string) {
    const wanted = format === 'asked' ? name : format;
    const chosen = wanted !== undefined && wanted in TYPES ? (wanted as Format) : 'text';
    const rows = body.split('; ').map((row) => row.split(' '));
    const text = rows.map(([series = '', value]) => writeFamily(chosen, series, Number(value))).join('');
    return { type: TYPES[chosen], bytes: Buffer.from(text + (chosen === 'openMetrics' ? END_LINE : ''), 'latin1') };
  }
}
