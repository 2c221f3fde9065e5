import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { keysOf } from "../../core/option-keys.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import { rest, within } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import type { EngineEventName } from "../events/event-bus.ts";
import { TimedWorker } from "./timed-worker.ts";
import type { WorkOptions } from "./work-options.ts";
import type { Worker } from "./worker.ts";

export interface WorkForOptions extends Omit<WorkOptions, "drain"> {
  /** The call has ended by then, from 10 s. Handlers are aborted 7 s before it. */
  readonly within: Duration;
  /** `empty` also ends the call when no job is due; `time` uses all of it. Default `empty`. */
  readonly until?: "empty" | "time";
}

/** What one call of `workFor` did. */
export interface WorkForSummary {
  /** Jobs that completed. */
  readonly done: number;
  /** Attempts that failed or timed out, and jobs that were cancelled while they ran. */
  readonly failed: number;
  /** Attempts that were given back unspent: snoozed, or aborted because the time was used. */
  readonly released: number;
  /** How often a job was not started because it would not have fitted into the time that was left. */
  readonly skipped: number;
  /** Jobs that wait in these queues, due or not; null if the store did not answer. */
  readonly left: number | null;
  /** `empty`: no job was due. `time`: the time was used, or the rest did not fit. `closed`: the engine was closed. */
  readonly stopped: "empty" | "time" | "closed";
  /** Milliseconds. */
  readonly elapsed: number;
}

export interface WorkForDeps {
  readonly context: EngineContext;
  /** Makes, registers and starts a worker. */
  start(make: (onClosed: (worker: Worker) => void) => TimedWorker): TimedWorker;
  /** Acts on due rows. Returns the milliseconds until the next ones. */
  readonly sweep: { round(): Promise<number> };
  /** Delivers due timeouts and messages. Resolves with false if there were none. */
  readonly dispatcher: { deliverDue(): Promise<boolean> };
}

const KEYS = keysOf<WorkForOptions>({
  name: true,
  processors: true,
  queues: true,
  middleware: true,
  maxStuck: true,
  within: true,
  until: true,
});
const SHORTEST = 10_000;
/** What a stop may take: 5 s for handlers that heard the signal, then writes, with a store that does not answer. */
const TIME_TO_STOP = 7_000;
/** For counting what is left, at most. */
const TIME_TO_COUNT = 500;

/** Runs due jobs until there are none or the time is used (SEMANTICS 5.6). */
export async function workFor(options: WorkForOptions, deps: WorkForDeps): Promise<WorkForSummary> {
  const { work, time, until } = parse(options);
  const { context } = deps;
  const startedAt = context.system.monotonic();
  let closed = () => {};
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const worker = deps.start(
    (onClosed) =>
      new TimedWorker(context, work, time - TIME_TO_STOP, (ended) => {
        onClosed(ended);
        closed();
      }),
  );
  const verdicts = countVerdicts(context, worker.id);
  const stopped = await firstOf({ context, deps, worker, isClosed, time: time - TIME_TO_STOP, until });
  await worker.close({ drain: "0s" });
  verdicts.stop();
  return {
    ...verdicts.counts,
    skipped: worker.skipped,
    left: stopped === "closed" ? null : await countLeft(context, worker.queues),
    stopped,
    elapsed: Math.round(context.system.monotonic() - startedAt),
  };
}

function parse({ within: time, until = "empty", ...work }: WorkForOptions) {
  refuseUnknownKeys({ within: time, until, ...work }, "workFor", KEYS);
  if (until !== "empty" && until !== "time")
    throw refuse("invalid_option", "workFor.until", until, 'write "empty" or "time"');
  const parsed = parseDuration(time, "workFor.within");
  if (parsed < SHORTEST)
    throw refuse("invalid_option", "workFor.within", time, "use at least 10s: the last 7s are for stopping");
  return { work, time: parsed, until };
}

interface Run {
  readonly context: EngineContext;
  readonly deps: WorkForDeps;
  readonly worker: TimedWorker;
  readonly isClosed: Promise<void>;
  readonly time: number;
  readonly until: "empty" | "time";
}

function firstOf({ context, deps, worker, isClosed, time, until }: Run): Promise<WorkForSummary["stopped"]> {
  return new Promise((resolve, reject) => {
    const timer = context.system.after(time, () => resolve("time"), { keepAlive: true });
    const end = (stopped: WorkForSummary["stopped"]) => {
      timer.cancel();
      resolve(stopped);
    };
    void isClosed.then(() => end("closed"));
    if (until === "time") return;
    untilEmpty(worker, deps, context).then(() => end(worker.skipped > 0 ? "time" : "empty"), reject);
  });
}

/** A sweep and a delivery may add jobs, so the queues count as empty only if a claim after both finds none. */
async function untilEmpty(worker: TimedWorker, deps: WorkForDeps, context: EngineContext): Promise<void> {
  while (!worker.isClosing) {
    await worker.dry();
    const { entered } = worker;
    try {
      const untilDue = await deps.sweep.round();
      const hasDelivered = await deps.dispatcher.deliverDue();
      worker.lookAgain();
      await worker.dry();
      if (untilDue > 0 && !hasDelivered && worker.entered === entered) return;
    } catch (error) {
      context.storeFailed(error, "workFor");
      await rest(context.system, RETRY);
    }
  }
}

const RETRY = 1_000;

const DONE = ["job.completed"] as const;
const FAILED = ["job.failed", "job.discarded", "job.cancelled"] as const;
const RELEASED = ["job.released", "job.snoozed"] as const;

/** Counts the first verdict event of each attempt that this worker started. */
function countVerdicts({ bus }: EngineContext, worker: string) {
  const counts = { done: 0, failed: 0, released: 0 };
  const running = new Set<string>();
  const count = (names: readonly EngineEventName[], key: keyof typeof counts) =>
    names.map((name) =>
      bus.on(name, (event) => {
        if ("id" in event && running.delete(event.id)) counts[key] += 1;
      }),
    );
  const removers = [
    bus.on("job.started", (event) => {
      if (event.worker === worker) running.add(event.id);
    }),
    ...count(DONE, "done"),
    ...count(FAILED, "failed"),
    ...count(RELEASED, "released"),
  ];
  return {
    counts,
    stop: () => {
      for (const remove of removers) remove();
    },
  };
}

const WAITING = ["available", "scheduled", "retryable", "pending"] as const;

async function countLeft(
  { store, system }: EngineContext,
  queues: readonly string[],
): Promise<number | null> {
  let left: number | null = null;
  const counted = Promise.all(queues.map((queue) => store.inspect.depths(queue))).then((all) => {
    left = 0;
    for (const depths of all)
      for (const depth of depths.values()) for (const state of WAITING) left += depth[state];
  });
  await within(system, TIME_TO_COUNT, counted);
  return left;
}
