// `locust-exporter`: POST /quitquitquit on the host and port of METRICS_URL. The exporter exits inside the handler, so the
// normal answer is a closed connection (locust_exporter 0.5.0 and 0.5.2, fixtures/recordings).

import { httpTarget } from './http-target.ts';
import type { TargetKind } from './target.ts';

export const locustExporterKind: TargetKind = {
  usage: 'locust-exporter',
  meaning: '`POST /quitquitquit` on the host and port of `LASTSCRAPE_METRICS_URL`',
  read(entry, { metricsUrl, version }) {
    if (entry !== 'locust-exporter') return null;
    return {
      value: httpTarget({
        name: 'locust-exporter',
        method: 'POST',
        url: new URL('/quitquitquit', metricsUrl),
        version,
        hint: (answer) =>
          answer.kind === 'answered' && answer.isHtml
            ? 'it answered with a page of HTML: a locust_exporter before v0.5.0 has no /quitquitquit'
            : null,
      }),
    };
  },
};
