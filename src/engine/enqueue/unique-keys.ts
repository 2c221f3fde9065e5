import { holdersIn, holdersLeft } from "../../core/job/enqueue/unique-holders.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import { rowsById } from "../find/find-jobs.ts";

/** A unique key that blocks new jobs. */
export interface UniqueKeyView {
  readonly key: string;
  readonly id: JobId;
  /** The job that holds it; null if that job is no longer stored. */
  readonly job: JobRow | null;
  /** Until when the key blocks; null if it blocks until its job ends. */
  readonly until: Instant | null;
}

export interface UniqueKeyPage {
  readonly keys: readonly UniqueKeyView[];
  /** Continues after the last key that was read; null on the last page. */
  readonly cursor: string | null;
}

/** The kind of the records that keep the keys which no store index keeps. */
export const UNIQUE = "unique";

/**
 * Unique keys in their order. Keys of live jobs come from the store's index, the others from records. The cost does not
 * depend on jobs without a key or on ended jobs.
 */
export async function uniqueKeys(
  { inspect, records, jobs }: Pick<Store, "inspect" | "records" | "jobs">,
  { now, after, limit }: { readonly now: Instant; readonly after: string | null; readonly limit: number },
): Promise<UniqueKeyPage> {
  const [indexed, recorded] = await Promise.all([
    inspect.holders(after, limit),
    records.list(UNIQUE, after, limit),
  ]);
  const names = [...new Set([...indexed.map(({ key }) => key), ...recorded.map(({ key }) => key[1])])]
    .sort((a, b) => (a < b ? -1 : 1))
    .slice(0, limit);
  const holders = new Map(indexed.map(({ key, job }) => [key, job]));
  const keepers = new Map(recorded.map(({ key, body }) => [key[1], holdersIn(body)]));
  const ids = names.flatMap((key) => [
    ...(holders.has(key) ? [holders.get(key) as JobId] : []),
    ...(keepers.get(key) ?? []).map(({ id }) => id),
  ]);
  const rows = await rowsById({ jobs }, [...new Set(ids)]);
  const keys = names.flatMap((key): UniqueKeyView[] => {
    const holder = holders.get(key);
    if (holder !== undefined) return [{ key, id: holder, job: rows.get(holder) ?? null, until: null }];
    const last = holdersLeft(keepers.get(key) ?? [], (id) => rows.get(id) ?? null, now).at(-1);
    return last ? [{ key, id: last.id, job: rows.get(last.id) ?? null, until: last.until }] : [];
  });
  const isAll = indexed.length < limit && recorded.length < limit && names.length < limit;
  return { keys, cursor: isAll ? null : (names.at(-1) ?? null) };
}
