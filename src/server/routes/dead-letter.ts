import { UUID } from "../../core/ids.ts";
import type { JobRow } from "../../core/job/job.ts";
import { conflict, notFound } from "../failures.ts";
import { byKey, json, type Route, type RouteContext, route } from "../route.ts";
import { deletedReplySchema, jobReplySchema, jobsReplySchema } from "../wire/replies.ts";
import { emptySchema, pageQuery } from "../wire/schemas.ts";
import { jobReply, listReply } from "./jobs.ts";

const TAG = "dead letters";

/** A dead letter by its id; a job that is none is treated as if it were not there. */
export async function loadLetter(id: string, context: RouteContext): Promise<JobRow> {
  const row = UUID.test(id) ? await context.engine.load(id) : null;
  if (!row?.deadLetter) throw notFound("dead letter", id);
  return row;
}

const list = route({
  method: "GET",
  path: "/ojs/v1/dead-letter",
  right: "read",
  tag: TAG,
  summary: "List dead letters in the order in which they ended",
  reply: jobsReplySchema,
  query: pageQuery,
  replies: { 200: "A page of jobs" },
  async run({ query }, { engine }) {
    const { cursor, limit = 100 } = query;
    const page = await engine.deadLetters.list({}, { after: cursor ?? null, limit });
    // The last page may end with a cursor after which there is nothing: who reads on must not be told to for that.
    const next = page.cursor && (await engine.deadLetters.list({}, { after: page.cursor, limit: 1 }));
    const hasMore = next ? next.jobs.length > 0 || next.cursor !== null : false;
    const { count, isComplete } = await engine.bulk.countSome({ deadLetter: true });
    const total = { total: count, total_is_exact: isComplete };
    return listReply(page.jobs, limit, hasMore ? page.cursor : null, total);
  },
});

const get = route({
  method: "GET",
  path: "/ojs/v1/dead-letter/:id",
  right: "read",
  tag: TAG,
  summary: "Look at a dead letter",
  reply: jobReplySchema,
  replies: { 200: "The job", 404: "There is no such dead letter" },
  run: async ({ params }, context) => jobReply(200, await loadLetter(params.id ?? "", context)),
});

const retry = route({
  method: "POST",
  path: "/ojs/v1/dead-letter/:id/retry",
  right: "operate",
  tag: TAG,
  summary: "Run a dead letter again: attempts start anew",
  reply: jobReplySchema,
  body: emptySchema,
  replies: { 200: "The job is available", 404: "There is no such dead letter" },
  async run({ params, identity }, context) {
    const { id } = await loadLetter(params.id ?? "", context);
    return jobReply(200, await context.engine.retry(id, {}, byKey(identity)));
  },
});

const remove = route({
  method: "DELETE",
  path: "/ojs/v1/dead-letter/:id",
  right: "operate",
  tag: TAG,
  summary: "Delete a dead letter for good",
  reply: deletedReplySchema,
  replies: { 200: "It is gone", 404: "There is no such dead letter" },
  async run({ params, identity }, context) {
    const row = await loadLetter(params.id ?? "", context);
    if (!(await context.service.remove(row, byKey(identity)))) throw conflict(row, "delete");
    return json(200, { deleted: true, job_id: row.id });
  },
});

export const deadLetterRoutes: readonly Route[] = [list, get, retry, remove];
