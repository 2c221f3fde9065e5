import { instantText } from "../../core/event/wire-fields.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { conflict } from "../failures.ts";
import { byKey, json, type Route, reply, route } from "../route.ts";
import {
  adminJobReply,
  adminJobsReply,
  bulkReply as bulkReplySchema,
  deadLetterStatsReply,
} from "../wire/admin-replies.ts";
import { deadLettersBulkSchema, deadLettersPurgeSchema, deadLettersQuery } from "../wire/admin-schemas.ts";
import { readInstant } from "../wire/durations.ts";
import { bulkReply, readBulk, readFilter } from "../wire/filter.ts";
import { detailText } from "../wire/job.ts";
import { jobsPage } from "../wire/pages.ts";
import { emptySchema } from "../wire/schemas.ts";
import { loadLetter } from "./dead-letter.ts";

const TAG = "admin";
const PATH = "/ojs/v1/admin/dead-letter";
const SAMPLED = 500;

const list = route({
  method: "GET",
  path: PATH,
  right: "read",
  tag: TAG,
  summary: "List dead letters, those that ended last first",
  reply: adminJobsReply,
  query: deadLettersQuery,
  replies: { 200: "A page of jobs; it may be short and still not be the last" },
  run({ query }, { engine }) {
    const filter = readFilter(query, engine.now());
    return jobsPage(
      query,
      (page) => engine.deadLetters.list(filter, { ...page, newestFirst: true }),
      () => engine.bulk.countSome({ ...filter, deadLetter: true }),
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

const stats = route({
  method: "GET",
  path: `${PATH}/stats`,
  right: "read",
  tag: TAG,
  summary: "How many dead letters there are, and of what kinds",
  reply: deadLetterStatsReply,
  replies: { 200: "The figures" },
  async run(_call, { engine }) {
    const [counted, newest, oldest] = await Promise.all([
      engine.bulk.countSome({ deadLetter: true }),
      engine.deadLetters.list({}, { limit: SAMPLED, newestFirst: true }),
      engine.deadLetters.list({}, { limit: 1 }),
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

const get = route({
  method: "GET",
  path: `${PATH}/:id`,
  right: "read",
  tag: TAG,
  summary: "Look at a dead letter",
  reply: adminJobReply,
  replies: { 200: "The job", 404: "There is no such dead letter" },
  run: async ({ params }, context) => reply(200, detailText(await loadLetter(params.id ?? "", context))),
});

const retry = route({
  method: "POST",
  path: `${PATH}/:id/retry`,
  right: "operate",
  tag: TAG,
  summary: "Run a dead letter again: attempts start anew",
  reply: adminJobReply,
  body: emptySchema,
  replies: { 200: "The job is available", 404: "There is no such dead letter" },
  async run({ params, identity }, context) {
    const { id } = await loadLetter(params.id ?? "", context);
    return reply(200, detailText(await context.engine.retry(id, {}, byKey(identity))));
  },
});

const remove = route({
  method: "DELETE",
  path: `${PATH}/:id`,
  right: "operate",
  tag: TAG,
  summary: "Delete a dead letter for good",
  replies: { 204: "It is gone", 404: "There is no such dead letter" },
  async run({ params, identity }, context) {
    const row = await loadLetter(params.id ?? "", context);
    if (!(await context.service.remove(row, byKey(identity)))) throw conflict(row, "delete");
    return reply(204, null);
  },
});

const retryAll = route({
  method: "POST",
  path: `${PATH}/retry`,
  right: "operate",
  tag: TAG,
  summary: "Run dead letters again",
  reply: bulkReplySchema,
  body: deadLettersBulkSchema,
  replies: { 200: "What was done" },
  async run({ body, identity, isGone }, { engine }) {
    const options = readBulk(body, identity, isGone);
    const filter = readFilter(body.filter ?? {}, engine.now());
    // An empty filter is said, not forgotten: confirmed, it means every dead letter.
    const query = body.filter && Object.keys(filter).length === 0 ? { all: true as const } : filter;
    return bulkReply("retry", options, await engine.deadLetters.retryAll(query, options));
  },
});

const purge = route({
  method: "DELETE",
  path: PATH,
  right: "operate",
  tag: TAG,
  summary: "Delete dead letters for good",
  reply: bulkReplySchema,
  body: deadLettersPurgeSchema,
  replies: { 200: "What was done" },
  async run({ body, identity, isGone }, { engine }) {
    const options = readBulk(body, identity, isGone);
    const { older_than, queue } = body;
    const query = {
      all: true as const,
      ...(queue && { queue }),
      ...(older_than && {
        finishedBefore: { epochMilliseconds: readInstant(older_than, engine.now(), "older_than") },
      }),
    };
    return bulkReply("delete", options, await engine.deadLetters.deleteAll(query, options));
  },
});

export const adminDeadLetterRoutes: readonly Route[] = [list, stats, retryAll, purge, get, retry, remove];
