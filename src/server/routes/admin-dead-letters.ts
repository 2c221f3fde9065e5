import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { json, type Route, reply, route } from "../route.ts";
import { adminJobsReply, bulkReply as bulkReplySchema, deadLetterStatsReply } from "../wire/admin-replies.ts";
import {
  deadLettersBulkSchema,
  deadLettersPurgeQuery,
  deadLettersPurgeSchema,
  deadLettersQuery,
} from "../wire/admin-schemas.ts";
import { bulkReply, oneFilter, readBulk, readFilter } from "../wire/filter.ts";
import { countOwn } from "../wire/internal-jobs.ts";
import { jobsPage } from "../wire/pages.ts";
import { readRetryByHand } from "../wire/retry-override.ts";
import { ADMIN, letterRoutesBy } from "./job-actions.ts";

const TAG = "admin";
const PATH = "/ojs/v1/admin/dead-letter";
const SAMPLED = 500;

const list = route("GET", PATH, "read", {
  scope: "tenant",
  tag: TAG,
  summary: "List dead letters, those that ended last first",
  reply: adminJobsReply,
  query: deadLettersQuery,
  replies: { 200: "A page of jobs; a short page may not be the last" },
  run({ query }, { engine, service }) {
    const filter = { ...readFilter(query, engine.now()), deadLetter: true };
    return jobsPage(
      query,
      (page) => service.rows.find(filter, { ...page, newestFirst: true }),
      () => countOwn(engine, filter),
    );
  },
});

function tally(rows: readonly JobRow[], name: (row: JobRow) => string): Record<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(name(row), (counts.get(name(row)) ?? 0) + 1);
  return Object.fromEntries(counts);
}

const endedAt = (row: JobRow | undefined): string | null =>
  row === undefined ? null : instantText(row.finishedAt as Instant);

const statsBy = (path: string, tag: string) =>
  route("GET", `${path}/stats`, "read", {
    scope: "tenant",
    tag,
    summary: "Count dead letters by queue, type and error",
    isShared: true,
    reply: deadLetterStatsReply,
    replies: { 200: "The figures" },
    async run(_call, { engine, service }) {
      const [counted, newest, oldest] = await Promise.all([
        countOwn(engine, { deadLetter: true }),
        service.rows.find({ deadLetter: true }, { limit: SAMPLED, newestFirst: true }),
        service.rows.find({ deadLetter: true }, { limit: 1 }),
      ]);
      const { jobs } = newest;
      return json(200, {
        total: counted.count,
        total_is_exact: counted.isComplete,
        sampled: jobs.length,
        by_queue: tally(jobs, ({ queue }) => queue),
        by_type: tally(jobs, ({ type }) => type),
        by_error_type: tally(jobs, ({ errors }) => errors?.at(-1)?.type ?? "unknown"),
        oldest_at: endedAt(oldest.jobs[0]),
        newest_at: endedAt(jobs[0]),
      });
    },
  });

const retryBy = (path: string, tag: string) =>
  route("POST", `${path}/retry`, "operate", {
    scope: "tenant",
    tag,
    summary: "Run dead letters again",
    reply: bulkReplySchema,
    body: deadLettersBulkSchema,
    replies: { 200: "What was done" },
    async run({ body, identity, isGone }, { engine }) {
      const options = readBulk(body, identity, isGone);
      const filter = readFilter(body.filter ?? {}, engine.now());
      // A confirmed empty filter means every dead letter.
      const query = body.filter && Object.keys(filter).length === 0 ? { all: true as const } : filter;
      const retried = { ...options, ...readRetryByHand(body) };
      return bulkReply("retry", options, await engine.deadLetters.retryAll(query, retried));
    },
  });

const purgeBy = (path: string, tag: string) =>
  route("DELETE", path, "operate", {
    scope: "tenant",
    tag,
    summary: "Delete dead letters for good",
    reply: bulkReplySchema,
    body: deadLettersPurgeSchema,
    query: deadLettersPurgeQuery,
    replies: { 200: "What was done" },
    async run({ body, query: sent, identity, isGone }, { engine }) {
      const { filter, ...fields } = body ?? {};
      const said = oneFilter<typeof fields>(sent, fields, filter);
      const options = readBulk(said, identity, isGone);
      // A confirmed request without a filter means every dead letter.
      const query = { ...readFilter(said, engine.now()), all: true as const };
      return bulkReply("delete", options, await engine.deadLetters.deleteAll(query, options));
    },
  });

/** Routes about many dead letters. They stand before those of one, whose id could be "stats". */
export const manyLetterRoutesBy = (path: string, tag: string): readonly Route[] => [
  statsBy(path, tag),
  retryBy(path, tag),
  purgeBy(path, tag),
];

export const adminDeadLetterRoutes: readonly Route[] = [
  list,
  ...manyLetterRoutesBy(PATH, TAG),
  ...letterRoutesBy(PATH, ADMIN, { status: 204, show: () => reply(204, null) }),
];
