import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { parseDuration } from "../../core/time.ts";
import { countNumber, REASON, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { printable } from "../output/paint.ts";
import { relativeText } from "../output/times.ts";
import { act, type TargetContext } from "../run-command.ts";
import { futureOption } from "../target/filter-options.ts";
import { onJob } from "../target/not-found.ts";
import { type Fields, Refusal } from "../target/target.ts";

interface EnqueueOptions {
  readonly queue?: string;
  readonly priority?: number;
  readonly in?: string;
  readonly at?: string;
  readonly id?: string;
  readonly attempts?: number;
  readonly attempt?: string;
  readonly total?: string;
  readonly wait?: string;
  readonly heartbeat?: string;
  readonly meta?: string;
}

function priority(text: string): number {
  if (!/^-?\d{1,3}$/.test(text)) throw new InvalidArgumentError("Write a whole number from -100 to 100.");
  return Number(text);
}

export function declareEnqueue(command: Command): void {
  command
    .description("Enqueue a job.")
    .argument("<type>", "its type, such as card.charge")
    .argument("[payload]", "JSON; @file reads a file, - reads standard input");
  withTarget(command)
    .option("--queue <name>", "the queue, default if left out")
    .option("--priority <number>", "from -100 to 100", priority)
    .option("--in <duration>", "run it this much later, such as 10m")
    .option("--at <instant>", "run it then, such as 2030-01-31T12:00:00Z")
    .option("--id <uuid>", "the id; if a job has this id already, nothing is added")
    .option("--attempts <count>", "the most attempts", countNumber)
    .option("--attempt <duration>", "the timeout of each attempt, or none")
    .option("--total <duration>", "the timeout of the whole job from now on, or none")
    .option("--wait <duration>", "how long it may wait for its first start, or none")
    .option("--heartbeat <duration>", "the longest silence of an attempt, or none")
    .option("--meta <json>", "an object that is stored with the job");
  withPage(command, {
    examples: [
      [`enqueue card.charge '{"orderId":"42","cents":1999}'`, "one job with a payload"],
      ["enqueue report.build --queue reports --in 10m --attempt 2m", "in ten minutes, with a timeout"],
      ["enqueue import.catalog @catalog.json", "the payload from a file"],
    ],
    json: "the job as in docs/openapi.json",
  });
  act<EnqueueOptions>(command, enqueue);
}

async function enqueue(
  { target, output }: TargetContext,
  options: EnqueueOptions,
  [type, payload]: readonly string[],
): Promise<void> {
  if (options.in !== undefined && options.at !== undefined)
    throw new CommandFailed("usage", "--in and --at: pass one of them, not both");
  const now = target.now();
  const scheduled = options.in ?? options.at;
  const meta = options.meta === undefined ? undefined : parseJson(options.meta, "--meta");
  const sent = target.send("POST", "/ojs/v1/jobs", {
    type,
    args: payload === undefined ? [] : [parseJson(readPayload(payload), "payload")],
    ...(options.id !== undefined && { id: options.id }),
    ...(meta !== undefined && { meta }),
    options: {
      ...(options.queue !== undefined && { queue: options.queue }),
      ...(options.priority !== undefined && { priority: options.priority }),
      ...(scheduled !== undefined && {
        scheduled_at: futureOption(scheduled, now, options.in === undefined ? "--at" : "--in"),
      }),
      ...(options.attempts !== undefined && { retry: { max_attempts: options.attempts } }),
      ...limitFields(options),
      ...(options.wait !== undefined && { enqueue_ttl_ms: limit(options.wait, "--wait") }),
    },
  });
  const { job } = await sent.catch((error: unknown) => {
    throw error instanceof Refusal ? byFlags(error, options.in === undefined ? "--at" : "--in") : error;
  });
  const made = job as Fields;
  output.answer(made, () => String(made.id));
  const due = made.scheduled_at === undefined ? "" : `, due ${relativeText(made.scheduled_at, now)}`;
  output.note(`Enqueued in ${printable(String(made.queue))}${due}. Follow it with: curfew wait ${made.id}`);
}

/** A refusal in the words of the command line: the server names its own fields. */
function byFlags({ exit, message, status }: Refusal, start: string): Refusal {
  const said = message
    .replace(/^(?:options\.)?(priority|queue|id|meta):/, "--$1:")
    .replace(/\benqueue_ttl(?:_ms)?\b/g, "--wait")
    .replace(/\btotal_timeout(?:_ms)?\b/g, "--total")
    .replace(/\bheartbeat_timeout(?:_ms)?\b/g, "--heartbeat")
    .replace(/\btimeout(?:_ms)?(?=:| \()/g, "--attempt")
    .replace(/\bscheduled_at\b/g, start);
  return new Refusal(exit, said, status);
}

function readPayload(said: string): string {
  if (said !== "-" && !said.startsWith("@")) return said;
  try {
    return readFileSync(said === "-" ? 0 : said.slice(1), "utf8");
  } catch (error) {
    throw new CommandFailed("usage", `payload: ${said} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function parseJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const shown = JSON.stringify(text.slice(0, 60));
    throw new CommandFailed(
      "usage",
      `${field}: ${shown} is not JSON; write text in double quotes: '"text"'`,
      { cause: error },
    );
  }
}

/** Milliseconds, or `none` for no limit. */
function limit(text: string, option: string): number | "none" {
  return text === "none" ? "none" : parseDuration(text, option);
}

interface LimitOptions {
  readonly attempt?: string;
  readonly total?: string;
  readonly heartbeat?: string;
}

function limitFields({ attempt, total, heartbeat }: LimitOptions) {
  return {
    ...(attempt !== undefined && { timeout_ms: limit(attempt, "--attempt") }),
    ...(total !== undefined && { total_timeout_ms: limit(total, "--total") }),
    ...(heartbeat !== undefined && { heartbeat_timeout_ms: limit(heartbeat, "--heartbeat") }),
  };
}

interface ExtendOptions extends LimitOptions {
  readonly priority?: number;
  readonly reason?: string;
}

export function declareExtend(command: Command): void {
  command
    .description("Change the limits of a job that waits or runs, or the priority of one that waits.")
    .argument("<id>", "its id");
  withTarget(command)
    .option("--attempt <duration>", "the timeout of the attempt from its start, or none")
    .option("--total <duration>", "the timeout of the whole job since its creation, or none")
    .option("--heartbeat <duration>", "the longest silence of an attempt, or none")
    .option("--priority <number>", "from -100 to 100", priority)
    .option(...REASON);
  withPage(command, {
    examples: [
      [
        "extend 0198f7e2-7b1c-7000-8000-000000000001 --attempt 30m",
        "half an hour from the start of the attempt",
      ],
      ["extend 0198f7e2-7b1c-7000-8000-000000000001 --total none", "no timeout for the whole job"],
    ],
    json: "the job as in docs/openapi.json",
  });
  act<ExtendOptions>(command, async ({ target, output }, options, [id]) => {
    const limits = {
      ...limitFields(options),
      ...(options.priority !== undefined && { priority: options.priority }),
    };
    if (Object.keys(limits).length === 0)
      throw new CommandFailed(
        "usage",
        "extend: nothing to change; pass --attempt, --total, --heartbeat or --priority",
      );
    const body = { ...limits, reason: options.reason };
    const { job } = await onJob(target, id as string, (path) => target.send("PATCH", path, body));
    output.answer(job, () => `The limits of job ${id} are changed. See them with: curfew explain ${id}`);
  });
}
