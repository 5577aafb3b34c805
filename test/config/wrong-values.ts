// Values that the variables refuse, each by what it is told it must be.

const DURATION = 'a duration such as "90s", "1m30s" or "500ms"';
export const HTTP_URL = 'an http: URL without user and password, such as "http://localhost:9646/metrics"';
const CONDITION =
  '"metric:NAME", "port:[HOST:]PORT", "file:PATH", "process:NAME", "tombstone:PATH", "container:NAME" or "sigterm"';
const PORT =
  'port:[HOST:]PORT with a port from 1 to 65535, with or without a loopback host before it, such as "5557" or "127.0.0.1:5557"';
const TARGET = 'a preset of lastscrape --help, "signal:[SIGNAL:]NAME", "[METHOD ]URL" or "none"';
export const TOMBSTONE = '"none" or an absolute path such as "/graveyard/lastscrape"';
export const MESSAGE = 'an absolute path such as "/dev/termination-log"';
export const KEEPER_URL =
  '"none", "push", or the http: URL of a keeper without a path, such as "http://lastscrape-keeper.monitoring.svc:9470"';
const PORT_NAME = 'CONTAINER/PORT_NAME, such as "lastscrape/lastscrape", or "main/" where the port has no name';
export const QUIT_URL = 'an http: URL such as "http://localhost:9646/quitquitquit"';
export const PERCENT = 'a URL whose user and password are percent-encoded UTF-8: a "%" is "%25"';
export const COMMAS = 'separated by commas: "…"';
const MEANT = '; did you mean "…"?';
const FOREIGN = '; "…" is not loopback: the ports of another host never prove anything about main';

/** A variable, what it must be, and wrong values by what stands for `…`. */
type Wrong = readonly [name: string, must: string, values: Readonly<Record<string, readonly string[]>>];
export const WRONG: readonly Wrong[] = [
  ['TTL', DURATION, { '': ['90 s', '90S', '30s1m', '1.5m', '1d', '0.1', '1y', '9O s', '-1', '1m1m'] }],
  ['TTL', 'at most 8760h', { '': ['8761h', '9999999h'] }],
  ['POLL', 'at least 100ms', { '': ['99ms'] }],
  ['QUIT_TIMEOUT', 'at least 1ms', { '': ['0'] }],
  ['SETTLE', DURATION, { '': ['soon'] }],
  ['START_TIMEOUT', DURATION, { '': ['1d'] }],
  ['RUN_TIMEOUT', DURATION, { '': ['x'] }],
  ['TERMINATION_GRACE', DURATION, { '': ['s'] }],
  ['SCRAPES', '"auto", or a whole number from 0 to 1000', { '': ['one', '1001', '-1'] }],
  ['TOMBSTONE', TOMBSTONE, { '': ['/graveyard/', '/'] }],
  ['TERMINATION_LOG', MESSAGE, { '': ['/', '/dev/'] }],
  [
    'HOOKS',
    '"none" or an absolute path such as "/lastscrape-hooks" (the annotation lastscrape.dev/hook must be "python")',
    { '': ['/hooks//', '/', 'pyhton'] },
  ],
  ['HAND_OVER', KEEPER_URL, { '': ['https://keeper', 'keeper:9470', 'http://localhost/x', 'http://k:0'] }],
  ['HAND_OVER_AS', PORT_NAME, { '': ['lastscrape', 'A/b', 'a/b/c', '/x'] }],
  ['HAND_OVER_FOLDER', 'an absolute path such as "/var/run/lastscrape/pod"', { '': ['pod', '/'] }],
  ['EXIT_ZERO', '"true" or "false"', { '': ['True'] }],
  ['DRY_RUN', '"true" or "false"', { '': ['1'] }],
  ['LOG_LEVEL', '"debug", "info", "warn" or "error"', { '': ['INFO'] }],
  ['METRICS_URL', HTTP_URL, { '': ['https://localhost:9646/metrics', 'localhost:9646', 'http://localhost:0/metrics'] }],
  ['METRICS_URL', HTTP_URL, { '': ['http://localhost:96460/metrics', 'locust://localhost:8089', '/shared/job.prom'] }],
  ['DONE_WHEN', CONDITION, { '': ['port', 'odd:thing', 'signal:nginx', 'metric'] }],
  ['DONE_WHEN', CONDITION + MEANT, { 'port:9': ['prt:9', 'Port=9'], 'port:5557': ['5557'] }],
  ['DONE_WHEN', CONDITION + MEANT, { 'port:localhost:5557': ['localhost:5557'] }],
  ['DONE_WHEN', CONDITION + MEANT, { 'container:load': ['containers:load'] }],
  ['DONE_WHEN', CONDITION + MEANT, { 'file:/shared/done': ['/shared/done'], 'metric:locust_up': ['locust_up'] }],
  ['DONE_WHEN', CONDITION + MEANT, { sigterm: ['sigterm:', 'sigterm:30s', 'SIGTERM', 'SIG_TERM', 'sigtrem'] }],
  ['DONE_WHEN', CONDITION + MEANT, { sigterm: ['signal', 'signal:', 'TERM', 'sigint'] }],
  [
    'DONE_WHEN',
    COMMAS,
    { 'metric:up,port:5557': ['metric:up; port:5557;', 'metric:up\nport:5557', 'metric:up port:5557'] },
  ],
  ['DONE_WHEN', COMMAS, { 'file:/a/b,port:5557': ['file:/a/b;port:5557'], 'port:5557': ['port:5557;'] }],
  ['DONE_WHEN', 'metric:NAME with a metric name such as "locust_up"', { '': ['metric:a-b'] }],
  ['DONE_WHEN', 'file:PATH with an absolute path such as "/shared/done"', { '': ['file:done'] }],
  [
    'DONE_WHEN',
    'file:PATH with the path of a file such as "/shared/done", without a slash at its end',
    { '': ['file:/shared/', 'file:/'] },
  ],
  ['DONE_WHEN', PORT, { '': ['port:0', 'port:http', 'port:65536', 'port:127.0.0.256:1'] }],
  ['DONE_WHEN', PORT + FOREIGN, { db: ['port:db:5432'], 'example.org': ['port:example.org:80'] }],
  ['DONE_WHEN', PORT + FOREIGN, { '10.0.0.1': ['port:10.0.0.1:80'], '[fe80::1]': ['port:[fe80::1]:80'] }],
  ['QUIT', TARGET, { '': ['quitquitquit', 'nginx', 'haproxy', 'redis_exporter'] }],
  ['QUIT', TARGET + MEANT, { istio: ['istio-proxy', 'pilot-agent', 'istioo'] }],
  ['QUIT', TARGET + MEANT, { linkerd: ['linkerd-proxy', 'linkerd2-proxy'] }],
  ['QUIT', TARGET + MEANT, { dapr: ['daprd'], 'cloud-sql-proxy': ['cloudsql', 'cloudsql-proxy', 'cloud_sql_proxy'] }],
  ['QUIT', TARGET + MEANT, { 'cloud-sql-proxy:9092': ['cloud_sql_proxy:9092'] }],
  ['QUIT', TARGET + MEANT, { 'alloydb-proxy': ['alloydb-auth-proxy'] }],
  ['QUIT', TARGET + MEANT, { 'vault-agent': ['vault'], 'consul-dataplane': ['consul'], 'statsd-exporter': ['statsd'] }],
  ['QUIT', TARGET + MEANT, { 'locust-exporter': ['locust_exporter', 'locust-metrics-exporter'], envoy: ['Envoy'] }],
  ['QUIT', TARGET + MEANT, { none: ['None', 'off'] }],
  ['QUIT', TARGET + MEANT, { 'http://localhost:9646/quitquitquit': ['localhost:9646/quitquitquit'] }],
];
