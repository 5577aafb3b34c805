// What `--check` finds out about push and webhook: their URLs, and whether they can be reached. Sends no
// request.

import { redactHref, redactPath } from '../base/text.ts';
import { findIdentity, type IdentitySources } from '../pod/identity.ts';
import type { Delivery } from './deliver.ts';
import { findKind, listLabels, openPushDelivery, openWebhookDelivery, type TellingSettings } from './telling.ts';

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
  const listeners: Listener[] = [];
  if (push !== null) {
    const labels = listLabels(await findIdentity(identity), pushLabels);
    const url = new URL(findKind(push.to).findPath(push.url, labels), push.url.origin);
    const problems = await findProblems(openPushDelivery(settings));
    listeners.push({ name: `push ${push.to}+${redactHref(url)}`, problems });
  }
  if (webhook !== null) {
    const problems = await findProblems(openWebhookDelivery(settings));
    listeners.push({ name: `webhook ${redactPath(webhook)}`, problems });
  }
  return listeners;
}
