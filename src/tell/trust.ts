// Which servers to trust: those of the usual authorities, Node's and the system's, and those of a file.
// Imported late: it loads node:tls.

import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { prepareSmallFile } from '../base/mounted-file.ts';
import { type Trust as DialTrust, dialTls } from '../base/net/dial-tls.ts';
import type { Dial } from '../base/net/exchange.ts';
import { orNull } from '../base/parse.ts';
import type { Limits } from '../base/waits.ts';

/** Whom one receiver's connections trust. */
export type Trust = {
  readonly dial: Dial;
  /** Reads the authorities again; why the CA file cannot be used, or null. */
  readonly renew: (limits: Limits) => Promise<string | null>;
  /** Why the newest server was not trusted, and forgets it; null if it was. */
  readonly takeDistrust: () => string | null;
};

/** Trusts the usual authorities, and those of `caFile` if it is set. */
export function openTrust(caFile: string | null): Trust {
  const readCaFile = caFile === null ? null : prepareSmallFile(caFile, CA_FILE_MAX_BYTES);
  const trust: DialTrust = { authorities: [], distrust: null };
  return {
    dial: dialTls(trust),
    async renew(limits) {
      trust.authorities = listUsualAuthorities();
      if (readCaFile === null) return null;
      const file = await readCaFile(limits);
      const parsed = 'why' in file ? file : parseAuthorities(file.text);
      if ('why' in parsed) return `the CA file ${caFile} cannot be used: ${parsed.why}`;
      trust.authorities = [...parsed.certificates, ...trust.authorities];
      return null;
    },
    takeDistrust() {
      const { distrust } = trust;
      trust.distrust = null;
      return distrust && describeDistrust(distrust);
    },
  };
}

/** The bundle of a Linux system has about 250 KB. */
export const CA_FILE_MAX_BYTES = 1024 * 1024;

/** The authorities trusted without a file, as PEM: Mozilla's, built into Node, and the system's. */
export function listUsualAuthorities(): string[] {
  return [...getCACertificates('bundled'), ...getCACertificates('system')];
}

/** The certificates of a PEM file, or why it cannot be used. */
function parseAuthorities(text: string): { readonly certificates: string[] } | { readonly why: string } {
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0) return { why: 'it has no certificate in PEM form' };
  const wrong = certificates.findIndex(
    (certificate) => orNull(() => new X509Certificate(certificate).subject) === null,
  );
  return wrong < 0
    ? { certificates }
    : { why: `its certificate ${wrong + 1} of ${certificates.length} cannot be read` };
}

/** What does not come from an authority that is missing. */
const DISTRUST: Readonly<Record<string, readonly [what: string, advice: string]>> = {
  CERT_HAS_EXPIRED: ['has expired', ''],
  CERT_NOT_YET_VALID: ['is not valid yet', ': is the clock right?'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['is for another name', ''],
};

/** Why a server was not trusted, by Node's error code, and what to do about it. */
function describeDistrust(code: string): string {
  const [what, advice] = DISTRUST[code] ?? ['is signed by an untrusted authority', ': set LASTSCRAPE_CA_FILE'];
  return `its certificate ${what} (${code})${advice}`;
}
