import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { JobRow } from "../../../src/core/job/job.ts";
import { seededRandom } from "../../../src/core/random.ts";
import type { Engine } from "../../../src/index.ts";
import { withEntriesFile } from "../support/entries-file.ts";
import { killChild } from "../support/kill-child.ts";
import { program } from "../support/program.ts";
import { EventCheck } from "./event-check.ts";
import { ATTEMPTS, type CrashPayload, type CrashResult, crashJob } from "./jobs.ts";

export interface CrashOptions {
  readonly store: string;
  readonly seconds: number;
  readonly seed: number;
  readonly workers: number;
  /** Something nasty to do to the store now and then, such as terminating its backends or restarting it. */
  readonly hurtStore?: () => Promise<void>;
  /** How many times slower jobs come and processes are killed. A run of hours needs a slower pace. Default 1. */
  readonly pace?: number;
  /** How many milliseconds may pass after the faults without any job that ends. Default 90 s. */
  readonly settleWithin?: number;
  /** Is told every ten seconds after the faults how many jobs are alive, and their states. */
  readonly onSettling?: (live: number, states: string) => void;
}

/** What a run of crashes came to. */
export interface CrashReport {
  readonly acknowledged: number;
  readonly refused: number;
  readonly completed: number;
  readonly kills: number;
  readonly stops: number;
  readonly storeHurts: number;
  readonly entries: number;
  readonly mostAttempts: number;
  /** Events that were followed while all this happened. */
  readonly events: number;
  /** Acknowledged jobs that the store does not have. */
  readonly lost: number;
  /** Jobs with more than one recorded end. */
  readonly doubled: number;
  readonly violations: readonly string[];
}

const SETTLE_WITHIN = 90_000;
const SAY_EVERY = 10_000;

/**
 * Real processes on a real store: jobs are enqueued while workers are killed with SIGKILL at random moments, one is
 * stopped past its lease and continued, and the store itself is hurt. Afterwards every acknowledged job must have
 * exactly one verdict, given by the last attempt that was entered, and the recorded events must say just that.
 */
export function crashRun(options: CrashOptions): Promise<CrashReport> {
  const opened = { store: options.store, events: "durable" } as const;
  return withEntriesFile(
    "crash",
    opened,
    (engine, entriesFile) => new CrashRun(options, engine, entriesFile),
  );
}

class CrashRun {
  readonly #options: CrashOptions;
  readonly #engine: Engine;
  readonly #entriesFile: string;
  readonly #events: EventCheck;
  readonly #random: () => number;
  readonly #pace: number;
  readonly #children: ChildProcess[] = [];
  readonly #acknowledged: string[] = [];
  #refused = 0;
  #kills = 0;
  #stops = 0;
  #storeHurts = 0;

  constructor(options: CrashOptions, engine: Engine, entriesFile: string) {
    this.#options = options;
    this.#engine = engine;
    this.#events = new EventCheck(engine);
    this.#entriesFile = entriesFile;
    this.#random = seededRandom(options.seed);
    this.#pace = options.pace ?? 1;
  }

  async run(): Promise<CrashReport> {
    for (let index = 0; index < this.#options.workers; index++) this.#children.push(this.#spawn());
    const { seconds } = this.#options;
    const endsAt = performance.now() + seconds * 1_000;
    // A machine that is busy kills more slowly, and then the run takes longer.
    const isOver = () => performance.now() >= endsAt && this.#kills > seconds / 2 / this.#pace;
    await Promise.all([this.#produce(isOver), this.#kill(isOver), this.#stop(isOver), this.#hurt(isOver)]);
    return this.#check();
  }

  #spawn(): ChildProcess {
    const script = program(new URL("./worker-process.ts", import.meta.url));
    return fork(script, [this.#options.store, this.#entriesFile], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
  }

  async #produce(isOver: () => boolean): Promise<void> {
    for (let n = 0; !isOver(); n++) {
      const payloads = Array.from(
        { length: 1 + Math.floor(this.#random() * 20) },
        (): CrashPayload => this.#payload(n),
      );
      // An enqueue that fails was not acknowledged, so nothing is promised about it.
      const handles = await this.#engine.enqueueMany(crashJob, payloads).catch(() => []);
      if (handles.length === 0) this.#refused += payloads.length;
      for (const { id } of handles) this.#acknowledged.push(id);
      // A real pause: the load is meant to be steady, not as fast as the machine allows.
      await wait((20 + this.#random() * 40) * this.#pace);
    }
  }

  #payload(n: number): CrashPayload {
    const dice = this.#random();
    const behaviour = dice < 0.6 ? "quick" : dice < 0.85 ? "slow" : dice < 0.99 ? "flaky" : "hang";
    return { n, behaviour, takes: Math.floor(this.#random() * 400) };
  }

  async #kill(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await wait((300 + this.#random() * 900) * this.#pace);
      const index = Math.floor(this.#random() * this.#children.length);
      await killChild(this.#children[index] as ChildProcess);
      this.#kills += 1;
      this.#children[index] = this.#spawn();
    }
  }

  /** Longer than the claim's lease and the heartbeat: when it goes on, everything it held belongs to others. */
  async #stop(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await wait(2_000 * this.#pace);
      const child = this.#spawn();
      await Promise.race([once(child, "message"), wait(5_000)]);
      await wait(500);
      child.kill("SIGSTOP");
      this.#stops += 1;
      await wait(12_000);
      child.kill("SIGCONT");
      await wait(1_500);
      await killChild(child);
    }
  }

  async #hurt(isOver: () => boolean): Promise<void> {
    const { hurtStore } = this.#options;
    while (hurtStore && !isOver()) {
      await wait((3_000 + this.#random() * 3_000) * this.#pace);
      await hurtStore();
      this.#storeHurts += 1;
    }
  }

  async #check(): Promise<CrashReport> {
    const violations: string[] = [];
    const { rows, lost } = await this.#settled(violations);
    const entries = new Map<string, { attempt: number; entry: string }[]>();
    for (const line of (await readFile(this.#entriesFile, "utf8")).split("\n").filter(Boolean)) {
      const [id = "", attempt = "", entry = ""] = line.split(" ");
      entries.set(id, [...(entries.get(id) ?? []), { attempt: Number(attempt), entry }]);
    }
    for (const row of rows) violations.push(...judge(row, entries.get(row.id) ?? []));
    const { problems, doubled } = await this.#events.check(rows);
    violations.push(...problems);
    return {
      acknowledged: this.#acknowledged.length,
      refused: this.#refused,
      completed: rows.filter(({ state }) => state === "completed").length,
      kills: this.#kills,
      stops: this.#stops,
      storeHurts: this.#storeHurts,
      entries: [...entries.values()].reduce((sum, list) => sum + list.length, 0),
      mostAttempts: rows.reduce((most, { attempt }) => Math.max(most, attempt), 0),
      events: this.#events.count,
      lost,
      doubled,
      violations,
    };
  }

  /**
   * Waits until every acknowledged job has ended. On a starved machine that takes as long as it takes; a job is stuck when
   * none has ended for `settleWithin`.
   */
  async #settled(violations: string[]): Promise<{ rows: JobRow[]; lost: number }> {
    const { settleWithin = SETTLE_WITHIN } = this.#options;
    let live: readonly string[] = this.#acknowledged;
    let progressAt = performance.now();
    let saidAt = progressAt;
    while (live.length > 0 && performance.now() - progressAt < settleWithin) {
      // Only the jobs that were alive before: to load all of them again and again would starve the workers.
      const rows = await this.#load(live).catch(() => null);
      const left = rows?.filter((row) => row !== null && row.finishedAt === null) ?? [];
      if (rows && left.length < live.length) {
        live = left.map((row) => (row as JobRow).id);
        progressAt = performance.now();
      }
      if (this.#options.onSettling && performance.now() - saidAt > SAY_EVERY) {
        saidAt = performance.now();
        this.#options.onSettling(live.length, countStates(left));
      }
      await wait(250);
    }
    const rows = await this.#load(this.#acknowledged);
    const left = rows.filter((row) => row !== null && row.finishedAt === null);
    if (left.length > 0)
      violations.push(
        `${left.length} jobs did not end; none has ended for ${settleWithin / 1_000} s: ${countStates(left)}`,
      );
    const lost = rows.filter((row) => row === null).length;
    if (lost > 0) violations.push(`${lost} acknowledged jobs are gone`);
    return { rows: rows.filter((row) => row !== null), lost };
  }

  async #load(ids: readonly string[]): Promise<(JobRow | null)[]> {
    const rows: (JobRow | null)[] = [];
    for (let from = 0; from < ids.length; from += 500)
      rows.push(...(await this.#engine.store.jobs.load(ids.slice(from, from + 500))));
    return rows;
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map(killChild));
  }
}

/** Such as "12 active, 3 retryable". */
function countStates(rows: readonly (JobRow | null)[]): string {
  const states = Map.groupBy(rows, (row) => row?.state ?? "gone");
  return [...states].map(([state, { length }]) => `${length} ${state}`).join(", ");
}

function judge(row: JobRow, entries: readonly { attempt: number; entry: string }[]): string[] {
  const found: string[] = [];
  if (row.attempt > ATTEMPTS) found.push(`${row.id}: attempt ${row.attempt} is over the limit`);
  if (row.state !== "completed") found.push(`${row.id}: ended ${row.state}: ${row.errors?.at(-1)?.message}`);
  if (row.result === null) return found;
  const result = JSON.parse(row.result) as CrashResult;
  if (result.attempt !== row.attempt)
    found.push(`${row.id}: the verdict is of attempt ${result.attempt}, the job is at ${row.attempt}`);
  if (!entries.some(({ entry, attempt }) => entry === result.entry && attempt === result.attempt)) {
    found.push(`${row.id}: the verdict comes from an attempt nobody entered`);
  }
  return found;
}
