// The kinds of receivers of LASTSCRAPE_PUSH, a row each.

import { otlp } from './otlp.ts';
import type { PushKind } from './push-kind.ts';
import { pushgateway } from './pushgateway.ts';
import { remoteWrite } from './remote-write.ts';

/** In the order in which messages list them. */
export const PUSH_KINDS: readonly PushKind[] = [pushgateway, remoteWrite, otlp];
