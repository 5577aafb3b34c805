// Turns a recorded exposition of locust_exporter back into answers of Locust that lead to it.

import assert from 'node:assert/strict';

/** Answers of Locust that lead to an exposition. */
export type RebuiltStats = {
  readonly isUp: boolean;
  readonly hasRows: boolean;
  /** What Locust must have said before, to leave all these rows; not in the exporter's order. */
  readonly rows: Buffer;
  /** What it said in the fetch of this scrape. */
  readonly last: Buffer;
};

const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)$/s;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/gs;

/** The samples of a recorded exposition. */
function readSamples(text: string) {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', labels = '', value] = SAMPLE.exec(line) ?? assert.fail(line);
    const readText = (text = '') => text.replace(/\\(.)/gs, (_, char) => (char === 'n' ? '\n' : char));
    const pairs = [...labels.matchAll(LABEL)].map(([, label = '', text]) => [label, readText(text)]);
    return { name, labels: Object.fromEntries(pairs) as Readonly<Record<string, string>>, value: Number(value) };
  });
}

/** Turns a recorded exposition back into answers of Locust that lead to it. */
export function rebuildStats(body: string): RebuiltStats {
  const samples = readSamples(Buffer.from(body, 'latin1').toString());
  const value = (name: string) => samples.find((sample) => sample.name === name)?.value ?? 0;
  const rows = new Map<string, Record<string, string | number>>();
  const errors: object[] = [];
  const details: { id: string; state: string; user_count: number }[] = [];
  for (const { name, labels, value: count } of samples) {
    const { method = '', name: request = '', error = '', id = '', state = '' } = labels;
    if (name === 'locust_errors') errors.push({ method, name: request, error, occurrences: count });
    else if (name === 'locust_worker_detail') details.push({ id, state, user_count: count });
    else if (name.startsWith('locust_requests_') && 'method' in labels) {
      const key = JSON.stringify(labels);
      const row = rows.get(key) ?? { method, name: request };
      rows.set(key, row);
      row[name.slice('locust_requests_'.length)] = count;
    }
  }
  const stats = [...rows.values()].toReversed();
  const running = value('locust_running');
  const last = {
    stats,
    errors,
    workers: chooseWorkers(details, value('locust_workers_count'), {
      running: value('locust_workers_running_count'),
      missing: value('locust_workers_missing_count'),
    }),
    state: running === 2 ? 'running' : running === 1 ? 'hatching' : 'stopped',
    user_count: value('locust_users'),
    fail_ratio: value('locust_requests_fail_ratio'),
  };
  return {
    isUp: value('locust_up') === 1,
    hasRows: rows.size > 0,
    rows: Buffer.from(JSON.stringify({ ...last, workers: details.toReversed() })),
    last: Buffer.from(JSON.stringify(last)),
  };
}

/** The rows of locust_worker_detail stay: the counts say which of them are the workers of now. */
function chooseWorkers<W extends { id: string; state: string }>(
  details: readonly W[],
  count: number,
  counts: { running: number; missing: number },
): W[] {
  let choices: W[][] = [[]];
  for (const states of Map.groupBy(details, ({ id }) => id).values()) {
    choices = choices.flatMap((chosen) => [chosen, ...states.map((state) => [...chosen, state])]);
  }
  const inState = (workers: readonly W[], state: string) => workers.filter((worker) => worker.state === state).length;
  const found = choices.find(
    (workers) =>
      workers.length === count &&
      inState(workers, 'running') === counts.running &&
      inState(workers, 'missing') === counts.missing,
  );
  assert.ok(found !== undefined, 'the counts fit no choice of the recorded workers');
  return found;
}
