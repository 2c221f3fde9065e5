import type { Command } from "commander";
import { parseDuration } from "../../core/time.ts";
import { wholeNumber, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { errorText } from "../output/job-table.ts";
import { dim, paint, paintState, printable } from "../output/paint.ts";
import { rest } from "../rest.ts";
import { act, type TargetContext } from "../run-command.ts";
import { meantJob, onJob } from "../target/not-found.ts";
import type { Fields, Query } from "../target/target.ts";

const ID = "0198f7e2-7b1c-7000-8000-000000000001";
const LOOK_EVERY = 500;
const WAIT_AT_ONCE = 2_000;
const RECONNECT = 1_000;
const ENDED: ReadonlySet<unknown> = new Set(["completed", "discarded", "cancelled"]);

export function declareLogs(command: Command): void {
  command
    .description("Print the log lines that the attempts of a job wrote.")
    .argument("<id>", "its id, or at least its first 8 characters");
  withTarget(command).option("-f, --follow", "print new lines until the job ends");
  withPage(command, {
    examples: [
      [`logs ${ID}`, "what it wrote"],
      [`logs ${ID} -f`, "and new lines until the job ends"],
    ],
    json: 'one line each: {"at","message","fields"?,…}',
  });
  act<{ readonly follow?: boolean }>(command, async (context, { follow }, [id]) => {
    const { target, output, signal } = context;
    const meant = await meantJob(target, id as string);
    for (let printed = 0; ; ) {
      // Read the state before the log, so that the log of an ended job is complete.
      const { job } = await onJob(target, meant, (path) => target.get(path));
      const { lines } = await onJob(target, meant, (path) => target.get(`${path}/logs`));
      const all = lines as readonly Fields[];
      for (const line of all.slice(printed)) output.line(line, () => logText(line));
      printed = Math.max(printed, all.length);
      if (!follow || ENDED.has((job as Fields).state)) {
        if (printed === 0) output.note("No log lines.");
        return;
      }
      await rest(LOOK_EVERY, signal);
      signal.throwIfAborted();
    }
  });
}

function logText({ at, message, fields }: Fields): string {
  const more = fields === undefined ? "" : ` ${dim(printable(JSON.stringify(fields)))}`;
  return `${dim(String(at))} ${printable(String(message))}${more}`;
}

interface TailOptions {
  readonly follow?: boolean;
  readonly lines: number;
  readonly types?: string;
  readonly queue?: string;
  readonly job?: string;
}

export function declareTail(command: Command): void {
  command.description("Print the newest events: what happened to jobs, queues, workers and crons.");
  withTarget(command)
    .option("-f, --follow", "print new events until Ctrl-C")
    .option("-n, --lines <count>", "how many of the newest, at most 200", wholeNumber, 20)
    .option("--types <list>", "only these, such as job.failed,job.discarded")
    .option("--queue <name>", "only of this queue")
    .option("--job <id>", "only of this job");
  withPage(command, {
    examples: [
      ["tail -f", "everything that happens"],
      ["tail -f --types job.discarded --queue payments", "what fails for good"],
    ],
    json: 'one event per line, as CloudEvents: {"id","type","time","subject","data",…}',
    more: 'A store has events only if they are recorded: by a server, or by an engine opened with events: "durable".',
  });
  act<TailOptions>(command, tail);
}

async function tail(context: TargetContext, options: TailOptions): Promise<void> {
  const { target, output, signal } = context;
  const { types, queue, job } = options;
  const filter: Query = { types, queue, job_id: job };
  const page = await target.get("/ojs/v1/events", {
    ...filter,
    limit: Math.min(200, Math.max(1, options.lines)),
  });
  const events = page.events as readonly Fields[];
  for (const event of options.lines === 0 ? [] : events) output.line(event, () => eventText(event));
  if (events.length === 0 && target.engine?.journal.isOn === false)
    output.note(
      'No events are recorded on this store: start a server on it, or open an engine with events: "durable".',
    );
  if (!options.follow) return;
  // After a restart of the server, reading continues after the last event, so none is missed.
  for (let after = page.cursor as string | null; !signal.aborted; ) {
    try {
      const follow = target.stream("/ojs/v1/events/stream", { ...filter, after: after ?? undefined }, signal);
      for await (const { id, data } of follow) {
        const event = JSON.parse(data) as Fields;
        if (typeof event.type !== "string") continue;
        after = id ?? after;
        output.line(event, () => eventText(event));
      }
    } catch (error) {
      if (!(error instanceof CommandFailed && error.exit === "unreachable") && !(error instanceof TypeError))
        throw error;
      output.note(dim("The server does not answer; retrying.", process.stderr));
    }
    await rest(RECONNECT, signal);
  }
  signal.throwIfAborted();
}

const LOUD = /failed|discarded|timeout|stuck|stalled|killed|blocked|unready|full/;

export function eventText({ time, type, subject, job_id, queue, data }: Fields): string {
  const name = LOUD.test(String(type)) ? paint("yellow", String(type)) : String(type);
  const { last_error, error = last_error, attempt, tries, progress, message } = (data ?? {}) as Fields;
  // Sagas, timeouts, crons, workers and webhooks have no job: without the subject nobody knows which one it was.
  const about = job_id ?? (subject === queue ? undefined : subject);
  const count = attempt ?? tries;
  const parts = [
    dim(String(time)),
    name,
    ...(about === undefined ? [] : [printable(String(about))]),
    ...(queue === undefined ? [] : [printable(String(queue))]),
    ...(typeof count === "number" ? [dim(`attempt ${count}`)] : []),
    ...(typeof progress === "number" ? [`${Math.round(progress * 100)} %`] : []),
    ...(typeof message === "string" ? [printable(message)] : []),
    ...(error === undefined
      ? []
      : [paint("red", printable(typeof error === "string" ? error : errorText(error)))]),
  ];
  return parts.join(" ");
}

export function declareWait(command: Command): void {
  command.description("Wait until jobs have ended.").argument("<ids...>", "their ids");
  withTarget(command).option("--timeout <duration>", "stop waiting after this time; the jobs continue");
  withPage(command, {
    examples: [
      [`wait ${ID}`, "exit 0 if it completed, 1 if it did not"],
      [`wait ${ID} --timeout 5m`, "for at most five minutes"],
    ],
    json: "one job per line, in the order in which they were named",
  });
  act<{ readonly timeout?: string }>(command, wait);
}

async function wait(
  { target, output, signal }: TargetContext,
  options: { readonly timeout?: string },
  ids: readonly string[],
): Promise<void> {
  const limit =
    options.timeout === undefined ? null : parseDuration(options.timeout, "--timeout", { zero: true });
  const endsAt = limit === null ? Number.POSITIVE_INFINITY : target.now() + limit;
  const failed: string[] = [];
  for (const id of ids) {
    const job = await output.during(`waiting for job ${id}`, async () => {
      for (;;) {
        signal.throwIfAborted();
        const left = Math.max(0, Math.min(WAIT_AT_ONCE, Math.floor(endsAt - target.now())));
        const reply = await onJob(target, id, (path) => target.get(path, { wait_ms: left }));
        const found = reply.job as Fields;
        if (ENDED.has(found.state)) return found;
        if (target.now() >= endsAt)
          throw new CommandFailed(
            "failed",
            `job ${id} is ${found.state} after ${options.timeout}; see curfew why ${id}`,
          );
      }
    });
    output.line(job, () => endText(job));
    if (job.state !== "completed") failed.push(id);
  }
  if (failed.length > 0)
    throw new CommandFailed(
      "failed",
      `${failed.length} of ${ids.length} jobs did not complete; see curfew why ${failed[0]}`,
    );
}

function endText(job: Fields): string {
  const state = paintState(String(job.state));
  const result = job.result === undefined ? "" : ` ${printable(JSON.stringify(job.result))}`;
  const error = job.error === undefined ? "" : ` ${paint("red", printable(errorText(job.error)))}`;
  return `${job.id} ${state}${result}${error}`;
}
