import { CurfewError } from "../../core/errors.ts";
import { limited, nextRows } from "../wire/job-page.ts";

/** The most characters of a reply. Other routes end their pages earlier; a call has one result, whole or not at all. */
export const MOST_TEXT = 16_000_000;
const FIRST_ROWS = 2;
const MOST_ITEMS = 1_000;

export function tooLarge(): CurfewError {
  return new CurfewError(
    "invalid_limit",
    `limit: the reply has more than ${MOST_TEXT / 1_000_000} MB; ask for fewer items with a smaller limit`,
  );
}

/** What one step found. `isLast`: nothing follows. */
export interface Step<Item> {
  readonly items: readonly Item[];
  readonly isLast?: boolean;
}

/**
 * Reads up to `limit` items in steps, and stops before they fill more than `most` characters: a thousand items of a
 * megabyte must not be in memory before anybody counts them. Each step begins after the last item so far. A limit that the
 * engine refuses is passed on as it is.
 */
export function readInSteps<Item>(
  limit: number,
  read: (last: Item | undefined, step: number) => Promise<Step<Item>>,
  most: number = MOST_TEXT,
): Promise<{ readonly items: Item[]; readonly isFull: boolean }> {
  return limited(async () => {
    const items: Item[] = [];
    let [size, rows] = [0, FIRST_ROWS];
    const isValid = Number.isInteger(limit) && limit >= 1 && limit <= MOST_ITEMS;
    if (!isValid) return { items: [...(await read(undefined, limit)).items], isFull: false };
    for (;;) {
      const step = Math.min(limit - items.length, rows);
      const { items: found, isLast = found.length < step } = await read(items.at(-1), step);
      for (const item of found) {
        size += JSON.stringify(item).length;
        items.push(item);
      }
      if (size > most) return { items, isFull: true };
      if (isLast || items.length >= limit) return { items, isFull: false };
      rows = nextRows(rows, most - size, size / items.length);
    }
  });
}

/** All of it, or a refusal that says to ask for less. */
export async function readAll<Item>(
  limit: number,
  read: (last: Item | undefined, step: number) => Promise<readonly Item[]>,
): Promise<Item[]> {
  const { items, isFull } = await readInSteps<Item>(limit, async (last, step) => ({
    items: await read(last, step),
  }));
  if (isFull) throw tooLarge();
  return items;
}
