// deploy/ci/verdict.sh before a kubectl that answers as a cluster would at each end; the cluster's stories run it on a real one.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { makeFolder } from '../support/folder.ts';

const FOLDER = join(import.meta.dirname, '../../deploy/ci');
const SCRIPT = join(FOLDER, 'verdict.sh');

const PASSED = '{"outcome":"scraped","verdict":"passed","exitCode":0}';
const FAILED =
  '{"outcome":"scraped","verdict":"failed","failed":{"entry":"a{b=\\"\\"verdict\\":\\"passed\\"\\\\t\\"} > 1"},"exitCode":1}';

/** What kubectl prints for the Job, for pods of the container lastscrape, and of the exporter's. */
type Answers = {
  readonly job?: string;
  readonly lastscrape?: string;
  readonly exporter?: string;
  readonly code?: number;
  /** How many calls the first of all is followed by that fail, for the Job and for its pods. */
  readonly failing?: number;
  /** No kubeconfig, as in a pod. */
  readonly isInPod?: boolean;
};

function run(args: readonly string[], answers: Answers = {}) {
  const { job = '', lastscrape = '', exporter = '', code = 0, failing = 0, isInPod = false } = answers;
  const folder = makeFolder();
  writeFileSync(
    join(folder, 'kubectl'),
    `#!/bin/sh
printf '%s\\n' "$*" >>"$CALLS"
count=$(grep -c "^get $2" "$CALLS")
case "$*" in
*'config view'*) [ -z "$IN_POD" ] || exit 1; printf shop ;;
*'get job '*) [ "$count" -gt 1 ] && [ "$count" -le $((FAILING + 1)) ] && exit 1
  [ "$count" -gt "$FAILING" ] || JOB='a '
  printf '%s' "$JOB"; exit "$CODE" ;;
*'get pods '*) [ "$count" -gt "$FAILING" ] || exit 1 ;;
esac
case "$*" in
*"name=='lastscrape'"*) printf '%s' "$LASTSCRAPE" ;;
*"name=='locust-metrics-exporter'"*) printf '%s' "$EXPORTER" ;;
esac
`,
  );
  chmodSync(join(folder, 'kubectl'), 0o755);
  // The pauses pass at once, by a clock of their own.
  const clock = join(folder, 'clock');
  writeFileSync(clock, '1000');
  for (const [name, text] of [
    ['sleep', `echo $(($(cat "${clock}") + $1)) >"${clock}"`],
    ['date', `cat "${clock}"`],
  ] as const) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const calls = join(folder, 'calls');
  const env = {
    PATH: `${folder}:${process.env['PATH']}`,
    CALLS: calls,
    JOB: job,
    LASTSCRAPE: lastscrape,
    EXPORTER: exporter,
    CODE: String(code),
    FAILING: String(failing),
    IN_POD: isInPod ? 'yes' : '',
  };
  const { status, stdout, stderr } = spawnSync(SCRIPT, args, { env, encoding: 'utf8' });
  return { status, stdout, stderr, calls: status === null ? '' : tryRead(calls) };
}

const tryRead = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

for (const [what, answers, status, stdout, stderr] of [
  ['passed', { job: 'a Complete', lastscrape: PASSED }, 0, `${PASSED}\n`, /^$/],
  ["passed, in the exporter's place", { job: 'a Complete', exporter: PASSED }, 0, `${PASSED}\n`, /^$/],
  [
    'an exporter that is no lastscrape',
    { job: 'a Complete', exporter: 'log lines' },
    2,
    '',
    /no pod of it has a report/,
  ],
  ['failed by a threshold', { job: 'a Failed', lastscrape: FAILED }, 1, `${FAILED}\n`, /^$/],
  ['failed in a native sidecar', { job: 'a SuccessCriteriaMet Complete', lastscrape: FAILED }, 1, `${FAILED}\n`, /^$/],
  ['Locust failed', { job: 'a FailureTarget Failed', lastscrape: PASSED }, 1, `${PASSED}\n`, /failed by itself/],
  ['no report', { job: 'a Complete' }, 2, '', /Complete, and no pod of it has a report/],
  ['failed without a report', { job: 'a Failed' }, 1, '', /failed, and no pod of it has a report/],
  [
    'no verdict',
    { job: 'a Complete', lastscrape: '{"outcome":"scraped"}' },
    2,
    '{"outcome":"scraped"}\n',
    /no verdict: is LASTSCRAPE_FAIL_IF set/,
  ],
  [
    'failed without a verdict',
    { job: 'a Failed', lastscrape: '{"outcome":"scraped"}' },
    1,
    '{"outcome":"scraped"}\n',
    /the Job a failed/,
  ],
  [
    'one of several pods failed',
    { job: 'a Complete', lastscrape: `${PASSED}\n${FAILED}\n${PASSED}` },
    1,
    `${PASSED}\n${FAILED}\n${PASSED}\n`,
    /^$/,
  ],
  [
    'one of several pods has no verdict',
    { job: 'a Complete', lastscrape: `${PASSED}\n{"outcome":"terminated"}` },
    2,
    `${PASSED}\n{"outcome":"terminated"}\n`,
    /a report has no verdict/,
  ],
  ['several pods passed', { job: 'a Complete', lastscrape: `${PASSED}\n${PASSED}` }, 0, `${PASSED}\n${PASSED}\n`, /^$/],
  [
    'a cluster that is away for a moment',
    { job: 'a Complete', lastscrape: PASSED, failing: 20 },
    0,
    `${PASSED}\n`,
    /^$/,
  ],
  ['a cluster that is away', { job: 'a Complete', failing: 40 }, 2, '', /cannot ask for the Job a in shop/],
  ['no kubeconfig, in a pod', { job: 'a Complete', lastscrape: PASSED, isInPod: true }, 0, `${PASSED}\n`, /^$/],
  ['no Job', {}, 2, '', /^verdict.sh: no Job a in shop$/m],
  ['no cluster', { code: 1 }, 2, '', /cannot ask for the Job a in shop/],
  ['a Job that does not end', { job: 'a ' }, 2, '', /the Job a in shop has not ended within 6 s/],
] as const) {
  test(`verdict.sh: ${what}`, () => {
    const ended = run(['--timeout', 'failing' in answers ? '600' : '6', 'job/a'], answers);
    assert.deepEqual([ended.status, ended.stdout], [status, stdout], ended.stderr);
    assert.match(ended.stderr, stderr);
  });
}

test("verdict.sh: a LocustTest is its master's Job, which may come later, and the namespace can be named", () => {
  const { calls, status, stderr } = run(['--namespace', 'bank', 'locusttest/cart']);
  assert.equal(status, 2);
  assert.match(stderr, /no Job cart-master in bank/);
  assert.ok((calls.match(/^get job cart-master .* --namespace=bank /gm)?.length ?? 0) > 10, calls);
});

test('verdict.sh asks for all pods that succeeded of a Complete Job, for all of a failed one, and never without a time limit', () => {
  for (const [job, items] of [
    ['a Complete', '?(@.status.phase=="Succeeded")'],
    ['a Failed', '*'],
  ] as const) {
    const { calls } = run(['job/a'], { job, lastscrape: PASSED });
    assert.ok(calls.includes(`{range .items[${items}]}`), calls);
    assert.doesNotMatch(calls, /^get (?!.*--request-timeout=30s$)/m);
  }
});

for (const args of [
  [],
  ['a'],
  ['job/'],
  ['pod/a'],
  ['job/a', 'job/b'],
  ['--timeout', '1m', 'job/a'],
  ['--timeout'],
  ['-x', 'job/a'],
]) {
  test(`verdict.sh ${args.join(' ')}: its usage`, () => {
    const { status, stderr, calls } = run(args);
    assert.deepEqual([status, calls], [2, '']);
    assert.match(stderr, /usage: verdict.sh/);
  });
}

test('the action runs the script, prints its report, and ends with its code', () => {
  const { runs } = parse(readFileSync(join(FOLDER, 'action.yml'), 'utf8'));
  const folder = makeFolder();
  writeFileSync(join(folder, 'verdict.sh'), `#!/bin/sh\nprintf '%s\\n' '${FAILED}'; echo why >&2; exit 1\n`);
  chmodSync(join(folder, 'verdict.sh'), 0o755);
  const summary = join(folder, 'summary');
  const env = {
    PATH: process.env['PATH'],
    ACTION: folder,
    TARGET: 'job/a',
    NAMESPACE: '',
    TIMEOUT: '9',
    GITHUB_STEP_SUMMARY: summary,
  };
  const { status, stdout, stderr } = spawnSync('sh', ['-ec', runs.steps[0].run], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  assert.deepEqual([status, stdout, stderr], [1, `${FAILED}\n`, 'why\n']);
  assert.match(readFileSync(summary, 'utf8'), /^### lastscrape: job\/a\n\nwhy\n```json\n\{"outcome".*\n```\n$/);
});
