// Airflow's KubernetesPodOperator, run beside the API server by `dag.test()` (stand-in/airflow-tasks.py), a process for each task.

import { execFileSync } from 'node:child_process';
import { mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../support/folder.ts';
import { IMAGES } from '../images.ts';
import { START_MS } from '../scenario.ts';
import { AIRFLOW, programPath } from './builds.ts';
import { addTry, DEADLINE_SECONDS, type Framework, type Task } from './framework.ts';
import { startController } from './install.ts';

const SCRIPT = join(import.meta.dirname, '../../stand-in/airflow-tasks.py');

type Airflow = { readonly child: ReturnType<typeof startController>; readonly tasks: number };
let opened: Promise<Airflow> | undefined;

/** One for all: what it imports takes 10 s of CPU. Tasks go to it by a pipe with a name. */
async function open(): Promise<Airflow> {
  const home = makeFolder();
  const dags = join(home, 'dags');
  mkdirSync(dags);
  const env = {
    AIRFLOW_HOME: home,
    AIRFLOW__CORE__LOAD_EXAMPLES: 'False',
    AIRFLOW__CORE__DAGS_FOLDER: dags,
    AIRFLOW__LOGGING__LOGGING_LEVEL: 'WARNING',
  };
  const options = { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'inherit'] } as const;
  execFileSync(programPath(AIRFLOW, 'airflow'), ['db', 'migrate'], {
    ...options,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const pipe = join(home, 'tasks');
  execFileSync('mkfifo', [pipe]);
  const command = ['/bin/sh', '-c', 'exec "$0" "$1" <"$2"', programPath(AIRFLOW, 'python'), SCRIPT, pipe];
  const tasks = openSync(pipe, 'r+');
  const child = startController('airflow', command, env);
  await child.waitForLine(/^READY$/, START_MS);
  return { child, tasks };
}

/** @param more arguments of the operator */
export function makeAirflow(name: string, more: Readonly<Record<string, unknown>>): Framework {
  const idOf = (task: Task) => `${name.toLowerCase().replaceAll(/\W+/g, '-')}-${task.name}`;
  return {
    name,
    version: AIRFLOW.version.replace('-', ', provider '),
    container: 'base',
    states: {
      succeeded: 'success',
      failed: 'failed',
      killed: 'failed',
      retried: 'success',
      deleted: 'failed',
      // The triggerer's time-outs are not `dag.test()`'s.
      ...(more['deferrable'] === true ? {} : { 'timed out': 'failed' }),
    },
    async install() {
      opened ??= open();
      await opened;
    },
    async start(namespace, task) {
      const { image, command, env } = addTry(task, { value: '{{ ti.try_number - 1 }}' });
      const variables = Object.fromEntries(env.map((each) => [each.name, each.value]));
      const timeout = task.ending === 'timed out' ? { execution_timeout: DEADLINE_SECONDS } : {};
      const line = {
        id: idOf(task),
        name: task.name,
        namespace: namespace.name,
        image,
        command,
        env: { ...variables, ...(more['do_xcom_push'] === true ? { TASK_XCOM: '/airflow/xcom/return.json' } : {}) },
        labels: task.labels,
        annotations: task.annotations,
        sidecarImage: IMAGES.busybox,
        arguments: { ...more, ...timeout, retries: task.ending === 'retried' ? 1 : 0 },
      };
      writeSync((await opened)?.tasks ?? -1, `${JSON.stringify(line)}\n`);
    },
    async readState(_, task) {
      const line = (await opened)?.child.lines.findLast(({ text }) => text.startsWith(`STATE ${idOf(task)} `));
      return line?.text.split(' ')[2];
    },
  };
}
