// Whose scrapes count. Whoever sends the header of a Prometheus scrape is a scraper; of those who do not send it, only the
// programs of this table are, each as its source was read. A person's curl, a probe and the kubelet are none.

/**
 * What a scraper tells its target: how long it waits. Sent by Prometheus and its agent mode (prometheus/prometheus
 * scrape/scrape.go, which Grafana Alloy and the Collector's Prometheus receiver run) and by vmagent
 * (VictoriaMetrics/VictoriaMetrics lib/promscrape/client.go). In lower case, as Node names headers.
 */
export const SCRAPE_TIMEOUT_HEADER = 'x-prometheus-scrape-timeout-seconds';

/** Scrapers that do not send the header: how their User-Agent begins. */
export const SCRAPER_AGENTS: readonly { readonly name: string; readonly prefix: string }[] = [
  // DataDog/integrations-core datadog_checks_base/datadog_checks/base/utils/headers.py, get_default_headers(): "Datadog Agent/VERSION";
  // used by RequestsWrapper in http.py beside it, by which the openmetrics check asks.
  { name: 'the Datadog Agent', prefix: 'Datadog Agent/' },
  // influxdata/telegraf plugins/inputs/prometheus/prometheus.go, headers "User-Agent": internal.ProductToken(), which is
  // "Telegraf/VERSION Go/VERSION" (internal/internal.go).
  { name: 'Telegraf', prefix: 'Telegraf/' },
  // netdata/netdata src/go/plugin/go.d/pkg/web/request.go, "Netdata NAME.plugin/VERSION"; pkg/prometheus/client.go beside it
  // makes its requests there.
  { name: 'Netdata', prefix: 'Netdata ' },
  // vectordotdev/vector src/http.rs, "NAME/VERSION", with get_app_name() of src/lib.rs; src/sources/prometheus/scrape.rs asks
  // through it (src/sources/util/http_client.rs).
  { name: 'Vector', prefix: 'Vector/' },
  // elastic/beats metricbeat/helper/http.go, useragent.UserAgent("Metricbeat"), which is "Elastic-Metricbeat/VERSION (…)"
  // (libbeat/common/useragent/useragent.go); metricbeat/helper/prometheus/prometheus.go asks through it.
  { name: 'Metricbeat', prefix: 'Elastic-Metricbeat/' },
];

/** Whether a request is one whose scrape counts. `agent`: its User-Agent, '' where it has none. */
export function isScraper(request: { readonly hasTimeoutHeader: boolean; readonly agent: string }): boolean {
  return request.hasTimeoutHeader || SCRAPER_AGENTS.some(({ prefix }) => request.agent.startsWith(prefix));
}
