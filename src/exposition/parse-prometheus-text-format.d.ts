// parse-prometheus-text-format 1.1.1 ships no types. As far as it is used here: one line at a time, values as
// they stand in it.
declare module 'parse-prometheus-text-format' {
  type Metric = {
    /** As written; "" without one. */
    readonly value?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly timestamp_ms?: string;
  };
  type Family = { readonly name: string; readonly metrics: readonly Metric[] };
  /** @throws Error on a line that it cannot read. */
  export default function parsePrometheusTextFormat(text: string): readonly Family[];
}
