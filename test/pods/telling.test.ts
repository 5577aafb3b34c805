// lastscrape with each real receiver: main ends unscraped, and the receiver has its last numbers.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makeFolder } from '../support/folder.ts';
import { until } from '../support/until.ts';
import { openPod, startWatcher, untilReached } from '../support/watcher.ts';
import { gateFront } from './front-programs.ts';
import {
  type Receiver,
  readGroup,
  readSeriesValues,
  type SeriesValues,
  startPrometheusReceiver,
  startPushgateway,
} from './push-receivers.ts';

const skip = gateFront('test/pods/telling.test.ts', ['prometheus', 'prometheus3', 'pushgateway']);

/** A job's series as a receiver shows them. */
type Kind = {
  readonly name: string;
  readonly open: (directory: string) => Promise<Receiver>;
  readonly path: string;
  readonly read: (receiver: Receiver, job: string) => Promise<SeriesValues>;
};

const readStored = (receiver: Receiver, job: string) => readSeriesValues(receiver, `{job="${job}",instance="told"}`);
const openPrometheus = (program: 'prometheus' | 'prometheus3') => async (directory: string) =>
  startPrometheusReceiver(directory, program, { port: 1, written: [] } as never, []);

const KINDS: readonly Kind[] = [
  {
    name: 'pushgateway',
    open: startPushgateway,
    path: '',
    read: async (receiver, job) => (await readGroup(receiver, job)).values,
  },
  { name: 'remote-write', open: openPrometheus('prometheus'), path: '/api/v1/write', read: readStored },
  { name: 'otlp', open: openPrometheus('prometheus3'), path: '/api/v1/otlp/v1/metrics', read: readStored },
];

describe('the program and real receivers', { skip }, () => {
  const directory = makeFolder();
  const receivers = new Map<string, Receiver>();
  before(async () => {
    if (skip === false) for (const { name, open } of KINDS) receivers.set(name, await open(directory));
  });
  after(async () => {
    for (const receiver of receivers.values()) await receiver[Symbol.asyncDispose]();
  });

  for (const { name, path, read } of KINDS) {
    it(`${name}: unscraped, it has the last numbers`, async () => {
      await using pod = await openPod();
      const receiver = receivers.get(name);
      assert.ok(receiver);
      const job = `checkout-${name}`;
      const watcher = startWatcher({
        ...pod.env,
        LASTSCRAPE_TTL: '1s',
        LASTSCRAPE_PUSH: `${name}+http://localhost:${receiver.port}${path}`,
        LASTSCRAPE_PUSH_LABELS: `job=${job},instance=told`,
      });
      await watcher.said('main is running');
      await untilReached(pod);
      pod.locust.kill();
      const { report } = await watcher.ended;
      const told = [report?.['outcome'], JSON.stringify(report?.['push']).replace(/[\d.]+/, '0')];
      assert.deepEqual(told, ['expired', `{"to":"${name}","result":"accepted","seconds":0}`]);
      const final = report?.['final'] as { readonly requests: number; readonly users: number };
      const values = await until('the series', 30_000, async () => {
        const found = await read(receiver, job);
        return found.size > 5 ? found : undefined;
      });
      const find = (metric: string, label = '') =>
        [...values]
          .filter(([series]) => series.includes(`"${metric}"`) && series.includes(label))
          .map(([, value]) => value);
      assert.deepEqual(find('locust_up'), [0]);
      assert.deepEqual(find('locust_users'), [final.users], 'what vanished with Locust');
      assert.deepEqual(find('locust_requests_num_requests', '"Aggregated"'), [final.requests]);
    });
  }
});
