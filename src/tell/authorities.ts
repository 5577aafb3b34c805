// Certificate authorities: Node's, the system's, and those of a file. Imported late: it loads node:tls.

import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';

/** The bundle of a Linux system has about 250 KB. */
export const CA_FILE_MAX_BYTES = 1024 * 1024;

let usual: readonly string[] | null = null;

/** The authorities trusted without a file, as PEM: Mozilla's, built into Node, and the system's. */
export function listUsualAuthorities(): readonly string[] {
  usual ??= [...getCACertificates('bundled'), ...getCACertificates('system')];
  return usual;
}

/** The certificates of a PEM file, or why it cannot be used. */
export function parseAuthorities(
  text: string,
): { readonly certificates: readonly string[] } | { readonly why: string } {
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0) return { why: 'it has no certificate in PEM form' };
  const wrong = certificates.findIndex((certificate) => !isReadable(certificate));
  return wrong < 0
    ? { certificates }
    : { why: `its certificate ${wrong + 1} of ${certificates.length} cannot be read` };
}

function isReadable(certificate: string): boolean {
  try {
    return new X509Certificate(certificate).subject !== null;
  } catch {
    return false;
  }
}

/** Why a server was not trusted, by Node's error code, and what to do about it. */
export function describeDistrust(code: string): string {
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `its certificate has expired (${code})`;
    case 'CERT_NOT_YET_VALID':
      return `its certificate is not valid yet (${code}): is the clock right?`;
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `its certificate is for another name (${code})`;
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return `its certificate is signed by an untrusted authority (${code}): set LASTSCRAPE_CA_FILE`;
    default:
      return `its certificate is not trusted (${code})`;
  }
}
