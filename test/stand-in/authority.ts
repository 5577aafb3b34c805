// A certificate authority for a test, made by the openssl program.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../support/folder.ts';
import { findOnPath, gateMissing } from '../support/programs.ts';

/** A certificate and its key, as PEM. */
export type Certificate = { readonly cert: string; readonly key: string };

export type Authority = {
  /** Its own certificate, as PEM: what a client trusts. */
  readonly ca: string;
  /** Signs a certificate for names (`DNS:a.test`) and addresses (`IP:127.0.0.1`), valid for a day. */
  readonly sign: (names: readonly string[], validity?: 'valid' | 'expired') => Certificate;
};

/** Makes an authority; valid for a day. Blank without openssl: `gateOpenssl` has the tests skipped then. */
export function makeAuthority(): Authority {
  if (findOnPath('openssl') === undefined) return { ca: '', sign: () => ({ cert: '', key: '' }) };
  const folder = makeFolder();
  const [cert, key] = [join(folder, 'ca.crt'), join(folder, 'ca.key')];
  openssl(['req', '-x509', ...NEW_KEY, '-keyout', key, '-out', cert, '-days', '1', '-subj', '/CN=stand-in']);
  const [ca, caKey] = [readFileSync(cert, 'utf8'), readFileSync(key, 'utf8')];
  return { ca, sign: (names, validity = 'valid') => sign(ca, caKey, names, validity) };
}

/** Why tests are skipped where openssl is missing, else false. @throws with CI=true */
export function gateOpenssl(file: string): string | false {
  const how = 'no openssl on the PATH; install it ("apt-get install openssl" on Debian)';
  return gateMissing(file, findOnPath('openssl') === undefined ? [how] : []);
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** A negative number of days is the past. */
const DAYS = { valid: '1', expired: '-1' } as const;

function sign(ca: string, caKey: string, names: readonly string[], validity: keyof typeof DAYS): Certificate {
  const folder = makeFolder();
  const path = (name: string) => join(folder, name);
  writeFileSync(path('ca.crt'), ca);
  writeFileSync(path('ca.key'), caKey);
  writeFileSync(path('names'), `subjectAltName=${names.join(',')}\n`);
  openssl(['req', ...NEW_KEY, '-keyout', path('key'), '-out', path('request'), '-subj', '/CN=kube-apiserver']);
  const by = ['-CA', path('ca.crt'), '-CAkey', path('ca.key'), '-CAcreateserial', '-extfile', path('names')];
  openssl(['x509', '-req', '-in', path('request'), ...by, '-days', DAYS[validity], '-out', path('cert')]);
  return { cert: readFileSync(path('cert'), 'utf8'), key: readFileSync(path('key'), 'utf8') };
}

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
