import { checkpointOf } from "../../core/job/documents/checkpoint.ts";
import { progressOf } from "../../core/job/documents/job-progress.ts";
import { visibleRow } from "../../core/job/documents/redaction.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import { checkpointFields } from "../../ojs/checkpoint-fields.ts";
import { readInstant } from "../../ojs/wire-durations.ts";
import { instantText, noteFields } from "../../ojs/wire-fields.ts";
import { LOG_LIMIT } from "../../ports/store.ts";
import type { Identity } from "../access/auth.ts";
import { notFound } from "../http/failures.ts";
import { json, type Reply, type Route, type RouteContext, reply, routesOf } from "../route.ts";
import { checkpointReplySchema, logsReplySchema, progressReplySchema } from "../wire/replies.ts";
import { senderOf } from "../wire/report.ts";
import { checkpointSchema, logsSchema, progressSchema, workerProgressSchema } from "../wire/schemas.ts";
import { jobId, loadJob } from "./job-actions.ts";
import { counted } from "./workers.ts";

const route = routesOf({ tag: "progress", scope: "tenant" });
/** Characters of log lines in one reply. */
const LOGS_SIZE = 4_000_000;
const REPORT = {
  404: "There is no such job",
  409: "The sender does not hold the job; nothing was changed",
};

interface Progress {
  readonly message?: string | null | undefined;
  readonly data?: unknown;
  readonly fence?: number | null | undefined;
  readonly worker_id?: string | null | undefined;
}

async function setProgress(
  id: string,
  fraction: number,
  body: Progress,
  { identity, context }: { readonly identity: Identity; readonly context: RouteContext },
): Promise<Reply> {
  const note: Record<string, Json> = { at: context.engine.now() };
  if (body.message != null) note.message = body.message;
  if (body.data !== undefined) note.data = body.data as Json;
  const sender = senderOf(body, identity, context);
  const outcome = await context.service.notes.progress(id, sender, fraction, note);
  return json(200, { job_id: id, ...progressFields(counted(id, sender, outcome, "progress")) });
}

export function progressFields(row: JobRow): Record<string, unknown> {
  const kept = progressOf(row);
  const value = row.state === "completed" ? 1 : (kept?.value ?? null);
  return {
    progress: value,
    percentage: value === null ? null : value * 100,
    ...noteFields(kept?.note),
  };
}

const putProgress = route("PUT", "/ojs/v1/jobs/:id/progress", "work", {
  summary: "Report the progress of an attempt; counts as a beat",
  reply: progressReplySchema,
  body: progressSchema,
  replies: { 200: "The current progress", ...REPORT },
  async run({ params, body, identity }, context) {
    const id = jobId(params);
    const reply = await setProgress(id, body.progress, body, { identity, context });
    if (body.checkpoint == null) return reply;
    const state = body.checkpoint as Json;
    const sender = senderOf(body, identity, context);
    counted(id, sender, await context.service.notes.checkpoint(id, sender, state), "checkpoint");
    return reply;
  },
});

const workerProgress = route("POST", "/ojs/v1/workers/progress", "work", {
  summary: "Report the progress of an attempt in percent",
  reply: progressReplySchema,
  body: workerProgressSchema,
  replies: { 200: "The current progress", ...REPORT },
  run: ({ body, identity }, context) =>
    setProgress(jobId({ id: body.job_id }), body.percentage / 100, body, { identity, context }),
});

const getProgress = route("GET", "/ojs/v1/jobs/:id/progress", "read", {
  summary: "The progress of a job",
  reply: progressReplySchema,
  replies: { 200: "Its progress; null if none was reported", 404: "There is no such job" },
  run: async ({ params }, context) => {
    const row = await loadJob(params.id ?? "", context);
    return json(200, { job_id: row.id, state: row.state, ...progressFields(row) });
  },
});

/** A worker continues from its checkpoint, so it gets the real one. A server without keys cannot tell who is one. */
function seenBy({ role, by }: Identity, row: JobRow): JobRow {
  return role === "worker" || by === "nobody" ? row : visibleRow(row);
}

function checkpointReply(job: JobRow, identity: Identity): Reply {
  const row = seenBy(identity, job);
  const saved = checkpointOf(row);
  if (!saved) throw notFound("checkpoint of job", row.id);
  const fields = { job_id: row.id, ...checkpointFields(saved) };
  return json(200, { ...fields, checkpoint: fields });
}

/** A checkpoint may be prepared for a waiting job, which has no fence. */
const savedBy = (body: Progress, identity: Identity) => senderOf(body, identity, { requiresFence: false });

const CHECKPOINT = "/ojs/v1/jobs/:id/checkpoint";
/** The public JavaScript SDK prefixes its base path twice. */
const SDK_CHECKPOINTS = "/ojs/v1/ojs/v1/checkpoints/:id";

const saveBy = (method: "PUT" | "POST", path: string) =>
  route(method, path, "work", {
    summary: "Save a state that the next attempt begins with; counts as a beat",
    reply: checkpointReplySchema,
    body: checkpointSchema,
    replies: { 200: "It is durable", ...REPORT },
    async run({ params, body, identity }, context) {
      const id = jobId(params);
      const sender = savedBy(body, identity);
      const note = {
        ...(body.step_index != null && { stepIndex: body.step_index }),
        ...(body.metadata != null && { metadata: body.metadata as Json }),
      };
      const outcome = await context.service.notes.checkpoint(id, sender, body.state as Json, note);
      return checkpointReply(counted(id, sender, outcome, "checkpoint"), identity);
    },
  });

const getCheckpoint = route("GET", CHECKPOINT, "read", {
  summary: "The state that was saved last",
  reply: checkpointReplySchema,
  replies: { 200: "The state", 404: "There is no such job, or nothing was saved" },
  run: async ({ params, identity }, context) =>
    checkpointReply(await loadJob(params.id ?? "", context), identity),
});

const deleteBy = (path: string) =>
  route("DELETE", path, "work", {
    summary: "Delete the saved state",
    replies: { 200: "It is gone", 404: "There is no such job" },
    async run({ params, identity }, context) {
      const id = jobId(params);
      const sender = savedBy({}, identity);
      counted(id, sender, await context.service.notes.checkpoint(id, sender, null), "checkpoint");
      return json(200, { deleted: true, job_id: id });
    },
  });

const resume = route("GET", `${SDK_CHECKPOINTS}/resume`, "read", {
  summary: "The saved state as the public JavaScript SDK asks for it",
  replies: { 200: "The state, or that there is none", 404: "There is no such job" },
  async run({ params, identity }, context) {
    const row = seenBy(identity, await loadJob(params.id ?? "", context));
    const saved = checkpointOf(row);
    const checkpoint = saved && { job_id: row.id, ...checkpointFields(saved) };
    return json(200, { has_checkpoint: saved !== null, checkpoint });
  },
});

const addLogs = route("POST", "/ojs/v1/jobs/:id/logs", "work", {
  summary: "Add lines to the log of a job; counts as a beat",
  body: logsSchema,
  replies: { 200: "They are durable", ...REPORT },
  async run({ params, body, identity }, context) {
    const id = jobId(params);
    const sender = senderOf(body, identity, context);
    const now = context.engine.now();
    const lines = body.lines.map(({ message, fields, at }) => ({
      at: typeof at === "string" ? readInstant(at, now, "at") : now,
      message,
      ...(fields && { fields: fields as { [key: string]: Json } }),
    }));
    counted(id, sender, await context.service.notes.log(id, sender, lines), "logs");
    return json(200, { job_id: id, count: lines.length });
  },
});

const getLogs = route("GET", "/ojs/v1/jobs/:id/logs", "read", {
  summary: "The log of a job",
  reply: logsReplySchema,
  replies: { 200: "Its lines", 404: "There is no such job" },
  async run({ params }, context) {
    const { id } = await loadJob(params.id ?? "", context);
    const lines = (await context.engine.job(id).logs({ limit: LOG_LIMIT })).lines;
    const texts = lines.map(({ at, ...line }) => JSON.stringify({ ...line, at: instantText(at) }));
    // The newest lines that fill a reply.
    let [from, size] = [texts.length, 0];
    while (from > 0 && size < LOGS_SIZE) size += texts[--from]?.length ?? 0;
    const head = JSON.stringify({ job_id: id, has_older: from > 0 });
    return reply(200, `${head.slice(0, -1)},"lines":[${texts.slice(from).join(",")}]}`);
  },
});

export const noteRoutes: readonly Route[] = [
  putProgress,
  workerProgress,
  getProgress,
  saveBy("PUT", CHECKPOINT),
  saveBy("POST", CHECKPOINT),
  getCheckpoint,
  deleteBy(CHECKPOINT),
  saveBy("POST", SDK_CHECKPOINTS),
  deleteBy(SDK_CHECKPOINTS),
  resume,
  addLogs,
  getLogs,
];
