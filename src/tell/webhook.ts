// Posts the report to a webhook as JSON, with a sentence for a person. Nothing depends on the result.

import type { Report } from '../decide/report/report-fields.ts';
import type { WebhookResult } from '../decide/state.ts';
import type { Identity } from '../pod/identity.ts';
import { type Sending, sendInTries } from './deliver.ts';
import { judgeStatus } from './receivers/receiver.ts';

const TRIES_COUNT = 3;
const TRY_TIMEOUT_MS = 5_000;
const PAUSES_MS: readonly number[] = [1_000, 2_000];

/** Sends the message; never rejects. */
export async function sendWebhook({
  url,
  message,
  ...sending
}: Sending & { readonly message: Readonly<Record<string, unknown>> }): Promise<WebhookResult> {
  const body = Buffer.from(JSON.stringify(message));
  const result = await sendInTries({
    makeRequest: () => ({
      method: 'POST',
      path: url.pathname + url.search,
      headers: { 'content-type': 'application/json; charset=utf-8', accept: '*/*' },
      body,
    }),
    judge: judgeStatus,
    timeoutsMs: [TRY_TIMEOUT_MS],
    pausesMs: PAUSES_MS,
    maxCount: TRIES_COUNT,
    ...sending,
  });
  if (result.kind === 'accepted') return result;
  const { kind, why, tries } = result;
  return { kind, why, tries };
}

/** The report, with the pod's identity and the sentence that chat tools show (`text`). */
export function buildMessage(report: Report, identity: Identity): Readonly<Record<string, unknown>> {
  return { text: formatText(report, identity), ...identity, ...report };
}

/** The pod, the summary, and if something went wrong the hints and the command to look further. */
function formatText(report: Report, { namespace, pod, hostname, job }: Identity): string {
  const { summary, outcome, hint, exitCode, targets = [] } = report;
  const where = Object.entries({ Job: job, namespace, pod, hostname })
    .flatMap(([what, name]) => (name === undefined ? [] : [`${what} ${name}`]))
    .join(', ');
  const hints = [hint, ...targets.map((target) => target.hint)].filter((each) => each !== undefined);
  const isWell = exitCode === 0 && ['scraped', 'handedOver', 'released'].includes(outcome) && hints.length === 0;
  const inNamespace = namespace === undefined ? '' : ` -n ${namespace}`;
  const look =
    pod !== undefined
      ? [`kubectl describe pod${inNamespace} ${pod}`]
      : hostname !== undefined
        ? [`kubectl get pods${inNamespace} (the pod's name is not known: set POD_NAME by fieldRef)`]
        : [];
  return [`${where === '' ? '' : `${where}: `}${summary}`, ...hints, ...(isWell ? [] : look)].join('\n');
}
