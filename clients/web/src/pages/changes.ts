// Finds the records of a benchmark at which its level changed.
//
// At each record the detector compares two medians of medians: of a few records from there on, and of
// all records before it, back to the last change. A change is marked where both differ by more than
// `LEAST_CHANGE` and by more than `SPREADS` times the spread of the records before. The spread is
// robust (1.4826 times the median absolute deviation), so that one outlier neither hides a change
// nor makes one.

const BEFORE = 10;
const AFTER = 3;
export const LEAST_CHANGE = 0.05;
const SPREADS = 3;
/** Makes the median absolute deviation of a normal law its standard deviation. */
const NORMAL = 1.4826;

export interface Change {
  index: number;
  /** Relative: 0.1 is 10 % more than before. */
  size: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? NaN)) / 2;
}

/** The change at record `i` against the records since `start`, or 0. */
function changeAt(medians: readonly number[], start: number, i: number): number {
  const before = medians.slice(Math.max(start, i - BEFORE), i);
  const after = medians.slice(i, i + AFTER);
  const level = median(before);
  if (!(level > 0) || after.length === 0) return 0;
  // standard error of the median of so few records after
  const spread = (NORMAL * median(before.map((x) => Math.abs(x - level)))) / level;
  const size = median(after) / level - 1;
  const least = Math.max(LEAST_CHANGE, (SPREADS * spread) / Math.sqrt(after.length));
  return Math.abs(size) > least ? size : 0;
}

/** The changes of a benchmark, given the medians of its records, oldest first. */
export function findChanges(medians: readonly number[]): Change[] {
  const changes: Change[] = [];
  let start = 0;
  for (let i = 1; i < medians.length; i++) {
    if (changeAt(medians, start, i) === 0) continue;
    // the median of the next few already moves one record before the step: the sharpest is taken
    let best = i;
    for (let k = i + 1; k < Math.min(i + AFTER, medians.length); k++)
      if (Math.abs(jump(medians, k)) > Math.abs(jump(medians, best))) best = k;
    changes.push({ index: best, size: changeAt(medians, start, best) || jump(medians, best) });
    start = best;
    i = best;
  }
  return changes;
}

function jump(medians: readonly number[], i: number): number {
  return (medians[i] ?? 0) / (medians[i - 1] ?? NaN) - 1;
}
