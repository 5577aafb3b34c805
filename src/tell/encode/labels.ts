// Joins the labels of a sample and of its target as Prometheus does without `honor_labels`: a label of the
// sample with a name of the target's becomes `exported_NAME`. Pure.

import type { Label } from '../../exposition/lexer.ts';

const PREFIX = 'exported_';

/**
 * Makes the function that renames a sample's labels; it returns the same array where no name is the target's.
 *
 * The prefix is repeated until the name is free (scrape/scrape.go of prometheus/prometheus 2.42,
 * `resolveConflictingExposedLabels`).
 */
export function openLabelExporter(targetLabels: readonly Label[]): (labels: readonly Label[]) => readonly Label[] {
  const targetNames = new Set(targetLabels.map(([name]) => name));
  const isTargets = ([name]: Label) => targetNames.has(name);

  return (labels) => {
    if (!labels.some(isTargets)) return labels;
    const taken = new Set([...targetNames, ...labels.map(([name]) => name)]);
    return labels.map((label) => {
      if (!isTargets(label)) return label;
      let name = label[0];
      while (taken.has(name)) name = PREFIX + name;
      taken.add(name);
      return [name, label[1]];
    });
  };
}

/** Sorts labels by code units, which is the order of the bytes for every name but those beyond U+FFFF. */
export function compareNames([left]: Label, [right]: Label): number {
  return left < right ? -1 : 1;
}
