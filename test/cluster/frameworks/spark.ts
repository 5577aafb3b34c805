// Spark in cluster mode: spark-submit beside the API server, a driver with Spark's own servlet as the source, one executor.

import { chmodSync, copyFileSync, cpSync, globSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { makeFolder } from '../../support/folder.ts';
import { findOnPath, findPrograms } from '../../support/programs.ts';
import { addBusybox } from '../images.ts';
import { copyLibraries, makeLocustRoot } from '../pod-root.ts';
import { getFixture } from '../scenario.ts';
import { frameworkPath, SPARK } from './builds.ts';
import type { Framework } from './framework.ts';
import { startController } from './install.ts';

const IMAGE = `localhost/lastscrape-test/spark:${SPARK.version}`;
const STAND_IN = join(import.meta.dirname, '../../stand-in');
/** Of a Java installation what no program needs to run. */
const NOT_RUN = /^(jmods|include|man|legal|docs|lib\/src\.zip)$/;

const children = new Map<string, ReturnType<typeof startController>>();

export const SPARK_FRAMEWORK: Framework = {
  name: 'Spark, the driver',
  version: SPARK.version,
  container: 'spark-kubernetes-driver',
  metric: 'metrics_task_driver_DAGScheduler_job_allJobs_Value',
  staggerSeconds: 35,
  states: { succeeded: 'Succeeded', failed: 'Failed', killed: 'Failed', deleted: 'Failed' },
  async install({ images }) {
    await images.loadFolderAs(IMAGE, makeRoot(), {
      entrypoint: ['/bin/sh', '/opt/entry.sh'],
      user: '185:0',
      env: ['PYTHONHOME=/usr', 'SPARK_HOME=/opt/spark', 'PYSPARK_PYTHON=/usr/bin/python', 'HOME=/tmp'],
      workingDir: '/tmp',
    });
  },
  prepare: (namespace) => {
    const [head, api] = [{ metadata: { name: 'spark' } }, 'rbac.authorization.k8s.io'];
    const resources = ['pods', 'services', 'configmaps', 'persistentvolumeclaims'];
    return namespace.apply(
      { apiVersion: 'v1', kind: 'ServiceAccount', ...head },
      { apiVersion: `${api}/v1`, kind: 'Role', ...head, rules: [{ apiGroups: [''], resources, verbs: ['*'] }] },
      {
        apiVersion: `${api}/v1`,
        kind: 'RoleBinding',
        ...head,
        roleRef: { apiGroup: api, kind: 'Role', name: 'spark' },
        subjects: [{ kind: 'ServiceAccount', name: 'spark' }],
      },
    );
  },
  async start(namespace, task) {
    const { 'prometheus.io/port': _, ...annotations } = task.annotations;
    const all = { ...annotations, 'lastscrape.dev/metrics-url': 'http://localhost:4040/metrics/prometheus/' };
    const { kubectl } = getFixture().cluster;
    const token = (await kubectl(['create', 'token', 'spark', `--namespace=${namespace.name}`])).trim();
    const settings = {
      // Its client cannot read keys of elliptic curves, as a kubeconfig may have.
      'spark.kubernetes.authenticate.submission.oauthToken': token,
      'spark.kubernetes.trust.certificates': 'true',
      'spark.kubernetes.namespace': namespace.name,
      'spark.kubernetes.container.image': IMAGE,
      'spark.kubernetes.container.image.pullPolicy': 'IfNotPresent',
      'spark.kubernetes.authenticate.driver.serviceAccountName': 'spark',
      'spark.kubernetes.driver.master': 'https://10.96.0.1:443',
      'spark.kubernetes.driver.request.cores': '100m',
      'spark.kubernetes.executor.request.cores': '100m',
      'spark.executor.instances': '1',
      ...prefix('spark.', { 'driver.memory': '640m', 'executor.memory': '640m' }),
      'spark.metrics.namespace': 'task',
      'spark.metrics.conf.*.sink.prometheusServlet.class': 'org.apache.spark.metrics.sink.PrometheusServlet',
      'spark.metrics.conf.*.sink.prometheusServlet.path': '/metrics/prometheus',
      ...prefix('spark.kubernetes.driver.label.', task.labels),
      ...prefix('spark.kubernetes.driver.annotation.', all),
      ...prefix(
        'spark.kubernetes.driverEnv.',
        Object.fromEntries(
          task.main.env.flatMap(({ name, value }) => (/^TASK_/.test(name) ? [[name, value ?? '']] : [])),
        ),
      ),
    };
    const [given, home] = [Object.entries(settings).flatMap((each) => ['--conf', each.join('=')]), findSparkHome()];
    const java = [findOnPath('java') ?? 'java', '-cp', join(home, 'jars/*'), 'org.apache.spark.deploy.SparkSubmit'];
    const master = ['--master', 'k8s://https://127.0.0.1:6443', '--deploy-mode', 'cluster', '--name', task.name];
    children.set(
      task.name,
      startController(`spark ${task.name}`, [...java, ...master, ...given, 'local:///opt/task.py'], {
        SPARK_HOME: home,
        KUBECONFIG: '',
      }),
    );
  },
  async readState(namespace, task) {
    const child = children.get(task.name);
    if (child?.exit === undefined) return undefined;
    const phase = child.lines.findLast(({ text }) => /phase: (Succeeded|Failed)/.test(text));
    if (phase !== undefined) return /phase: (\w+)/.exec(phase.text)?.[1];
    return `exit ${child.exit.code}: ${child.lines
      .map(({ text }) => text)
      .slice(-5)
      .join(' ')} ${namespace.name}`;
  },
};

function prefix(by: string, values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [by + name, value]));
}

function findSparkHome(): string {
  const [home] = globSync(join(frameworkPath(SPARK), 'lib/python*/site-packages/pyspark'));
  if (home === undefined) throw new Error(`Cannot use Spark: ${frameworkPath(SPARK)} has no pyspark`);
  return home;
}

/** Python, Java, Spark, and the scripts. */
function makeRoot(): string {
  const root = makeFolder();
  makeLocustRoot(root, findPrograms().locust?.[0] ?? '');
  addBusybox(root, findOnPath('busybox') ?? '');
  const java = dirname(dirname(realpathSync(findOnPath('java') ?? '')));
  cpSync(java, join(root, 'usr/lib/jvm'), {
    recursive: true,
    dereference: true,
    filter: (path) => !NOT_RUN.test(relative(java, path)),
  });
  copyLibraries([join(java, 'bin/java'), ...globSync(join(java, 'lib/**/*.so'))], root, [java]);
  for (const part of ['jars', 'python']) {
    cpSync(join(findSparkHome(), part), join(root, 'opt/spark', part), { recursive: true });
  }
  mkdirSync(join(root, 'etc'), { recursive: true });
  writeFileSync(join(root, 'etc/passwd'), 'spark:x:185:0::/tmp:/bin/sh\n');
  copyFileSync(join(STAND_IN, 'spark-entry.sh'), join(root, 'opt/entry.sh'));
  copyFileSync(join(STAND_IN, 'spark-task.py'), join(root, 'opt/task.py'));
  chmodSync(root, 0o755);
  return root;
}
