import { holdersIn, holdersLeft, type UniqueHolder } from "../../core/job/enqueue/unique-holders.ts";
import type { JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { type JobLine, type LeftOut, leftOutOf, lineOf } from "../../core/job/transfer/job-line.ts";
import type { EngineContext } from "../context.ts";
import { UNIQUE } from "../enqueue/unique-keys.ts";
import { BoundedReader, loadInParts } from "../find/bounded-reader.ts";
import { findJobs, type PageOptions, parsePage } from "../find/find-jobs.ts";
import { type JobQuery, matches, type ParsedQuery, parseQuery } from "../find/job-query.ts";

/** The jobs that were added under one unique key and still block others, where a record of the store keeps the rule. */
export interface UniqueLine {
  readonly kind: "unique";
  readonly key: string;
  readonly holders: readonly {
    readonly id: string;
    readonly at: string;
    readonly until: string | null;
    readonly countsEnded: boolean;
    /** Of a job with debounce or throttle: when its burst began. */
    readonly since?: string;
    /** Of a job with debounce or throttle: when it is or was due. */
    readonly dueAt?: string;
  }[];
}

export type ExportLine = JobLine | UniqueLine;

export interface ExportPageOptions extends Omit<PageOptions, "newestFirst"> {
  /** Also jobs that have ended. Dead letters are always exported, and so are those of a state that the query names. */
  readonly ended?: boolean;
}

/** A page of an export. `cursor` is the `after` of the next page; null: that was the last one. */
export interface ExportPage {
  readonly lines: readonly ExportLine[];
  readonly cursor: string | null;
  /** Jobs that the query means and that cannot be exported. */
  readonly leftOut: Readonly<Record<LeftOut, number>>;
}

/** Characters of jobs in one page. A page that is full ends early. */
const PAGE_SIZE = 4_000_000;

/** Cursors of the second part, the unique keys. No cursor of a scan begins so. */
const KEYS = "keys:";

/** Reads one page: first the jobs in the order of their ids, then the unique keys that records hold. */
export async function exportPage(
  { store, clock }: Pick<EngineContext, "store" | "clock">,
  query: JobQuery,
  { ended = false, ...page }: ExportPageOptions,
): Promise<ExportPage> {
  const parsed = parseQuery(query, "query");
  const { after, limit } = parsePage(page, "page");
  const isAsked = (row: JobRow) =>
    !isTerminal(row.state) || row.deadLetter || ended || row.state === query.state;
  const leftOut = { running: 0, workflow: 0, importing: 0 };
  if (after?.startsWith(KEYS)) {
    const held = { parsed, isAsked, now: clock.now() };
    return { ...(await keyPage(store, after.slice(KEYS.length), limit, held)), leftOut };
  }
  const step = (from: string | null, count: number) =>
    findJobs(store, parsed, { after: from, limit: count, newestFirst: false });
  const found = await new BoundedReader(PAGE_SIZE).read(step, after, limit);
  const rows: JobRow[] = [];
  for (const row of found.jobs) {
    if (!isAsked(row)) continue;
    const because = leftOutOf(row);
    if (because === null) rows.push(row);
    else leftOut[because] += 1;
  }
  const keys = rows.length === 0 ? [] : await store.inspect.uniqueKeys(rows.map(({ id }) => id));
  const lines = rows.map((row, index) => lineOf(row, keys[index] ?? null));
  return { lines, cursor: found.cursor ?? KEYS, leftOut };
}

interface Held {
  readonly parsed: ParsedQuery;
  readonly isAsked: (row: JobRow) => boolean;
  readonly now: number;
}

/**
 * A period goes on after its job has ended. So the holder of a job that is gone is exported with all jobs: no query can
 * mean it. The same holds for a job that has ended and is not asked for, if it blocks others like one that is gone.
 */
function isExported(
  { paced }: UniqueHolder,
  row: JobRow | null,
  { parsed, isAsked }: Pick<Held, "parsed" | "isAsked">,
): boolean {
  if (row === null) return parsed.isEmpty;
  if (isAsked(row)) return matches(row, parsed) && leftOutOf(row) === null;
  return parsed.isEmpty && (row.state === "completed" || paced !== undefined);
}

/** The unique keys that records keep, with the holders that are exported. */
async function keyPage(
  { records, jobs }: EngineContext["store"],
  after: string,
  limit: number,
  { parsed, isAsked, now }: Held,
): Promise<{ readonly lines: UniqueLine[]; readonly cursor: string | null }> {
  const kept = await records.list(UNIQUE, after === "" ? null : after, Math.min(limit, KEYS_AT_ONCE));
  const lines: UniqueLine[] = [];
  for (const { key, body } of kept) {
    const known = holdersIn(body);
    const holders: UniqueHolder[] = [];
    let index = 0;
    for await (const row of loadInParts(
      { jobs },
      known.map(({ id }) => id),
    )) {
      const holder = known[index++] as UniqueHolder;
      const isMissing = row === null || !isAsked(row);
      if (isExported(holder, row, { parsed, isAsked }))
        holders.push(...holdersLeft([holder], () => (isMissing ? null : row), now));
    }
    if (holders.length > 0) lines.push({ kind: "unique", key: key[1], holders: holders.map(holderLine) });
  }
  const last = kept.at(-1);
  const isEnd = last === undefined || kept.length < Math.min(limit, KEYS_AT_ONCE);
  return { lines, cursor: isEnd ? null : `${KEYS}${last.key[1]}` };
}

/** A record names up to 100 jobs, and all of them are read for a page. */
const KEYS_AT_ONCE = 50;

function holderLine({ id, at, until, countsEnded, paced }: UniqueHolder): UniqueLine["holders"][number] {
  return {
    id,
    at: new Date(at).toISOString(),
    until: until === null ? null : new Date(until).toISOString(),
    countsEnded,
    ...(paced && {
      since: new Date(paced.since).toISOString(),
      dueAt: new Date(paced.dueAt).toISOString(),
    }),
  };
}
