import type { JobId, JobRow } from "../../core/job/job.ts";
import { holdersIn, holdersLeft } from "../../core/job/unique-holders.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";

/** A unique key that keeps other jobs from being added. */
export interface UniqueKeyView {
  readonly key: string;
  readonly id: JobId;
  /** The job that has it; null once it is not kept any more. */
  readonly job: JobRow | null;
  /** Until when it blocks, where that is not the end of the job. */
  readonly until: Instant | null;
}

export interface UniqueKeyPage {
  readonly keys: readonly UniqueKeyView[];
  /** Goes on behind the last key that was looked at; null: that was all. */
  readonly cursor: string | null;
}

/** The kind of record that keeps the keys which the store itself does not. */
export const UNIQUE = "unique";

/**
 * Unique keys in their order. Those that live jobs hold are read from the store's own index, the others from their
 * records, so that jobs without a key cost nothing, and neither does history.
 */
export async function uniqueKeys(
  { inspect, records, jobs }: Pick<Store, "inspect" | "records" | "jobs">,
  { now, after, limit }: { readonly now: Instant; readonly after: string | null; readonly limit: number },
): Promise<UniqueKeyPage> {
  const [held, kept] = await Promise.all([inspect.holders(after, limit), records.list(UNIQUE, after, limit)]);
  const names = [...new Set([...held.map(({ key }) => key), ...kept.map(({ key }) => key[1])])]
    .sort((a, b) => (a < b ? -1 : 1))
    .slice(0, limit);
  const holders = new Map(held.map(({ key, job }) => [key, job]));
  const keepers = new Map(kept.map(({ key, body }) => [key[1], holdersIn(body)]));
  const ids = names.flatMap((key) => [
    ...(holders.has(key) ? [holders.get(key) as JobId] : []),
    ...(keepers.get(key) ?? []).map(({ id }) => id),
  ]);
  const rows = await loaded(jobs, [...new Set(ids)]);
  const keys = names.flatMap((key): UniqueKeyView[] => {
    const holder = holders.get(key);
    if (holder !== undefined) return [{ key, id: holder, job: rows.get(holder) ?? null, until: null }];
    const last = holdersLeft(keepers.get(key) ?? [], (id) => rows.get(id) ?? null, now).at(-1);
    return last ? [{ key, id: last.id, job: rows.get(last.id) ?? null, until: last.until }] : [];
  });
  const isAll = held.length < limit && kept.length < limit && names.length < limit;
  return { keys, cursor: isAll ? null : (names.at(-1) ?? null) };
}

const AT_ONCE = 1_000;

async function loaded(jobs: Store["jobs"], ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JobRow>> {
  const found = new Map<JobId, JobRow>();
  for (let from = 0; from < ids.length; from += AT_ONCE)
    for (const row of await jobs.load(ids.slice(from, from + AT_ONCE))) if (row) found.set(row.id, row);
  return found;
}
