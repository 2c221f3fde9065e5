import { show } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { stepRows } from "../../engine/workflows/workflow-handle.ts";
import type { WorkflowSummary, WorkflowView } from "../../engine/workflows/workflow-view.ts";
import { readIsoDuration } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import type { Identity } from "../access/auth.ts";
import { type BodyWarning, warned } from "../http/body-warnings.ts";
import { notFound } from "../http/failures.ts";
import { HttpError, type PlainHeaders, refusedField } from "../http/http-error.ts";
import { turn } from "../http/turn.ts";
import { byKey, json, type Reply, type Route, type RouteContext, routesOf } from "../route.ts";
import { readTexts } from "../wire/job-page.ts";
import { listedPage } from "../wire/pages.ts";
import { jobsReplySchema } from "../wire/replies.ts";
import { emptySchema, pageQuery } from "../wire/schemas.ts";
import {
  readWorkflow,
  workflowFields,
  workflowProgressReply,
  workflowReplySchema,
  workflowSchema,
  workflowsQuery,
  workflowsReplySchema,
} from "../wire/workflow.ts";
import { firstSteps } from "../wire/workflow-steps.ts";

const route = routesOf({ tag: "workflows", scope: "tenant" });
const STEPS_PER_TURN = 500;

/** Some clients read the wrapped fields, others the flat ones. */
function workflowReply(
  status: number,
  view: Parameters<typeof workflowFields>[0],
  more: object = {},
  headers: PlainHeaders = {},
): Reply {
  const workflow = { ...workflowFields(view), ...more };
  const { steps_total, steps_completed, created_at, completed_at } = workflow;
  const metadata = { created_at, completed_at, job_count: steps_total, completed_count: steps_completed };
  return json(status, { workflow, ...workflow, metadata }, headers);
}

async function load(id: string | undefined, { engine }: RouteContext): Promise<WorkflowView> {
  const view = id !== undefined && UUID.test(id) ? await engine.workflows.get(id).view() : null;
  if (!view) throw notFound("workflow", id ?? "");
  return view;
}

const start = route("POST", "/ojs/v1/workflows", "enqueue", {
  summary: "Start a workflow: all of its jobs are stored, or none",
  reply: workflowReplySchema,
  body: workflowSchema,
  replies: { 201: "All of its jobs are durable", 409: "The id is known" },
  async run({ body }, context) {
    const { engine } = context;
    // Checking, reading and storing thousands of steps each take a turn of the event loop.
    const isLarge = (body.steps ?? body.jobs ?? []).length > STEPS_PER_TURN;
    if (isLarge) await turn();
    const warnings: BodyWarning[] = [];
    const { documentLimit } = context.service;
    const plan = readWorkflow(body, {
      now: engine.now(),
      documentLimit,
      warn: (warning) => warnings.push(warning),
      schemas: engine.schemas,
    });
    if (isLarge) await turn();
    if (body.id != null && !UUID.test(body.id))
      throw refusedField("id", `${show(body.id)} is not valid; use a lower-case UUID, or leave it out`);
    const { id, name, meta, workflow_timeout, workflow_timeout_ms, retention } = body;
    const inMs = workflow_timeout == null ? null : workflow_timeout * 1_000;
    const timeout = workflow_timeout_ms ?? inMs;
    if (inMs !== null && timeout !== inMs)
      throw refusedField(
        "workflow_timeout_ms",
        `${timeout} contradicts workflow_timeout: ${workflow_timeout}; send one of them`,
      );
    const handle = await engine.workflows.start(plan, {
      ...(id != null && { id }),
      ...(name != null && { name }),
      ...(meta != null && { meta }),
      ...(timeout !== null && { timeout: { milliseconds: timeout } }),
      ...(retention != null && { retention: { milliseconds: readIsoDuration(retention) as number } }),
    });
    if (handle.duplicate)
      throw new HttpError(409, "duplicate", `A workflow with the id ${handle.id} exists already`);
    const made = await load(handle.id, context);
    const Location = `/ojs/v1/workflows/${handle.id}`;
    const steps = await firstSteps(engine.store, handle.id);
    return warned(workflowReply(201, made, { steps }, { Location }), warnings);
  },
});

/** Steps that one list counts: those of running workflows are read for it. */
const MOST_COUNTED = 10_000;

/** Workflows with the counts of their steps, marked where counting would read too much. */
async function counted(items: readonly WorkflowSummary[], engine: RouteContext["engine"]) {
  const workflows: object[] = [];
  let left = MOST_COUNTED;
  for (const item of items) {
    if (item.endedAt === null) left -= item.total;
    const view = left < 0 && item.endedAt === null ? null : await engine.workflows.get(item.id).view();
    workflows.push({ ...workflowFields(view ?? item), counts_are_exact: view !== null });
  }
  return workflows;
}

const list = route("GET", "/ojs/v1/workflows", "read", {
  summary: "List workflows by the time of their start, the newest first",
  reply: workflowsReplySchema,
  query: workflowsQuery,
  replies: { 200: "A page of workflows; with a state, a short page may not be the last" },
  async run({ query }, { engine }) {
    const { state, order = "desc" } = query;
    const { items, pagination } = await listedPage(query, {
      usual: 100,
      list: (after, limit) => engine.workflows.list({ ...(after !== null && { after }), limit, order }),
      cursorOf: ({ id }) => id,
      // The admin page says active for running.
      isWanted: state && ((workflow) => workflow.state === (state === "active" ? "running" : state)),
    });
    const workflows = await counted(items, engine);
    return json(200, { workflows, items: workflows, total: pagination.total, pagination });
  },
});

const get = route("GET", "/ojs/v1/workflows/:id", "read", {
  summary: "Look at a workflow",
  reply: workflowReplySchema,
  replies: { 200: "The workflow, with its first 200 steps", 404: "There is no such workflow" },
  async run({ params }, context) {
    const view = await load(params.id, context);
    return workflowReply(200, view, { steps: await firstSteps(context.engine.store, view.id) });
  },
});

const jobs = route("GET", "/ojs/v1/workflows/:id/jobs", "read", {
  summary: "The jobs of a workflow in the order in which they were written",
  reply: jobsReplySchema,
  query: pageQuery,
  replies: { 200: "A page of jobs; deleted jobs are left out", 404: "There is no such workflow" },
  async run({ params, query }, context) {
    const { id, total } = await load(params.id, context);
    const { cursor, limit = 100 } = query;
    const from = Number(cursor ?? 0);
    if (!Number.isSafeInteger(from) || from < 0)
      throw refusedField(
        "cursor",
        `${show(cursor)} is not a cursor of this server; leave it out to start over`,
      );
    let next = from;
    const read = async (_after: string | null, count: number) => {
      const rows = await stepRows(context.engine.store, id, { from: next, limit: count });
      next += count;
      const jobs = rows.filter((row) => row !== null);
      return { jobs, cursor: next < total ? String(next) : null };
    };
    const { texts, cursor: end } = await readTexts(read, String(from), limit);
    const pagination = { total, has_more: end !== null, next_cursor: end };
    return { status: 200, text: `{"jobs":[${texts.join(",")}],"pagination":${JSON.stringify(pagination)}}` };
  },
});

const progress = route("GET", "/ojs/v1/workflows/:id/progress", "read", {
  summary: "How far a workflow is",
  reply: workflowProgressReply,
  replies: {
    200: "How many of its jobs have ended and how, and how far each of the first 200 is",
    404: "There is no such workflow",
  },
  async run({ params }, context) {
    const { id, kind, state, total, progress: counts } = await load(params.id, context);
    const { completed, discarded, cancelled } = counts;
    const ended = completed + discarded + cancelled;
    const steps = await firstSteps(context.engine.store, id);
    const running = steps.reduce(
      (sum, { state, progress }) => sum + (state === "active" ? (progress ?? 0) : 0),
      0,
    );
    const share = Math.min(1, (ended + running) / Math.max(1, total));
    const percentage = Math.round(share * 100);
    const done = { total, completed, failed: discarded, cancelled };
    const now = instantText(context.engine.now());
    return json(200, {
      workflow_id: id,
      type: kind,
      state,
      ...done,
      percentage,
      progress: share,
      steps,
      updated_at: now,
    });
  },
});

async function cancel(id: string | undefined, identity: Identity, context: RouteContext): Promise<Reply> {
  const view = await load(id, context);
  await context.engine.workflows.cancel(view.id, byKey(identity));
  const ended = await load(view.id, context);
  const { cancelled, completed } = ended.progress;
  return workflowReply(200, ended, {
    cancelled_at: instantText(ended.endedAt ?? context.engine.now()),
    steps_cancelled: cancelled,
    // The public command line prints this name.
    cancelled_steps: cancelled,
    steps_already_completed: completed,
  });
}

const remove = route("DELETE", "/ojs/v1/workflows/:id", "cancel", {
  summary: "Cancel the rest of a workflow",
  reply: workflowReplySchema,
  replies: { 200: "It is cancelled", 404: "There is no such workflow", 409: "It has ended" },
  run: ({ params, identity }, context) => cancel(params.id, identity, context),
});

const cancelByPost = route("POST", "/ojs/v1/workflows/:id/cancel", "cancel", {
  summary: "Cancel the rest of a workflow, by the admin page's path",
  reply: workflowReplySchema,
  body: emptySchema,
  replies: { 200: "It is cancelled", 404: "There is no such workflow", 409: "It has ended" },
  run: ({ params, identity }, context) => cancel(params.id, identity, context),
});

export const workflowRoutes: readonly Route[] = [start, list, get, jobs, progress, remove, cancelByPost];
