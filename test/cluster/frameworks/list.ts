// The frameworks that test/cluster/frameworks.ts runs.

import { makeAirflow } from './airflow.ts';
import { ARGO_FRAMEWORK } from './argo.ts';
import type { Framework } from './framework.ts';
import { JOB_FRAMEWORK } from './job.ts';
import { JOBSET_FRAMEWORK } from './jobset.ts';
import { SPARK_FRAMEWORK } from './spark.ts';
import { makeTekton } from './tekton.ts';

export const FRAMEWORKS: readonly Framework[] = [
  JOB_FRAMEWORK,
  JOBSET_FRAMEWORK,
  ARGO_FRAMEWORK,
  makeAirflow('Airflow', {}),
  makeAirflow('Airflow, do_xcom_push', { do_xcom_push: true }),
  makeAirflow('Airflow, deferrable', { deferrable: true }),
  makeTekton('Tekton', false),
  makeTekton('Tekton, enable-kubernetes-sidecar', true),
  SPARK_FRAMEWORK,
];
