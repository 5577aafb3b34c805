// parse-prometheus-text-format 1.1.1 ships no types. As far as it is used here: one line at a time.
declare module 'parse-prometheus-text-format' {
  /** `value`: as written; "" without one. @throws Error on a line that it cannot read. */
  export default function parsePrometheusTextFormat(
    text: string,
  ): readonly { readonly metrics: readonly { readonly value?: string }[] }[];
}
