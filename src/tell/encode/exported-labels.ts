// The labels of a sample beside those of its target, as Prometheus has them without `honor_labels`: what the sample has under a
// name of the target's becomes `exported_NAME`. Pure.

import type { Label } from '../../exposition/lexer.ts';

const PREFIX = 'exported_';

/**
 * Makes the function that renames those of a sample's labels which a target has as well; it returns the same array where there is none.
 *
 * The prefix is repeated until nobody has the name (scrape/scrape.go of prometheus/prometheus 2.42, `resolveConflictingExposedLabels`).
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
