import { defineJob } from "../core/job/job-definition.ts";
import { realSystem } from "../engine/runtime/real-system.ts";
import { processor } from "../open.ts";
import { CommandFailed } from "./exit.ts";
import { confirm } from "./output/confirm.ts";
import type { Progress } from "./output/progress.ts";
import { type Column, tableText } from "./output/table.ts";
import type { TargetContext } from "./run-command.ts";
import type { Target } from "./target/target.ts";

export interface BenchOptions {
  readonly jobs: number;
  readonly concurrency: number;
  readonly yes?: boolean;
}

type Engine = NonNullable<Target["engine"]>;

/** Jobs that are enqueued one by one, and jobs whose pickup is timed: enough for a 99th percentile. */
const SINGLE = 200;
/** One call of the store takes as many. */
const BATCH = 1_000;
/** A phase that takes longer than this is cut short, so that the benchmark stays one on a slow store. */
const LONGEST_PHASE = 60_000;

/** Its jobs end and vanish by themselves if this process is killed. */
const define = (queue: string) =>
  defineJob({
    type: "curfew-bench",
    queue,
    timeouts: { wait: "10m" },
    retry: { attempts: 1 },
    retention: "0s",
  });

interface Spread {
  readonly p50_ms: number;
  readonly p95_ms: number;
  readonly p99_ms: number;
}

interface Results {
  enqueue?: Spread & { readonly per_second: number };
  batch?: { readonly per_second: number };
  drain?: { readonly per_second: number };
  pickup?: Spread;
}

export async function bench({ target, output, signal }: TargetContext, options: BenchOptions): Promise<void> {
  const { engine } = target;
  if (!engine)
    throw new CommandFailed("usage", "bench: it measures a store, not a server; pass --store <address>");
  await askIfUsed(engine, target.name, options, signal);
  const queue = `curfew-bench-${Math.floor(realSystem.random() * 2 ** 40).toString(36)}`;
  const run = new Bench(engine, queue, options, signal);
  let leftBehind = 0;
  try {
    await output.during("measuring", (progress) => run.all(progress));
  } finally {
    leftBehind = await output.during("deleting what it enqueued", () => run.clean());
  }
  const { results } = run;
  const { jobs, concurrency } = options;
  output.answer({ store: target.name, jobs, concurrency, ...results, left_behind: leftBehind }, () =>
    resultText(results, concurrency),
  );
  if (leftBehind > 0)
    throw new CommandFailed(
      "failed",
      `${leftBehind} jobs are left in queue ${queue}; they end within 10 minutes`,
    );
  if (signal.aborted) throw new CommandFailed("interrupted", "stopped; what it enqueued is deleted");
  output.note("On this machine, now, with no-op jobs. Its jobs are deleted.");
}

/** A benchmark takes time away from other jobs, so it must be wanted. */
async function askIfUsed(
  engine: Engine,
  name: string,
  { jobs, yes }: BenchOptions,
  signal: AbortSignal,
): Promise<void> {
  const { jobs: found } = await engine.find({}, { limit: 1 });
  if (found.length === 0) return;
  const question = `${name} has other jobs. Measure beside them, with ${jobs + 2 * SINGLE} jobs in a queue of its own?`;
  await confirm(question, { yes, signal });
}

class Bench {
  readonly results: Results = {};
  readonly #engine: Engine;
  readonly #queue: string;
  readonly #options: BenchOptions;
  readonly #signal: AbortSignal;
  readonly #job: ReturnType<typeof define>;
  #worker: ReturnType<Engine["work"]> | undefined;
  #onRun: (() => void) | undefined;
  #endsAt = 0;

  constructor(engine: Engine, queue: string, options: BenchOptions, signal: AbortSignal) {
    this.#engine = engine;
    this.#queue = queue;
    this.#options = options;
    this.#signal = signal;
    this.#job = define(queue);
  }

  get #isOver(): boolean {
    return this.#signal.aborted || realSystem.monotonic() > this.#endsAt;
  }

  async all(progress: Progress): Promise<void> {
    const total = 2 * SINGLE + 2 * this.#options.jobs;
    let before = 0;
    const phase = async (size: number, run: (onDone: (done: number) => void) => Promise<void>) => {
      if (this.#signal.aborted) return;
      this.#endsAt = realSystem.monotonic() + LONGEST_PHASE;
      await run((done) => progress.update(before + done, total));
      before += size;
    };
    await phase(SINGLE, (onDone) => this.#enqueue(onDone));
    await phase(this.#options.jobs, (onDone) => this.#enqueueBatches(onDone));
    await phase(this.#options.jobs, (onDone) => this.#drain(onDone));
    await phase(SINGLE, (onDone) => this.#pickUp(onDone));
  }

  async #enqueue(onDone: (done: number) => void): Promise<void> {
    const times: number[] = [];
    const startedAt = realSystem.monotonic();
    while (times.length < SINGLE && !this.#isOver) {
      const at = realSystem.monotonic();
      await this.#engine.enqueue(this.#job);
      times.push(realSystem.monotonic() - at);
      onDone(times.length);
    }
    if (times.length > 0)
      this.results.enqueue = { per_second: perSecond(times.length, startedAt), ...spreadOf(times) };
  }

  async #enqueueBatches(onDone: (done: number) => void): Promise<void> {
    const startedAt = realSystem.monotonic();
    let done = 0;
    while (done < this.#options.jobs && !this.#isOver) {
      const count = Math.min(BATCH, this.#options.jobs - done);
      await this.#engine.enqueueMany(this.#job, Array<undefined>(count).fill(undefined));
      done += count;
      onDone(done);
    }
    if (done > 0) this.results.batch = { per_second: perSecond(done, startedAt) };
  }

  /** Works through everything that the two phases before have enqueued. */
  async #drain(onDone: (done: number) => void): Promise<void> {
    const waiting = (await this.#engine.queues.depth(this.#queue)).available;
    let done = 0;
    const startedAt = realSystem.monotonic();
    await new Promise<void>((resolve) => {
      const timer = realSystem.after(LONGEST_PHASE, resolve);
      const stop = () => {
        timer.cancel();
        resolve();
      };
      this.#signal.addEventListener("abort", stop, { once: true });
      const off = this.#engine.on("job.completed", () => {
        done += 1;
        onDone(done);
        if (done < waiting) return;
        off();
        stop();
      });
      this.#worker = this.#engine.work({
        queues: { [this.#queue]: { concurrency: this.#options.concurrency } },
        processors: [processor(this.#job, () => this.#onRun?.())],
      });
      if (waiting === 0) stop();
    });
    if (done > 0) this.results.drain = { per_second: perSecond(done, startedAt) };
  }

  /** From the call of enqueue to the entry of the handler, in a worker of this process that has nothing else to do. */
  async #pickUp(onDone: (done: number) => void): Promise<void> {
    const times: number[] = [];
    while (times.length < SINGLE && !this.#isOver) {
      const entered = new Promise<number>((resolve) => {
        this.#onRun = () => resolve(realSystem.monotonic());
        this.#signal.addEventListener("abort", () => resolve(Number.NaN), { once: true });
      });
      const at = realSystem.monotonic();
      await this.#engine.enqueue(this.#job);
      const enteredAt = await entered;
      if (Number.isNaN(enteredAt)) break;
      times.push(enteredAt - at);
      onDone(times.length);
    }
    if (times.length > 0) this.results.pickup = spreadOf(times);
  }

  /** Returns how many jobs are left. */
  async clean(): Promise<number> {
    await this.#worker?.close({ drain: "5s" });
    await this.#engine.queues.purge(this.#queue);
    const depth = await this.#engine.queues.depth(this.#queue);
    return Object.values(depth).reduce((sum, count) => sum + count, 0);
  }
}

function perSecond(count: number, startedAt: number): number {
  return Math.round((count * 1_000) / Math.max(0.001, realSystem.monotonic() - startedAt));
}

function spreadOf(times: readonly number[]): Spread {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number) * 100) /
    100;
  return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}

interface Line {
  readonly what: string;
  readonly rate: number | undefined;
  readonly spread: Spread | undefined;
}

const COLUMNS: readonly Column<Line>[] = [
  { title: "", show: ({ what }) => what, shrinkTo: 20 },
  { title: "JOBS/S", show: ({ rate }) => rate?.toLocaleString("en-US") ?? "-", align: "right" },
  ...(["p50_ms", "p95_ms", "p99_ms"] as const).map(
    (field): Column<Line> => ({
      title: field.slice(0, 3).toUpperCase(),
      show: ({ spread }) => (spread ? `${spread[field]} ms` : "-"),
      align: "right",
      ...(field === "p95_ms" && { drop: 1 }),
    }),
  ),
];

function resultText({ enqueue, batch, drain, pickup }: Results, concurrency: number): string {
  const lines: Line[] = [
    { what: "enqueue, one by one", rate: enqueue?.per_second, spread: enqueue },
    { what: "enqueue, 1,000 at a time", rate: batch?.per_second, spread: undefined },
    { what: `work through, ${concurrency} at a time`, rate: drain?.per_second, spread: undefined },
    { what: "from enqueue to start, idle", rate: undefined, spread: pickup },
  ];
  return tableText(COLUMNS, lines);
}
