/** The keys of a type of options, as a list. The compiler refuses an object that lacks a key or has another one. */
export function keysOf<Options extends object>(
  keys: Readonly<Record<keyof Options, true>>,
): readonly string[] {
  return Object.keys(keys);
}

/** More edits than this make another word; a short word has fewer. */
const MOST_EDITS = 2;

/** The known name that was probably meant: one letter in three, and at most two, were left out, added or changed. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = Math.min(MOST_EDITS, Math.floor(name.length / 3));
  for (const candidate of known) {
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (edits > least || (edits === least && nearest !== undefined)) continue;
    nearest = candidate;
    least = edits;
  }
  return nearest;
}

/** How many letters must be added, removed or changed to make one text of the other. */
function editDistance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > MOST_EDITS) return MOST_EDITS + 1;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
