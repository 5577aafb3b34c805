// Where the Prometheus of the cluster test is, made by install.ts.

import { cachePath } from '../support/programs.ts';

/** Prometheus 3.10.0, as its Go module is numbered. */
export const CLUSTER_PROMETHEUS_VERSION = 'v0.310.0';

export const CLUSTER_PROMETHEUS_PATH = cachePath(`prometheus-kubernetes-${CLUSTER_PROMETHEUS_VERSION}`);
