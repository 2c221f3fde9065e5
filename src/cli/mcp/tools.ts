import { z } from "zod";
import { JOB_STATES } from "../../core/job/job.ts";
import { CommandFailed } from "../exit.ts";
import { instantOption } from "../target/filter-options.ts";
import { onJob } from "../target/not-found.ts";
import type { Fields, Query, Target } from "../target/target.ts";
import { boundedText, briefJob, wholeJob } from "./replies.ts";

/** What a tool works with. */
export interface ToolContext {
  readonly target: Target;
  /** Payloads and results are left out. */
  readonly hidePayloads: boolean;
}

interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodObject;
  /** Only with `--allow-write`. */
  readonly writes?: true;
  readonly run: (given: never, context: ToolContext) => Promise<unknown>;
}

function tool<Input extends z.ZodObject>(
  spec: Omit<Tool, "input" | "run"> & {
    readonly input: Input;
    readonly run: (given: z.output<Input>, context: ToolContext) => Promise<unknown>;
  },
): Tool {
  return spec as unknown as Tool;
}

const JOBS = "/ojs/v1/admin/jobs";
const DEAD = "/ojs/v1/admin/dead-letter";

const text = (says: string) => z.string().min(1).max(256).describe(says);
const id = z.strictObject({ id: z.string().min(1).max(64).describe("The id of the job, a UUID") });
const reason = z.string().max(500).optional().describe("Why; it is kept in the audit");

const page = {
  limit: z.int().min(1).max(50).default(20).describe("At most this many"),
  cursor: z.string().max(1_200).optional().describe("next_cursor of the page before"),
};
const filters = {
  queue: text("Only jobs of this queue").optional(),
  type: text("Only jobs of this type, such as card.charge").optional(),
  since: text("Created at or after: a duration ago such as 15m, 2h, 1d, or an RFC 3339 instant").optional(),
  until: text("Created before, in the same forms").optional(),
};

interface Listed {
  readonly queue?: string | undefined;
  readonly type?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly state?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

async function listed(path: string, given: Listed, { target }: ToolContext): Promise<Fields> {
  const { since, until, limit, ...rest } = given;
  const now = target.now();
  const query: Query = {
    ...rest,
    per_page: limit,
    ...(since !== undefined && { since: instantOption(since, now, "since") }),
    ...(until !== undefined && { until: instantOption(until, now, "until") }),
  };
  const { items, pagination } = await target.get(path, query);
  return {
    jobs: (items as readonly Fields[]).map(briefJob),
    next_cursor: (pagination as Fields).next_cursor,
  };
}

const TOOLS: readonly Tool[] = [
  tool({
    name: "list_jobs",
    title: "List jobs",
    description:
      "Lists jobs, the newest first, without payloads. A page may be short and still have a next_cursor.",
    input: z.strictObject({
      ...filters,
      state: z.enum(JOB_STATES).optional().describe("Only jobs in this state"),
      ...page,
    }),
    run: (given, context) => listed(JOBS, given, context),
  }),
  tool({
    name: "show_job",
    title: "Show a job",
    description: "Shows one job: state, limits, instants, errors, payload and result. Long texts are cut.",
    input: id,
    run: async (given, { target, hidePayloads }) => {
      const { job } = await onJob(target, given.id, (path) => target.get(path));
      return wholeJob(job as Fields, hidePayloads);
    },
  }),
  tool({
    name: "why_job",
    title: "Why does a job not run or not end?",
    description:
      "Says why a job does not run, does not end, or ended as it did. The first reason is the one to act on; each names an action.",
    input: id,
    run: (given, { target }) => onJob(target, given.id, (path) => target.get(`${path}/why`)),
  }),
  tool({
    name: "explain_job",
    title: "Where do the limits of a job come from?",
    description: "Says for every timeout and retry setting of a job which source set it, and when it ends.",
    input: id,
    run: (given, { target }) => onJob(target, given.id, (path) => target.get(`${path}/explain`)),
  }),
  tool({
    name: "list_queues",
    title: "List queues",
    description:
      "Lists queues with how many jobs wait and run in them, pauses, limits, and whether no worker takes them.",
    input: z.strictObject({ limit: z.int().min(1).max(100).default(50).describe("At most this many") }),
    async run({ limit }, { target }) {
      const [queues, attention] = await Promise.all([
        target.get("/ojs/v1/admin/queues", { per_page: limit }),
        target.get("/ojs/v1/admin/unattended-queues"),
      ]);
      return { queues: queues.items, without_worker: attention.queues };
    },
  }),
  tool({
    name: "stats",
    title: "Statistics",
    description:
      "Says how much there is to do and how much was done: jobs by state, throughput, latencies and timeouts.",
    input: z.strictObject({}),
    run: (_given, { target }) => target.get("/ojs/v1/admin/stats"),
  }),
  tool({
    name: "list_dead_letters",
    title: "List dead letters",
    description:
      "Lists jobs that failed for good and were kept, those that ended last first, with their last error.",
    input: z.strictObject({ ...filters, ...page }),
    run: (given, context) => listed(DEAD, given, context),
  }),
  tool({
    name: "retry_job",
    title: "Run a discarded job again",
    description:
      "Runs a discarded job or dead letter again: its attempts and timeouts start anew. Its work may be repeated.",
    input: id.extend({ reason }),
    writes: true,
    run: (given, context) => change("retry", given, context),
  }),
  tool({
    name: "cancel_job",
    title: "Cancel a job",
    description:
      "Ends a waiting or running job at once. It cannot be undone; what a running handler still does is not stored.",
    input: id.extend({ reason }),
    writes: true,
    run: (given, context) => change("cancel", given, context),
  }),
];

async function change(
  action: "retry" | "cancel",
  given: { readonly id: string; readonly reason?: string | undefined },
  { target }: ToolContext,
): Promise<unknown> {
  const path = `${JOBS}/${encodeURIComponent(given.id)}/${action}`;
  const { job } = await onJob(target, given.id, () => target.send("POST", path, { reason: given.reason }));
  return briefJob(job as Fields);
}

const offeredTools = (allowWrite: boolean) =>
  TOOLS.filter(({ writes }) => allowWrite || writes === undefined);

/** The tools as a client lists them. */
export function toolDescriptions(allowWrite: boolean) {
  return offeredTools(allowWrite).map(({ name, title, description, input, writes }) => {
    const { $schema: _schema, ...inputSchema } = z.toJSONSchema(input, { io: "input" });
    const isRead = writes === undefined;
    const annotations = {
      title,
      readOnlyHint: isRead,
      openWorldHint: false,
      ...(!isRead && { destructiveHint: true, idempotentHint: false }),
    };
    return { name, title, description, inputSchema, annotations };
  });
}

/** Calls a tool. A refusal is a result for the model, so that it can mend its call. */
export async function callTool(name: string, given: Fields, context: ToolContext): Promise<Fields> {
  const found = TOOLS.find((each) => each.name === name) as Tool;
  const parsed = found.input.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const field = issue?.path.join(".") || "arguments";
    return failure(`${field}: ${issue?.message}; the schema of ${name} says what it takes`);
  }
  try {
    const answer = await found.run(parsed.data as never, context);
    return { content: [{ type: "text", text: boundedText(answer) }] };
  } catch (error) {
    if (error instanceof CommandFailed || isRefusal(error)) return failure(error.message);
    throw error;
  }
}

/** An option that the library refused has a code. */
function isRefusal(error: unknown): error is Error {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "string";
}

function failure(message: string): Fields {
  return { content: [{ type: "text", text: message }], isError: true };
}
