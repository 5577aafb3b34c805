// What an answer shows of the entries of FAIL_IF, as fixtures write it.

import type { ThresholdReading } from '../../src/decide/model.ts';

/** `0.02,none,unmatched:{a="b"}|{},NaN,Inf`: one of each entry, with what is nearest; none of an empty text. */
export function readThresholdReadings(text = ''): readonly ThresholdReading[] {
  return text
    .split(',')
    .filter(Boolean)
    .map((each) => {
      const [kind, nearest] = each.split(':');
      return kind === 'none' || kind === 'unmatched' || kind === 'several'
        ? { kind, ...(nearest === undefined ? {} : { nearest: nearest.split('|') }) }
        : { kind: 'value', value: Number(each.replace('Inf', 'Infinity')) };
    });
}
