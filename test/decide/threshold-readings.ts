// What an answer shows of the entries of FAIL_IF, as fixtures write it.

import type { ThresholdReading } from '../../src/decide/model.ts';

/** `0.02,none,unmatched,several,NaN,Inf`: one of each entry; none of an empty text. */
export function readThresholdReadings(text = ''): readonly ThresholdReading[] {
  return text
    .split(',')
    .filter(Boolean)
    .map((each) =>
      each === 'none' || each === 'unmatched' || each === 'several'
        ? { kind: each }
        : { kind: 'value', value: Number(each.replace('Inf', 'Infinity')) },
    );
}
