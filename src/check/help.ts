// What `--help` prints. Pure.

import { wrap } from '../base/text.ts';
import type { Kinds } from '../config/config.ts';
import { VARIABLES } from '../config/variables.ts';
import { type LogEntry, MESSAGES } from '../decide/messages.ts';

/** Formats all of `--help`: every variable with its default, the kinds, the exit codes. */
export function formatHelp({ conditions, targets }: Kinds): string {
  const variables = VARIABLES.flatMap(({ name, default: value, defaultOtherwise: otherwise, meaning }) => [
    `  ${name}=${value}${otherwise === undefined ? '' : ` (${removeBackticks(otherwise)})`}`,
    ...wrap(removeBackticks(meaning), ' '.repeat(6), ' '.repeat(8)),
  ]);
  const kinds = (rows: readonly { readonly usage: string; readonly meaning: string }[]) =>
    rows.flatMap(({ usage, meaning }) => wrap(removeBackticks(meaning), `  ${usage.padEnd(18)}  `, '    '));
  return [
    "lastscrape: holds a Job's pod until Prometheus has taken its last scrape, then stops the helper containers",
    '',
    'Usage: lastscrape [--check | --ready | --version | --help | explain […] | keep [--check | --help]]',
    '  (no argument)  watch, hold, quit, exit',
    '  --check        read the environment, print the plan and what is found now, exit',
    '  --ready        wait until the lastscrape of this pod listens at LASTSCRAPE_FRONT, 5 s at most, exit',
    '  --version, -v  print version, commit and the version of Node, exit',
    '  --help, -h     print this, exit',
    "  explain        read a pod's or a Job's JSON from stdin, print what keeps it from completing and the fix, exit:",
    '                 kubectl get pod NAME --output=json | lastscrape explain [--json] [--targets FILE]',
    '  keep           keep the last numbers of pods that hand over until Prometheus has scraped them: see keep --help',
    '',
    'Variables, with their defaults; an empty value means "not set":',
    ...variables,
    '',
    'LASTSCRAPE_DONE_WHEN is a comma list of:',
    ...kinds(conditions),
    '',
    'LASTSCRAPE_QUIT is a comma list, in order, of:',
    ...kinds([...targets, { usage: 'none', meaning: 'stops nothing' }]),
    '  A preset with a default port takes another as NAME:PORT, and a service port as NAME:PORT:SERVICE_PORT.',
    '',
    "Also read: POD_NAME and POD_NAMESPACE (container:, push, webhook), DAPR_API_TOKEN (dapr); in place of Locust's exporter",
    '  LOCUST_EXPORTER_URI, LOCUST_EXPORTER_WEB_LISTEN_ADDRESS, LOCUST_EXPORTER_WEB_TELEMETRY_PATH, LOCUST_METRIC_NAMESPACE.',
    'Durations: 500ms, 90s, 1m30s, 2h; a bare integer is seconds. A comma inside a URL is %2C.',
    '',
    'Exit codes: 0 done, 1 a threshold fails, 64 usage, 65 explain cannot read its input, 69 a target still runs, 70 a bug, 75 cut short and not judged, 78 configuration, 130 a second SIGINT, or an interrupted --check',
    '',
  ].join('\n');
}

/** Formats a log entry as a line for a person. */
export function formatLogEntry({ id, fields }: LogEntry): string {
  const named = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
  return `${MESSAGES[id].text} (${named.join(', ')})`;
}

function removeBackticks(meaning: string): string {
  return meaning.replaceAll('`', '');
}
