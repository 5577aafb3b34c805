// Which requests are scrapes. Pure.

/**
 * The header with a scrape's timeout, in lower case, as Node names headers. Sent by Prometheus and its agent
 * mode (prometheus/prometheus scrape/scrape.go, which Grafana Alloy and the Collector's Prometheus receiver
 * run) and by vmagent (VictoriaMetrics/VictoriaMetrics lib/promscrape/client.go).
 */
export const SCRAPE_TIMEOUT_HEADER = 'x-prometheus-scrape-timeout-seconds';

/** Scrapers that do not send that header, by User-Agent prefix, each from its source. */
export const SCRAPER_AGENTS: readonly { readonly name: string; readonly prefix: string }[] = [
  // DataDog/integrations-core datadog_checks_base/datadog_checks/base/utils/headers.py,
  // get_default_headers(): "Datadog Agent/VERSION"; used by RequestsWrapper in http.py of that folder,
  // through which the openmetrics check asks.
  { name: 'the Datadog Agent', prefix: 'Datadog Agent/' },
  // influxdata/telegraf plugins/inputs/prometheus/prometheus.go, internal.ProductToken(), which is
  // "Telegraf/VERSION Go/VERSION" (internal/internal.go).
  { name: 'Telegraf', prefix: 'Telegraf/' },
  // netdata/netdata src/go/plugin/go.d/pkg/web/request.go, "Netdata NAME.plugin/VERSION", which
  // pkg/prometheus/client.go uses.
  { name: 'Netdata', prefix: 'Netdata ' },
  // vectordotdev/vector src/http.rs, "NAME/VERSION", with get_app_name() of src/lib.rs;
  // src/sources/prometheus/scrape.rs asks through it (src/sources/util/http_client.rs).
  { name: 'Vector', prefix: 'Vector/' },
  // elastic/beats metricbeat/helper/http.go, useragent.UserAgent("Metricbeat"), "Elastic-Metricbeat/VERSION
  // (…)" (libbeat/common/useragent/useragent.go); metricbeat/helper/prometheus/prometheus.go uses it.
  { name: 'Metricbeat', prefix: 'Elastic-Metricbeat/' },
];

/** Whether a request is a scrape, not a person's, a probe's or the kubelet's. `agent`: User-Agent or ''. */
export function isScraper(request: { readonly hasTimeoutHeader: boolean; readonly agent: string }): boolean {
  return request.hasTimeoutHeader || SCRAPER_AGENTS.some(({ prefix }) => request.agent.startsWith(prefix));
}
