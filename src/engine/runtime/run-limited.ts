/** Runs the items in their order, at most `atOnce` at a time. Returns one answer per item. */
export async function runLimited<Item, Answer>(
  items: readonly Item[],
  atOnce: number,
  run: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  const runNext = async () => {
    while (next < items.length) {
      const index = next++;
      answers[index] = await run(items[index] as Item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, runNext));
  return answers;
}
