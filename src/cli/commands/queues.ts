import { type Command, InvalidArgumentError, Option } from "commander";
import { REASON, type ReasonOption, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { confirm } from "../output/confirm.ts";
import { paint, paintState, printable } from "../output/paint.ts";
import { type Column, tableText } from "../output/table.ts";
import { spanText } from "../output/times.ts";
import { act, type TargetContext } from "../run-command.ts";
import { instantOption } from "../target/filter-options.ts";
import { lookUpQueue } from "../target/known-queues.ts";
import { offered } from "../target/not-found.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/admin/queues";
const WAITING = ["available", "pending", "scheduled", "retryable"] as const;
const STATES = [...WAITING, "completed", "discarded", "cancelled"] as const;

export function register(queues: Command): void {
  queues.description("Queues: their jobs, pauses and limits.");
  declareList(queues.command("ls"));
  declarePause(queues.command("pause"), "pause");
  declarePause(queues.command("resume"), "resume");
  declareLimit(queues.command("limit"));
  declarePurge(queues.command("purge"));
}

function declareList(command: Command): void {
  command.description("List queues with the numbers of waiting and running jobs.");
  withPage(withTarget(command), {
    examples: [["queues ls", "all queues; one that no live worker takes is marked"]],
    more: "HELD counts jobs that wait for their limit, for steps before them, or for curfew activate.",
    json: '{"items":[{"name","paused","depth","counts","throughput","latency_ms"?,"configuration","unattended"}]}',
  });
  act(command, list);
}

const count =
  (state: string): Column<Fields>["show"] =>
  (queue) =>
    String((queue.counts as Fields)[state]);

const COLUMNS: readonly Column<Fields>[] = [
  { title: "QUEUE", show: ({ name }) => printable(String(name)), shrinkTo: 12 },
  { title: "STATE", show: ({ paused }) => paintState(paused ? "paused" : "active") },
  { title: "READY", show: count("available"), align: "right" },
  { title: "LATER", show: count("scheduled"), align: "right", drop: 3 },
  { title: "RETRY", show: count("retryable"), align: "right", drop: 2 },
  { title: "HELD", show: count("pending"), align: "right", drop: 1 },
  { title: "RUNS", show: count("active"), align: "right" },
  { title: "DONE 24H", show: count("completed"), align: "right", drop: 5 },
  { title: "DEAD 24H", show: ({ dead_letters }) => String(dead_letters), align: "right", drop: 4 },
  { title: "P95", show: ({ latency_ms }) => p95Text(latency_ms), align: "right", drop: 6 },
  { title: "", show: ({ unattended }) => (unattended ? paint("yellow", "no worker takes it") : "") },
];

export function queueTable(queues: readonly Fields[], width?: number): string {
  return tableText(COLUMNS, queues, width);
}

function p95Text(latency: unknown): string {
  return latency === undefined ? "-" : spanText(Number((latency as Fields).p95));
}

async function list({ target, output }: TargetContext): Promise<void> {
  const [page, attention] = await Promise.all([
    target.get(PATH, { per_page: 200 }),
    target.get("/ojs/v1/admin/unattended-queues"),
  ]);
  const unattended = new Set((attention.queues as readonly Fields[]).map(({ queue }) => queue));
  const items = (page.items as readonly Fields[]).map((queue) => ({
    ...queue,
    unattended: unattended.has(queue.name),
  }));
  output.answer({ items }, () =>
    items.length === 0
      ? "No queues.\nA queue is here as soon as a job is enqueued: curfew enqueue <type>"
      : queueTable(items),
  );
}

const PAUSES = {
  pause: ["Stop workers from taking jobs of a queue. New jobs are still accepted.", "is paused"],
  resume: ["Let workers take jobs of a queue again.", "is resumed"],
} as const;

function declarePause(command: Command, action: keyof typeof PAUSES): void {
  const [says, done] = PAUSES[action];
  command.description(says).argument("<queue>", "its name");
  withTarget(command).option(...REASON);
  withPage(command, {
    examples: [[`queues ${action} payments`, "for all workers, at once"]],
    json: '{"name","paused","status","paused_at"?}',
  });
  act<ReasonOption>(command, async ({ target, output }, { reason }, [queue]) => {
    const name = printable(queue as string);
    const { isKnown, isPaused, hint } = await lookUpQueue(target, queue as string);
    if (!isKnown) output.note(`no job or worker knows queue ${name}${printable(hint)}`);
    const path = `${PATH}/${encodeURIComponent(queue as string)}/${action}`;
    const reply = await target.send("POST", path, { reason });
    const wasRunning = action === "resume" && (isPaused === false || !isKnown);
    output.answer(reply.queue, () => `Queue ${name} ${wasRunning ? "was not paused" : done}.`);
  });
}

function bound(text: string): number | "none" {
  if (text === "none") return text;
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('Write a whole number from 1, or "none".');
  return Number(text);
}

interface LimitOptions {
  readonly concurrency?: number | "none";
  readonly maxDepth?: number | "none";
  readonly onFull?: string;
  readonly fair?: Fairness;
  readonly reason?: string;
}

/** `key` leaves the keys to the enqueues and definitions. */
function fairness(text: string): Fairness {
  if (text === "none") return null;
  if (text === "key") return {};
  if (text !== "type" && !text.startsWith("meta."))
    throw new InvalidArgumentError('Write "key", "type", "meta.<field>", or "none".');
  return { by: text };
}

type Fairness = { readonly by?: string } | null;

function declareLimit(command: Command): void {
  command
    .description(
      "Limit how many jobs of a queue run at once, or how many may wait. Without options, show its limits.",
    )
    .argument("<queue>", "its name");
  withTarget(command)
    .option("--concurrency <count>", "how many run at once in all processes, or none", bound)
    .option("--max-depth <count>", "how many may wait, or none", bound)
    .option("--fair <by>", "take turns by fair key: key, type, meta.<field>, or none", fairness)
    .addOption(
      new Option("--on-full <what>", "what to do with a new job when the queue is full").choices([
        "reject",
        "drop_oldest",
      ]),
    )
    .option(...REASON);
  withPage(command, {
    examples: [
      ["queues limit payments --concurrency 5", "at most five at once"],
      ["queues limit mail --max-depth 10000 --on-full reject", "refuse new jobs while 10000 wait"],
      ["queues limit payments --concurrency none", "remove the limit"],
      ["queues limit mail --fair meta.tenant_id", "take jobs of each tenant in turn"],
    ],
    json: '{"name","configuration":{"concurrency"?,"backpressure"?,"fair"?,"timeouts"?,"retry"?,"retention"?},…}',
  });
  act<LimitOptions>(command, limit);
}

async function limit(
  { target, output }: TargetContext,
  { concurrency, maxDepth, onFull, fair, reason }: LimitOptions,
  [queue]: readonly string[],
): Promise<void> {
  const path = `${PATH}/${encodeURIComponent(queue as string)}/config`;
  if (onFull !== undefined && typeof maxDepth !== "number")
    throw new CommandFailed("usage", "--on-full: there is no --max-depth; pass both");
  const change = {
    ...(concurrency !== undefined && { concurrency: concurrency === "none" ? null : concurrency }),
    ...(fair !== undefined && { fair }),
    ...(maxDepth === "none" && { backpressure: null }),
    ...(typeof maxDepth === "number" && {
      backpressure: { max_depth: maxDepth, strategy: onFull ?? "reject" },
    }),
  };
  const isChange = Object.keys(change).length > 0;
  const reply = isChange ? await target.send("PUT", path, { ...change, reason }) : await target.get(path);
  output.answer({ name: reply.name, configuration: reply.configuration }, () =>
    configText(printable(queue as string), reply.configuration as Fields),
  );
}

function configText(queue: string, { concurrency, backpressure, fair }: Fields): string {
  const runs =
    concurrency === undefined ? "no limit on how many run at once" : `at most ${concurrency} run at once`;
  const { max_depth, strategy } = (backpressure ?? {}) as Fields;
  const waits =
    max_depth === undefined ? "any number may wait" : `at most ${max_depth} may wait (${strategy})`;
  const by = (fair as Fields | undefined)?.by;
  const turns = fair === undefined ? "" : `, fair keys take turns${by === undefined ? "" : ` (${by})`}`;
  return `Queue ${queue}: ${runs}, ${waits}${turns}.`;
}

interface PurgeOptions {
  readonly states?: readonly string[];
  readonly olderThan?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly reason?: string;
}

function declarePurge(command: Command): void {
  command
    .description("Delete jobs of a queue for good; without --states, those that wait.")
    .argument("<queue>", "its name");
  withTarget(command)
    .addOption(new Option("--states <state...>", "which jobs; never those that run").choices(STATES))
    .option("--older-than <time>", "ended before: 7d ago, or an instant; for states that have ended")
    .option("--dry-run", "count, and delete nothing")
    .option("-y, --yes", "do not ask")
    .option(...REASON);
  withPage(command, {
    examples: [
      ["queues purge mail --dry-run", "how many wait"],
      ["queues purge mail --states completed discarded --older-than 7d --dry-run", "how many ended long ago"],
      ["queues purge mail --states completed --older-than 7d --yes", "completed jobs older than a week"],
    ],
    json: '{"queue","states","dry_run","matched","matched_is_exact","purged","is_complete"}',
  });
  act<PurgeOptions>(command, purge);
}

async function purge(
  { target, output, signal }: TargetContext,
  options: PurgeOptions,
  [queue]: readonly string[],
): Promise<void> {
  const name = printable(queue as string);
  const path = `${PATH}/${encodeURIComponent(queue as string)}`;
  const states = options.states ?? WAITING;
  const older =
    options.olderThan === undefined
      ? undefined
      : instantOption(options.olderThan, target.now(), "--older-than");
  const counted = await output.during("counting", () => countOf(target, queue as string, states, older));
  const { matched, isExact } = counted;
  const found = { queue, states, matched, matched_is_exact: isExact };
  const age = older === undefined ? "" : ` that ended before ${older.slice(0, 19).replace("T", " ")} UTC`;
  const many = isExact ? String(matched) : `at least ${matched}`;
  const jobs = matched === 1 && isExact ? "job" : "jobs";
  const text = `${many} ${states.join(", ")} ${jobs} of queue ${name}${age}`;
  if (options.dryRun || (matched === 0 && isExact)) {
    output.answer(
      { ...found, dry_run: options.dryRun === true, purged: 0, is_complete: true },
      () => `${text} to delete.`,
    );
    return;
  }
  await confirm(`Delete ${text} on ${target.name} for good?`, { yes: options.yes, signal });
  const body = {
    states,
    confirm: true,
    older_than: older,
    reason: options.reason,
  };
  let purged = 0;
  let isComplete = false;
  await output.during(`deleting from ${name}`, async (progress) => {
    while (!isComplete && !signal.aborted) {
      const reply = await target.send("DELETE", `${path}/jobs`, body);
      purged += Number(reply.purged_count);
      isComplete = reply.is_complete === true;
      progress.update(purged, isExact ? matched : undefined);
    }
  });
  output.answer(
    { ...found, dry_run: false, purged, is_complete: isComplete },
    () => `${purged} ${purged === 1 ? "job" : "jobs"} deleted.`,
  );
  if (!isComplete)
    throw new CommandFailed("interrupted", `stopped: ${purged} jobs are deleted, the others are unchanged`);
}

interface Counted {
  readonly matched: number;
  /** False: the count stopped early, and there may be more. */
  readonly isExact: boolean;
}

/** How many jobs a purge would delete. Ended jobs are counted by their age; jobs that wait have none. */
async function countOf(
  target: TargetContext["target"],
  queue: string,
  states: readonly string[],
  older: string | undefined,
): Promise<Counted> {
  if (older !== undefined) {
    const path = `${PATH}/${encodeURIComponent(queue)}/purge-preview`;
    const preview = { states: states.join(","), older_than: older };
    const reply = await offered(target, "a count of old jobs", () => target.get(path, preview));
    return { matched: Number(reply.matched), isExact: reply.is_complete === true };
  }
  let matched = 0;
  let isExact = true;
  for (const state of states) {
    const { pagination } = await target.get("/ojs/v1/admin/jobs", { queue, state, per_page: 1 });
    const { total, total_is_exact } = pagination as Fields;
    isExact &&= total_is_exact === true;
    matched += Number(total);
  }
  return { matched, isExact };
}
