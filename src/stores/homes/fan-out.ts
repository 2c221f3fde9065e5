import type { Home } from "../../core/home/cell.ts";

/**
 * Calls each home once with its items, and returns the answers in the order of the items. Without items the first home is
 * asked, so that a closed store refuses the call.
 */
export async function perHome<Item, Answer>(
  items: readonly Item[],
  homeOfItem: (item: Item) => Home,
  call: (home: Home, items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  if (items.length === 0) return [...(await call(0, []))];
  const groups = new Map<Home, number[]>();
  for (const [index, item] of items.entries()) {
    const home = homeOfItem(item);
    const group = groups.get(home);
    if (group) group.push(index);
    else groups.set(home, [index]);
  }
  const answers = new Array<Answer>(items.length);
  await allSettled([...groups], async ([home, indexes]) => {
    const found = await call(
      home,
      indexes.map((index) => items[index] as Item),
    );
    for (const [position, index] of indexes.entries()) answers[index] = found[position] as Answer;
  });
  return answers;
}

/** Waits for all, then throws the first error: a call that has ended must not go on in the background. */
async function allSettled<Item>(items: readonly Item[], call: (item: Item) => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(items.map(call));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

const WIDTH = 8;

interface FillOptions {
  /** A home did not answer. */
  readonly onFailed: (home: Home, error: unknown) => void;
  /** How many homes are asked at once. */
  readonly width?: number | undefined;
  /** The call fails if this many homes do. Default: all that are asked. */
  readonly failsWith?: number;
}

/**
 * Collects up to `limit` items from homes in order. Each round asks several homes for a share of what is missing; a
 * home that gives less than its share has no more. A home that fails is left out.
 */
export async function fill<Item>(
  homes: readonly Home[],
  limit: number,
  ask: (home: Home, limit: number) => Promise<readonly Item[]>,
  { onFailed, width = WIDTH, failsWith = homes.length }: FillOptions,
): Promise<Item[]> {
  const found: Item[] = [];
  let waiting = [...homes];
  let failed = 0;
  while (found.length < limit && waiting.length > 0) {
    const missing = limit - found.length;
    const asked = waiting.slice(0, Math.min(width, missing));
    const rest = waiting.slice(asked.length);
    const again: Home[] = [];
    const answers = await Promise.allSettled(
      asked.map((home, index) => ask(home, shareOf(missing, asked.length, index))),
    );
    for (const [index, answer] of answers.entries()) {
      const home = asked[index] as Home;
      if (answer.status === "rejected") {
        failed += 1;
        onFailed(home, answer.reason);
        if (failed === failsWith) throw answer.reason;
        continue;
      }
      found.push(...answer.value);
      if (answer.value.length === shareOf(missing, asked.length, index)) again.push(home);
    }
    waiting = [...rest, ...again];
  }
  return found;
}

/** Asks all homes at once. A home that fails is left out (undefined), and the call fails only if all do. */
export async function askAll<Store, Answer>(
  homes: readonly Store[],
  ask: (store: Store, home: Home) => Promise<Answer>,
  onFailed: (home: Home, error: unknown) => void,
): Promise<(Answer | undefined)[]> {
  const answers = await Promise.allSettled(homes.map(ask));
  const failed = answers.filter((answer) => answer.status === "rejected");
  if (failed[0] && failed.length === homes.length) throw failed[0].reason;
  return answers.map((answer, home) => {
    if (answer.status === "fulfilled") return answer.value;
    onFailed(home, answer.reason);
    return undefined;
  });
}

function shareOf(total: number, parts: number, index: number): number {
  return Math.floor(total / parts) + (index < total % parts ? 1 : 0);
}

/** Merges sorted lists. Equal items are joined by `join`, if it is given. */
export function mergeSorted<Item>(
  lists: readonly (readonly Item[])[],
  compare: (a: Item, b: Item) => number,
  limit = Number.POSITIVE_INFINITY,
  join?: (a: Item, b: Item) => Item,
): Item[] {
  const sorted = lists.flat().sort(compare);
  const merged: Item[] = [];
  for (const item of sorted) {
    const last = merged.at(-1);
    if (join && last !== undefined && compare(last, item) === 0) merged[merged.length - 1] = join(last, item);
    else if (merged.length === limit) break;
    else merged.push(item);
  }
  return merged;
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
