// `[METHOD ]URL`: any helper that ends by an HTTP request.

import { describeHighPort } from '../base/parse.ts';
import { httpTarget } from './http-target.ts';
import type { TargetKind } from './target.ts';

const ENTRY = /^(?:([A-Za-z]+) +)?([a-z][a-z0-9+.-]*:\/\/.*)$/i;
const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'];

export const urlKind: TargetKind = {
  usage: '[METHOD ]URL',
  meaning: 'one request to an `http:` URL, POST by default',
  read(entry, { pid, kill }) {
    const [, method = 'POST', text = ''] = ENTRY.exec(entry) ?? [];
    if (text === '') return null;
    const url = URL.parse(text);
    if (url === null || url.protocol !== 'http:') {
      return { problem: `an http: URL such as "http://localhost:9646/quitquitquit"${describeHighPort(text)}` };
    }
    if (!METHODS.includes(method.toUpperCase())) return { problem: `a method of ${METHODS.join(', ')} before the URL` };
    const headers = readAuthorization(url);
    if (headers === null) return { problem: 'a URL whose user and password are percent-encoded UTF-8: a "%" is "%25"' };
    return { value: httpTarget({ method: method.toUpperCase(), url, headers, sender: { pid, kill } }) };
  },
};

/** The Basic authorization, none without user and password; null: they are not percent-encoded UTF-8. */
function readAuthorization({ username, password }: URL): Readonly<Record<string, string>> | null {
  if (username === '' && password === '') return {};
  try {
    const pair = new TextEncoder().encode(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    return { authorization: `Basic ${btoa(String.fromCodePoint(...pair))}` };
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
