// The middle of what was measured: it does not move when a busy machine makes one value large.

/** The median; the mean of the two in the middle of an even number. @throws without any value. */
export function findMedian(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  if (low === undefined || high === undefined) throw new Error('Cannot take a median: there is no value');
  return (low + high) / 2;
}
