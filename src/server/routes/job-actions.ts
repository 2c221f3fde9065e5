import type { z } from "zod";
import { UUID } from "../../core/ids.ts";
import { dueAtOf, type JobRow } from "../../core/job/job.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { detailText, jobText } from "../../ojs/write-job.ts";
import type { Right } from "../access/roles.ts";
import { conflict, notFound } from "../http/failures.ts";
import { byKey, type Reply, type Route, type RouteContext, reply, route } from "../route.ts";
import { adminJobReply } from "../wire/admin-replies.ts";
import { isInternal } from "../wire/internal-jobs.ts";
import { jobReplySchema } from "../wire/replies.ts";
import { readRetryByHand, retryJobSchema } from "../wire/retry-override.ts";
import { emptySchema } from "../wire/schemas.ts";

/** How the routes of a path show jobs. Several paths have the same routes. */
export interface RouteSet {
  readonly tag: string;
  readonly reply: z.ZodType;
  show(row: JobRow): Reply;
  /** The reply to a retry of a dead letter. Left out: as `show`. */
  retried?(row: JobRow): Reply;
}

/** A job by the id in a path. A text that is no id is a 404. */
export async function loadJob(id: string, { service }: RouteContext): Promise<JobRow> {
  const row = UUID.test(id) ? await service.rows.load(id) : null;
  if (!row || isInternal(row)) throw notFound("job", id);
  return row;
}

/** The id in a path, of a job that clients may change. */
export async function ownJob(
  params: Readonly<Record<string, string>>,
  context: RouteContext,
): Promise<string> {
  return (await loadJob(params.id ?? "", context)).id;
}

export function jobId(params: Readonly<Record<string, string>>): string {
  const id = params.id ?? "";
  if (!UUID.test(id)) throw notFound("job", id);
  return id;
}

export function jobReply(status: number, row: JobRow): Reply {
  return reply(status, `{"job":${jobText(row)}}`);
}

/** For producers and workers. */
export const plainRoutes = (tag: string): RouteSet => ({
  tag,
  reply: jobReplySchema,
  show: (row) => jobReply(200, row),
  retried: (row) => {
    const at = JSON.stringify(instantText(dueAtOf(row.rank)));
    return reply(200, `{"job":${jobText(row)},"re_enqueued_at":${at}}`);
  },
});

/** For operators. */
export const ADMIN: RouteSet = {
  tag: "admin",
  reply: adminJobReply,
  show: (row) => reply(200, detailText(row)),
};

export const cancelBy = (method: "DELETE" | "POST", path: string, right: Right, set: RouteSet): Route =>
  route(method, path, right, {
    scope: "tenant",
    tag: set.tag,
    summary: "End a waiting or running job at once",
    reply: set.reply,
    ...(method === "POST" && { body: emptySchema }),
    replies: { 200: "The job is cancelled", 404: "There is no such job", 409: "The job has ended already" },
    run: async ({ params, identity }, context) =>
      set.show(await context.service.rows.cancel(await ownJob(params, context), byKey(identity))),
  });

export const retryBy = (path: string, set: RouteSet): Route =>
  route("POST", path, "operate", {
    scope: "tenant",
    tag: set.tag,
    summary: "Run a discarded job again: attempts start anew",
    reply: set.reply,
    body: retryJobSchema,
    replies: { 200: "The job", 404: "There is no such job", 409: "The job is not discarded" },
    async run({ params, body, identity }, context) {
      const id = await ownJob(params, context);
      return set.show(await context.service.rows.retry(id, readRetryByHand(body), byKey(identity)));
    },
  });

/** A dead letter by its id. Other jobs are a 404. */
async function loadLetter(id: string | undefined, { service }: RouteContext): Promise<JobRow> {
  const row = id !== undefined && UUID.test(id) ? await service.rows.load(id) : null;
  if (!row?.deadLetter || isInternal(row)) throw notFound("dead letter", id ?? "");
  return row;
}

const MISSING = { 404: "There is no such dead letter" };

/** The reply to a deletion. */
interface Removal {
  readonly status: 200 | 204;
  readonly reply?: z.ZodType;
  show(row: JobRow): Reply;
}

/** Routes that show, retry and delete one dead letter. */
export const letterRoutesBy = (path: string, set: RouteSet, removal: Removal): readonly Route[] => [
  route("GET", `${path}/:id`, "read", {
    scope: "tenant",
    tag: set.tag,
    summary: "Look at a dead letter",
    reply: set.reply,
    replies: { 200: "The job", ...MISSING },
    run: async ({ params }, context) => set.show(await loadLetter(params.id, context)),
  }),
  route("POST", `${path}/:id/retry`, "operate", {
    scope: "tenant",
    tag: set.tag,
    summary: "Run a dead letter again, changed if asked: attempts start anew",
    reply: set.reply,
    body: retryJobSchema,
    replies: { 200: "The job is available", ...MISSING, 422: "What cannot be changed was to be changed" },
    async run({ params, body, identity }, context) {
      const { id } = await loadLetter(params.id, context);
      const row = await context.service.rows.retry(id, readRetryByHand(body), byKey(identity));
      return (set.retried ?? set.show)(row);
    },
  }),
  route("DELETE", `${path}/:id`, "operate", {
    scope: "tenant",
    tag: set.tag,
    summary: "Delete a dead letter for good",
    ...(removal.reply && { reply: removal.reply }),
    replies: { [removal.status]: "It is gone", ...MISSING },
    async run({ params, identity }, context) {
      const row = await loadLetter(params.id, context);
      if (!(await context.service.remove(row, byKey(identity)))) throw conflict(row, "delete");
      return removal.show(row);
    },
  }),
];
