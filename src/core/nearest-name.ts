/** Names longer than this are compared by equality alone: the cost grows with the square of the length. */
const LONGEST = 64;

/**
 * The name that was probably meant: the one with the fewest typing mistakes, by default at most two in five characters
 * and three in total. Undefined if none is close, or if the name itself exists.
 */
export function nearestName(
  name: string,
  known: Iterable<string>,
  most = Math.min(3, Math.floor((name.length * 2) / 5)),
): string | undefined {
  let nearest: string | undefined;
  let fewest = most + 1;
  for (const other of known) {
    if (other === name) return undefined;
    if (Math.abs(other.length - name.length) > fewest) continue;
    const mistakes = editDistance(name, other);
    // Of two that are equally close, take the first in the alphabet: the answer must not depend on the order of the
    // rows.
    if (mistakes < fewest || (mistakes === fewest && nearest !== undefined && other < nearest)) {
      nearest = other;
      fewest = mistakes;
    }
  }
  return nearest;
}

/** How many characters to add, drop, replace or swap with their neighbour. */
function editDistance(a: string, b: string): number {
  if (a.length > LONGEST || b.length > LONGEST) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      let best = Math.min(
        (previous[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (previous[column - 1] as number) + (isSame ? 0 : 1),
      );
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwapped) best = Math.min(best, (before[column - 2] as number) + 1);
      current.push(best);
    }
    before = previous;
    previous = current;
  }
  return previous[b.length] as number;
}
