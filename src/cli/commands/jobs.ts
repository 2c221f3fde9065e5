import type { Command } from "commander";
import { JOB_STATES } from "../../core/job/job.ts";
import {
  actOnNamed,
  BULK_JSON,
  type BulkOptions,
  type BulkVerb,
  bulk,
  withBulkOptions,
} from "../bulk-jobs.ts";
import { countNumber, REASON, type ReasonOption, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { attemptText, errorText, jobTable, shownState } from "../output/job-table.ts";
import { dim, paint, paintState, printable } from "../output/paint.ts";
import { fieldsText, tableText } from "../output/table.ts";
import { relativeText, relativeTime } from "../output/times.ts";
import { inCommands, whyText, withCommands } from "../output/why-text.ts";
import { wrapText } from "../output/wrap.ts";
import { act, type TargetContext } from "../run-command.ts";
import {
  actionFilter,
  type FilterOptions,
  filterFields,
  withErrorFilters,
  withFilters,
} from "../target/filter-options.ts";
import { lookUpQueue } from "../target/known-queues.ts";
import { onJob, onMeantJob } from "../target/not-found.ts";
import type { Fields, Query } from "../target/target.ts";
import { declareEnqueue, declareExtend } from "./change-job.ts";
import { declareLogs, declareTail, declareWait } from "./follow.ts";

const ID = "0198f7e2-7b1c-7000-8000-000000000001";
const PAGE = 200;
/** Bounds a search that drops most of what it reads. */
const MOST_PAGES = 1_000;

const VERBS: Readonly<Record<string, (command: Command) => void>> = {
  ls: declareList,
  show: declareShow,
  why: declareWhy,
  explain: declareExplain,
  enqueue: declareEnqueue,
  cancel: (command) => declareAction(command, "cancel"),
  retry: (command) => declareAction(command, "retry"),
  delete: (command) => declareAction(command, "delete"),
  extend: declareExtend,
  activate: declareActivate,
  run: declareRun,
  logs: declareLogs,
  tail: declareTail,
  wait: declareWait,
};

export function verb(name: string): (command: Command) => void {
  return VERBS[name] as (command: Command) => void;
}

/** `curfew jobs ls` is the same as `curfew ls`. */
export function register(jobs: Command): void {
  jobs.description("The commands about jobs; curfew ls and curfew jobs ls are the same.");
  for (const [name, declare] of Object.entries(VERBS)) declare(jobs.command(name));
}

interface ListOptions extends FilterOptions {
  readonly limit: number;
  readonly oldest?: boolean;
}

function declareList(command: Command): void {
  command.description("List jobs, the newest first.");
  withFilters(withTarget(command), [], [...JOB_STATES, "held"])
    .option("--limit <count>", "at most this many", countNumber, 50)
    .option("--oldest", "the oldest first");
  withPage(command, {
    examples: [
      ["ls", "the newest 50 jobs"],
      ["ls --state discarded --since 1h", "what failed for good among the jobs of the last hour"],
      ["ls --state held", "jobs that only wait for their limit"],
      ["ls --queue payments --json", "for a program"],
    ],
    json: '{"items":[job],"has_more"}; a job as in docs/openapi.json; a held job is available and has "held_by", its limit',
    more: [
      "A job is held while only its limit keeps it waiting. It is pending while it waits for steps before it, or for",
      "curfew activate.",
    ].join("\n"),
  });
  act<ListOptions>(command, list);
}

async function list({ target, output }: TargetContext, options: ListOptions): Promise<void> {
  const isHeld = options.state === "held";
  // The store knows held jobs as pending ones.
  const state = isHeld ? "pending" : options.state;
  const wanted = { ...options, ...(state !== undefined && { state }) };
  const filter = filterFields(wanted, target.now()) as Query;
  const items: Fields[] = [];
  let cursor: unknown = null;
  let pages = 0;
  do {
    const page = await target.get("/ojs/v1/admin/jobs", {
      ...filter,
      per_page: isHeld ? PAGE : Math.max(1, Math.min(PAGE, options.limit - items.length)),
      ...(options.oldest && { order: "asc" }),
      ...(cursor !== null && { cursor: String(cursor) }),
    });
    const found = page.items as Fields[];
    items.push(...(isHeld ? found.filter(({ held_by }) => held_by !== undefined) : found));
    cursor = (page.pagination as Fields).next_cursor;
    pages += 1;
  } while (cursor !== null && items.length < options.limit && pages < MOST_PAGES);
  const hasMore = cursor !== null || items.length > options.limit;
  items.splice(options.limit);
  output.answer({ items, has_more: hasMore }, () =>
    items.length === 0 ? "No jobs." : jobTable(items, target.now()),
  );
  if (items.length === 0 && options.queue !== undefined) {
    const { isKnown, hint } = await lookUpQueue(target, options.queue);
    if (!isKnown) output.note(`no such queue: no job or worker knows ${printable(options.queue + hint)}`);
  }
  if (hasMore && items.length > 0)
    output.note(dim(`There are more; pass --limit ${options.limit * 4}, or a filter.`, process.stderr));
}

function declareShow(command: Command): void {
  command
    .description("Show one job: its state, limits, errors, payload and result.")
    .argument("<id>", "its id, or at least its first 8 characters");
  withPage(withTarget(command), {
    examples: [[`show ${ID}`, "everything about it"]],
    json: 'the job as in docs/openapi.json; a held job is available and has "held_by", the key of its limit',
  });
  act(command, show);
}

const INSTANTS = [
  ["created", "created_at"],
  ["due", "scheduled_at"],
  ["next try", "next_attempt_at"],
  ["started", "started_at"],
  ["completed", "completed_at"],
  ["cancelled", "cancelled_at"],
  ["discarded", "discarded_at"],
  ["expires", "expires_at"],
] as const;

const LIMITS = [
  ["attempt", "timeout_ms"],
  ["total", "total_timeout_ms"],
  ["wait", "enqueue_ttl_ms"],
  ["grace", "grace_period_ms"],
  ["heartbeat", "heartbeat_timeout_ms"],
] as const;

async function show(
  { target, output }: TargetContext,
  _options: object,
  [id]: readonly string[],
): Promise<void> {
  const { job } = await onMeantJob(target, id as string, (path) => target.get(path));
  output.answer(job, () => jobText(job as Fields, target.now()));
}

function stateText(job: Fields): string {
  const held = job.held_by === undefined ? "" : ` by limit ${printable(String(job.held_by))}`;
  return paintState(shownState(job)) + held + (job.dead_letter ? " (dead letter)" : "");
}

function jobText(job: Fields, now: number): string {
  const fields: [string, string][] = [
    ["id", String(job.id)],
    ["state", stateText(job)],
    ["type", printable(String(job.type))],
    ["queue", printable(String(job.queue))],
    ["priority", String(job.priority)],
    ["attempt", attemptText(job, " of ")],
  ];
  for (const [name, field] of INSTANTS)
    if (job[field] !== undefined)
      fields.push([name, `${relativeText(job[field], now)}  ${dim(String(job[field]))}`]);
  const limits = LIMITS.flatMap(([name, field]) =>
    job[field] === undefined ? [] : [`${name} ${Number(job[field]) / 1_000}s`],
  );
  if (limits.length > 0) fields.push(["timeouts", limits.join(", ")]);
  if (job.workflow_id !== undefined) fields.push(["workflow", String(job.workflow_id)]);
  if (job.progress !== undefined) fields.push(["progress", `${Math.round(Number(job.progress) * 100)} %`]);
  fields.push(["payload", printable(JSON.stringify(job.args))]);
  if (job.result !== undefined) fields.push(["result", printable(JSON.stringify(job.result))]);
  const errors = (job.errors as readonly Fields[] | undefined) ?? [];
  for (const error of errors)
    fields.push([`error ${error.attempt ?? ""}`.trim(), paint("red", printable(errorText(error)))]);
  return fieldsText(fields);
}

function declareWhy(command: Command): void {
  command
    .description("Say why a job does not run, does not end, or ended as it did.")
    .argument("<id>", "its id, or at least its first 8 characters");
  withPage(withTarget(command), {
    examples: [[`why ${ID}`, "act on the first reason"]],
    json: '{"job_id","state","held_by"?,"asked_at","reasons":[{"code","sentence","since","until","who","link","action":{"name","target","text","command"}}]}',
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const why = await onMeantJob(target, id as string, (path) => target.get(`${path}/why`));
    output.answer(withCommands(why), () => whyText(why, target.now()));
  });
}

function declareExplain(command: Command): void {
  command
    .description("Say for every limit of a job which source set it, and when it ends the job.")
    .argument("<id>", "its id, or at least its first 8 characters");
  withPage(withTarget(command), {
    examples: [[`explain ${ID}`, "where its timeouts and retries come from"]],
    json: '{"fields":[{"field","value","source","lost","note"?}],"instants":{name: instant or null},"fixed","warnings"}',
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const { explanation } = await onMeantJob(target, id as string, (path) => target.get(`${path}/explain`));
    const { instants, ...rest } = explanation as Fields;
    output.answer({ ...rest, instants: instantTexts(instants as Fields) }, () =>
      explanationText(explanation as Fields, target.now()),
    );
  });
}

/** Instants as in all other answers; the library and the server give them as numbers here. */
function instantTexts(instants: Fields): Fields {
  return Object.fromEntries(
    Object.entries(instants).map(([name, at]) => [
      name,
      typeof at === "number" ? new Date(at).toISOString() : at,
    ]),
  );
}

function explanationText(explanation: Fields, now: number): string {
  const fields = explanation.fields as readonly Fields[];
  const lostText = (lost: unknown) =>
    (lost as readonly Fields[]).map(({ source, value }) => `${source} ${value}`).join(", ");
  const table = tableText(
    [
      { title: "LIMIT", show: ({ field }) => String(field) },
      { title: "VALUE", show: ({ value }) => printable(String(value)), shrinkTo: 16 },
      { title: "SET BY", show: ({ source }) => String(source) },
      { title: "LOST", show: ({ lost }) => printable(lostText(lost)), shrinkTo: 10, drop: 1 },
    ],
    fields,
  );
  const instants = Object.entries(explanation.instants as Fields).flatMap(([name, at]): [string, string][] =>
    typeof at === "number" ? [[name, relativeTime(at, now)]] : [],
  );
  const warnings = (explanation.warnings as readonly string[]).map((text) =>
    paint("yellow", wrapText(`! ${printable(text)}`, "", "  ")),
  );
  const fixed = explanation.fixed
    ? "The first start of the job fixed these."
    : "The first start of the job fixes them.";
  const notes = fields.flatMap(({ field, note }) =>
    note === undefined ? [] : [wrapText(`${field}: ${printable(String(note))}`, "", "  ")],
  );
  return [table, "", fieldsText(instants), "", ...notes, dim(fixed), ...warnings].join("\n");
}

const ACTIONS = {
  cancel: "End jobs that wait or run, at once.",
  retry: "Run discarded jobs again, with all their attempts.",
  delete: "Delete jobs that have ended, for good.",
} as const;

function declareAction(command: Command, name: BulkVerb): void {
  command.description(ACTIONS[name]).argument("[ids...]", "their ids; or use filters");
  withBulkOptions(withErrorFilters(withFilters(withTarget(command)))).option("--all", "every job");
  withPage(command, {
    examples: [
      [`${name} ${ID}`, "one job"],
      [`${name} --queue payments --since 1h --dry-run`, "how many, and which"],
      [`${name} --type card.charge --yes`, "all of a type, without a question"],
    ],
    json: BULK_JSON,
  });
  act<FilterOptions & BulkOptions>(command, (context, options, ids) =>
    ids.length > 0
      ? named(context, name, ids, options)
      : bulk(context, name, actionFilter(options, context.target.now()), options),
  );
}

function declareActivate(command: Command): void {
  command.description("Let a pending job run that waits for a sign from outside.").argument("<id>", "its id");
  withPage(withTarget(command), {
    examples: [[`activate ${ID}`, "it is available at once"]],
    json: "the job as in docs/openapi.json",
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const { job } = await onJob(target, id as string, (path) =>
      target.send("POST", `${path}/activate`, {}),
    ).catch((error: unknown) => {
      if (!(error instanceof CommandFailed)) throw error;
      throw new CommandFailed(error.exit, inCommands(error.message, id as string), { cause: error });
    });
    output.answer(job, () => `Job ${id} is ${stateText(job as Fields)}.`);
  });
}

function declareRun(command: Command): void {
  command
    .description("Run a scheduled job, or the retry of a job, now instead of later.")
    .argument("<id>", "its id");
  withPage(withTarget(command).option(...REASON), {
    examples: [[`run ${ID}`, "what is left of its delay or backoff is dropped"]],
    json: "the job as in docs/openapi.json",
  });
  act<ReasonOption>(command, async ({ target, output }, { reason }, [id]) => {
    const { job } = await onJob(target, id as string, () =>
      target.send("POST", `/ojs/v1/admin/jobs/${encodeURIComponent(id as string)}/run`, { reason }),
    );
    output.answer(job, () => `Job ${id} is ${stateText(job as Fields)}.`);
  });
}

async function named(
  context: TargetContext,
  verb: BulkVerb,
  ids: readonly string[],
  options: FilterOptions & BulkOptions,
): Promise<void> {
  const { target } = context;
  if (Object.keys(filterFields(options, target.now())).length > 0 || options.all)
    throw new CommandFailed("usage", "ids and filters: pass one of them, not both");
  const each = (id: string) =>
    onJob(target, id, (path) =>
      options.dryRun ? target.get(path) : single(target, verb, path, id, options.reason),
    );
  const words = { noun: "jobs", found: "exist", problem: CommandFailed };
  await actOnNamed(context, { verb, ids, options, each, ...words });
}

async function single(
  target: TargetContext["target"],
  name: BulkVerb,
  path: string,
  id: string,
  reason: string | undefined,
): Promise<Fields> {
  if (name !== "delete") return target.send("POST", `${path}/${name}`, { reason });
  const { job } = await target.get(path);
  const reply = await target.send("POST", "/ojs/v1/admin/jobs/bulk/delete", {
    job_ids: [id],
    confirm: true,
    reason,
  });
  if (Number(reply.succeeded) === 1) return reply;
  const { state } = job as Fields;
  throw new CommandFailed(
    "failed",
    `delete: job ${id} is ${state}; only ended jobs can be deleted; cancel it first`,
  );
}
