// Push and webhook: who gets the last numbers, and the report. Imported only if one of them is configured.

import { redactHref, redactPath } from '../base/text.ts';
import type { LogEntry } from '../decide/messages.ts';
import type { Report } from '../decide/report/report-fields.ts';
import type { PushResult, WebhookResult } from '../decide/state.ts';
import type { Label } from '../exposition/lexer.ts';
import { findIdentity, type Identity, type IdentitySources } from '../pod/identity.ts';
import { readInTurns } from '../snapshot/body.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { type Delivery, openDelivery } from './deliver.ts';
import { sendPush } from './push.ts';
import { otlp } from './receivers/otlp.ts';
import { pushgateway } from './receivers/pushgateway.ts';
import type { PushKind } from './receivers/receiver.ts';
import { remoteWrite } from './receivers/remote-write.ts';
import { buildMessage, sendWebhook } from './webhook.ts';

/** Every kind of receiver, in the order in which messages list them. */
export const PUSH_KINDS: readonly PushKind[] = [pushgateway, remoteWrite, otlp];

/** Where the last numbers and the report go; a URL or a path that is not configured is null. */
type TellingSettings = {
  /** `to`: the name of a push kind. */
  readonly push: { readonly to: string; readonly url: URL } | null;
  /** Labels that the user adds to every pushed series. */
  readonly pushLabels: readonly Label[];
  readonly pushHeadersFile: string | null;
  readonly webhook: URL | null;
  readonly webhookHeadersFile: string | null;
  /** PEM certificates to trust in addition to the usual ones. */
  readonly caFile: string | null;
};

type TellingParts = {
  readonly settings: TellingSettings;
  readonly identity: IdentitySources;
  /** Now, in milliseconds since the epoch. */
  readonly wallMs: () => number;
  readonly log: (entry: LogEntry) => void;
};

/** Tells others of a run's end: until the signal, whose reason is a string. Never rejects. */
export type Telling = {
  /** Pushes the last page; null: none was read. */
  readonly push: (snapshot: Snapshot | null, signal: AbortSignal) => Promise<PushResult>;
  /** Sends the report to the webhook, in the same way. */
  readonly tell: (report: Report, signal: AbortSignal) => Promise<WebhookResult>;
  /** Warns of each file that cannot be used, while there is time to fix it. */
  readonly warnOfFiles: (signal: AbortSignal) => Promise<readonly LogEntry[]>;
  readonly close: () => Promise<void>;
};

/** Opens what is configured; connects and reads files only when used. */
export function openTelling({ settings, identity: sources, wallMs, log }: TellingParts): Telling {
  const { push, webhook, pushLabels } = settings;
  const { pushDelivery, webhookDelivery } = openDeliveries(settings);
  let identity: Promise<Identity> | null = null;
  const identify = () => {
    identity ??= findIdentity(sources);
    return identity;
  };

  return {
    async push(snapshot, signal) {
      if (push === null || pushDelivery === null) throw new Error('Bug: there is nowhere to push to');
      if (snapshot === null) return { kind: 'failed', why: 'no exposition was read completely' };
      const { body } = snapshot;
      return sendPush({
        kind: findKind(push.to),
        delivery: pushDelivery,
        url: push.url,
        labels: listLabels(await identify(), pushLabels),
        read: () => readInTurns(body.read()),
        format: body.type.format,
        nowMs: () => Math.round(wallMs()),
        signal,
        onRetry: (why) => log({ id: 'pushRetried', fields: { why } }),
      });
    },
    async tell(report, signal) {
      if (webhook === null || webhookDelivery === null) throw new Error('Bug: there is no webhook');
      return sendWebhook({
        delivery: webhookDelivery,
        url: webhook,
        message: buildMessage(report, await identify()),
        signal,
        onRetry: (why) => log({ id: 'webhookRetried', fields: { why } }),
      });
    },
    async warnOfFiles(signal) {
      const problems = await Promise.all([pushDelivery, webhookDelivery].map((each) => each?.checkFiles(signal)));
      const found = new Set(problems.filter((why) => typeof why === 'string'));
      return [...found].map((why) => ({ id: 'toldFileUnusable', fields: { why } }));
    },
    async close() {
      await Promise.all([pushDelivery?.close(), webhookDelivery?.close()]);
    },
  };
}

/** Null: not configured. */
function openDeliveries({ push, pushHeadersFile, webhook, webhookHeadersFile, caFile }: TellingSettings) {
  const open = (url: URL | undefined | null, headersFile: string | null) =>
    url ? openDelivery({ url, headersFile, caFile }) : null;
  return { pushDelivery: open(push?.url, pushHeadersFile), webhookDelivery: open(webhook, webhookHeadersFile) };
}

function findKind(to: string): PushKind {
  const kind = PUSH_KINDS.find(({ name }) => name === to);
  if (kind === undefined) throw new Error(`Bug: no such receiver: ${to}`);
  return kind;
}

/** The labels of the pushed series: the pod's identity, overridden by the user's labels. */
export function listLabels(identity: Identity, own: readonly Label[]): readonly Label[] {
  const known = Object.entries(identity).filter(([name]) => !own.some(([ownName]) => ownName === name));
  return [...known, ...own];
}

/** A receiver of the push or the report. */
export type Listener = {
  /** Its kind and URL, without secrets. */
  readonly name: string;
  /** What a request would fail on now: files, the network, trust. */
  readonly problems: readonly string[];
};

/** Connecting takes milliseconds, resolving a name some more. */
const CONNECT_TIMEOUT_MS = 3_000;

/** Finds the configured receivers; only with `isTried` are they connected to, and problems found. */
export async function findListeners(
  settings: TellingSettings,
  identity: IdentitySources,
  { isTried, signal }: { readonly isTried: boolean; readonly signal: AbortSignal },
): Promise<readonly Listener[]> {
  const { push, webhook, pushLabels } = settings;
  const findProblems = async (delivery: Delivery | null) =>
    isTried && delivery !== null ? delivery.tryConnect(CONNECT_TIMEOUT_MS, signal) : [];
  const { pushDelivery, webhookDelivery } = openDeliveries(settings);
  const listeners: Listener[] = [];
  if (push !== null) {
    const labels = listLabels(await findIdentity(identity), pushLabels);
    const url = new URL(findKind(push.to).findPath(push.url, labels), push.url.origin);
    // What we add to it is no secret.
    const shown = push.url.pathname === '/' ? redactHref(url) : redactPath(url);
    listeners.push({ name: `push ${push.to}+${shown}`, problems: await findProblems(pushDelivery) });
  }
  if (webhook !== null) {
    listeners.push({ name: `webhook ${redactPath(webhook)}`, problems: await findProblems(webhookDelivery) });
  }
  return listeners;
}
