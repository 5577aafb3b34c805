// Which encoding a client takes, by its Accept-Encoding (RFC 9110, 12.5.3). Pure.

/** A weight, as the RFC writes it: 0 to 1 with at most three digits. */
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Whether gzip is accepted and weighs at least as much as identity. An unreadable weight is 0. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const entry of (acceptEncoding ?? '').split(',')) {
    const [coding = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(coding, weight === undefined ? 1 : WEIGHT.test(weight) ? Number(weight) : 0);
  }
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0);
}
