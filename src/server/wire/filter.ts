import { show } from "../../core/errors.ts";
import type { JobState } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { JobQuery } from "../../engine/find/job-query.ts";
import type { BulkOptions, BulkResult } from "../../engine/operations/bulk.ts";
import { durationOf, readInstant } from "../../ojs/wire-durations.ts";
import type { Identity } from "../access/auth.ts";
import { refusedField } from "../http/http-error.ts";
import { byKey, json, type Reply } from "../route.ts";
import type { BulkBody, FilterBody } from "./admin-schemas.ts";

type Filter = Partial<FilterBody> & { readonly sort?: unknown };

/** The instant before which jobs must have ended: an instant, or how long ago. */
export function readEnded(text: string, now: Instant): { readonly epochMilliseconds: number } {
  const age = durationOf(text);
  return { epochMilliseconds: age === undefined ? readInstant(text, now, "older_than") : now - age };
}

/** Reads a filter. */
export function readFilter(filter: Filter, now: Instant): JobQuery {
  const { queue, type, state, since, until, error_type, error_code, dead_letter, older_than, all } = filter;
  const at = (text: string, field: string) => ({ epochMilliseconds: readInstant(text, now, field) });
  return {
    ...(queue && { queue }),
    ...(type && { type }),
    ...(state && { state: state as JobState }),
    ...(since && { createdFrom: at(since, "since") }),
    ...(until && { createdBefore: at(until, "until") }),
    ...(error_type && { errorType: error_type }),
    ...(error_code && { errorCode: error_code }),
    ...(typeof dead_letter === "boolean" && { deadLetter: dead_letter }),
    ...(older_than && { finishedBefore: readEnded(older_than, now) }),
    ...(all && { all }),
  };
}

/** Filters of the query, of the body and in `filter` as one. With two that differ nobody knows which jobs are meant. */
export function oneFilter<Fields extends object>(...parts: readonly (object | null | undefined)[]): Fields {
  const all = new Map<string, unknown>();
  for (const part of parts) {
    for (const [name, value] of Object.entries(part ?? {})) {
      if (value == null) continue;
      const other = all.get(name) ?? value;
      if (other !== value)
        throw refusedField(
          name,
          `${show(value)} contradicts ${show(other)} in the same request; send it once`,
        );
      all.set(name, value);
    }
  }
  return Object.fromEntries(all) as Fields;
}

const MOST = 10_000;

type BulkFields = Pick<BulkBody, "confirm" | "dry_run" | "limit" | "cursor">;

/** Options of a bulk action: confirmed, bounded, audited, and stopped when the client leaves. */
export function readBulk(body: BulkFields, identity: Identity, isGone: () => boolean): BulkOptions {
  const isDry = body.dry_run === true;
  if (!isDry && body.confirm !== true)
    throw refusedField("confirm", "send true, or dry_run: true to count the jobs only");
  const gone = new AbortController();
  return {
    dryRun: isDry,
    limit: body.limit ?? MOST,
    ...(body.cursor && { after: body.cursor }),
    by: byKey(identity),
    signal: gone.signal,
    onProgress: () => {
      if (isGone()) gone.abort();
    },
  };
}

export function bulkReply(
  action: string,
  { dryRun }: BulkOptions,
  result: BulkResult,
  /** The name of the count that some clients read. */
  done = action === "retry" ? "retried" : "deleted",
): Reply {
  const { matched, done: count, skipped, failed, isComplete, cursor, errors } = result;
  return json(200, {
    action,
    dry_run: dryRun === true,
    matched,
    total_matched: matched,
    count: dryRun ? matched : count,
    succeeded: count,
    [done]: count,
    // A skipped job is no success. The store's message stays in the log.
    failed: failed + skipped,
    skipped,
    is_complete: isComplete,
    next_cursor: cursor,
    errors: errors.map(() => ({ error: "The store refused a batch" })),
  });
}
