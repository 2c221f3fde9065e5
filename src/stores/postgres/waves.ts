/**
 * Runs work on items in waves, so that no wave names the same thing twice: the second item of a name goes into the
 * next wave. Most batches are one wave. Answers in the order of the items.
 */
export async function inWaves<Item, Answer>(
  items: readonly Item[],
  nameOf: (item: Item) => string | undefined,
  work: (wave: readonly Item[]) => Promise<Answer[]>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  let rest = Array.from(items, (item, index) => ({ item, index }));
  while (rest.length > 0) {
    const names = new Set<string>();
    const wave: typeof rest = [];
    const later: typeof rest = [];
    for (const entry of rest) {
      const name = nameOf(entry.item);
      const isTaken = name !== undefined && names.has(name);
      if (name !== undefined) names.add(name);
      (isTaken ? later : wave).push(entry);
    }
    const given = await work(wave.map(({ item }) => item));
    for (const [at, { index }] of wave.entries()) answers[index] = given[at] as Answer;
    rest = later;
  }
  return answers;
}
