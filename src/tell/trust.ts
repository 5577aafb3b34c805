// Which servers to trust. TLS and the authorities are loaded with the first connection.

import { prepareSmallFile, type ReadSmallFile } from '../base/mounted-file.ts';
import type { Dial } from '../base/net/exchange.ts';

/** A file opens at once, or its mount hangs. */
export const FILE_TIMEOUT_MS = 2_000;

export type Trust = {
  readonly dial: Dial;
  /** Reads the authorities again; why the CA file cannot be used, or null. */
  readonly renew: (signal: AbortSignal) => Promise<string | null>;
  /** Why the newest server was not trusted, and forgets it; null if it was. */
  readonly takeDistrust: () => string | null;
};

/** Trusts the usual authorities, and those of `caFile` if it is set. */
export function openTrust(caFile: string | null): Trust {
  let authorities: string[] = [];
  let distrust: string | null = null;
  let dial: Dial | null = null;
  let readCaFile: ReadSmallFile | null = null;
  return {
    dial: async (...connection) => {
      if (dial === null) return { kind: 'unknown', why: 'no authorities' };
      return dial(...connection);
    },
    async renew(signal) {
      const [{ dialTls }, known] = await Promise.all([import('../base/net/dial-tls.ts'), import('./authorities.ts')]);
      dial ??= dialTls({
        readCa: () => authorities,
        onDistrust: (code) => {
          distrust = known.describeDistrust(code);
        },
      });
      authorities = [...known.listUsualAuthorities()];
      if (caFile === null) return null;
      readCaFile ??= prepareSmallFile(caFile, known.CA_FILE_MAX_BYTES);
      const file = await readCaFile({ timeoutMs: FILE_TIMEOUT_MS, signal });
      const parsed = 'why' in file ? file : known.parseAuthorities(file.text);
      if ('why' in parsed) return `the CA file ${caFile} cannot be used: ${parsed.why}`;
      authorities = [...parsed.certificates, ...authorities];
      return null;
    },
    takeDistrust() {
      const taken = distrust;
      distrust = null;
      return taken;
    },
  };
}
