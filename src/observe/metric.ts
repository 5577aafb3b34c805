// `metric:NAME`: main is done when the exporter's one sample NAME, without labels, is 0. Locust's request
// rows prove that it was alive: the exporter keeps them from Locust (fixtures/recordings, locust_exporter
// 0.4.0 to 0.5.2).

import type { ConditionKind } from './condition-kind.ts';

/** The exposition format's names (Prometheus documentation, "Metric names and labels"), without quoting. */
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;

export const metricKind: ConditionKind = {
  name: 'metric',
  usage: 'metric:NAME',
  meaning: 'the one sample of NAME, without labels, is 0',
  read(name) {
    if (!METRIC_NAME.test(name)) return { problem: 'a metric name such as "locust_up"' };
    return {
      value: {
        text: `metric:${name}`,
        metricName: name,
        need: 'the exporter must serve it',
        async observe({ exporter }) {
          if (exporter.observation.kind === 'none') return { kind: 'notObserved' };
          const reading = exporter.metric(name);
          if (reading.kind === 'unknown') return { kind: 'unknown', why: `${name} unknown: ${reading.why}` };
          const seen = `${name} ${reading.value}`;
          if (reading.value !== 0) return { kind: 'alive', seen };
          return { kind: 'done', seen, provesWasAlive: exporter.hasRequests };
        },
      },
    };
  },
};
