import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { SeedRange, SeedTotals } from "./seed-process.ts";
import { worldOf } from "./worlds.ts";

interface SeedsOptions {
  readonly names: readonly string[];
  /** The first seed of each world. */
  readonly from: number;
  /** The number of seeds of all worlds together. */
  readonly count: number;
  readonly processes: number;
  /** When it has to be over, by `now`, which is `performance.now` by default. */
  readonly endsAt: number;
  /** Goes on after a failure. */
  readonly goesOn: boolean;
  /** Ends it after the seeds that are under way. */
  readonly signal?: AbortSignal;
  readonly onTotals: (totals: ReadonlyMap<string, SeedTotals>) => void;
  readonly start?: () => Runner;
  readonly now?: () => number;
}

/** Runs seeds, in a process of its own unless a test says otherwise. */
export interface Runner {
  run(range: SeedRange): Promise<SeedTotals>;
  stop(): void;
}

/** How long a process is busy with the seeds that it is given at once, in milliseconds. */
const RANGE_TAKES = 5_000;
/** The first seeds of a world, when nobody knows yet how long they take. */
const FIRST_RANGE = 10;
/** Ranges take this many times as long as the ones before them, at the most, or the run may end late. */
const LONGER = 2;
/** Most functions run too seldom to be optimised: then code that is compiled at once takes a fifth less time. */
const V8_OPTIONS = ["--always-sparkplug"];

const NONE: SeedTotals = { seeds: 0, units: 0, events: 0, milliseconds: 0, findings: [] };

/**
 * Runs seeds in several processes. A process that has nothing to do is given the next seeds of the world that is most
 * behind its share, so all worlds have had their share whenever the run ends, and the seeds of each world have no gaps.
 */
export async function runSeeds(options: SeedsOptions): Promise<ReadonlyMap<string, SeedTotals>> {
  const run = new SeedRun(options);
  await Promise.all(Array.from({ length: options.processes }, () => run.serve()));
  return run.totals;
}

class SeedRun {
  readonly totals: Map<string, SeedTotals>;
  readonly #options: SeedsOptions;
  readonly #now: () => number;
  /** The seeds of each world that were given away. */
  readonly #given: Map<string, number>;
  #left: number;

  constructor(options: SeedsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.totals = new Map(options.names.map((name) => [name, NONE]));
    this.#given = new Map(options.names.map((name) => [name, 0]));
    this.#left = options.count;
  }

  /** Starts a process and gives it seeds until there is nothing left to do. One that dies has found something, too. */
  async serve(): Promise<void> {
    const { start = startProcess } = this.#options;
    const runner = start();
    try {
      for (let range = this.#next(); range; range = this.#next()) {
        const { name, from, count } = range;
        const totals = await runner.run(range).catch((error: Error) => {
          const text = `${name}: ${error.message} in the seeds ${from} to ${from + count - 1}`;
          return { ...NONE, findings: [text] };
        });
        this.#add(range, totals);
        if (totals.seeds === 0) return;
      }
    } finally {
      runner.stop();
    }
  }

  #next(): SeedRange | undefined {
    const { from, goesOn, signal } = this.#options;
    if (signal?.aborted) return undefined;
    if (!goesOn && [...this.totals.values()].some(({ findings }) => findings.length > 0)) return undefined;
    const name = this.#mostBehind();
    const given = this.#given.get(name) ?? 0;
    const count = Math.min(this.#rangeOf(name), this.#left);
    if (count <= 0) return undefined;
    this.#left -= count;
    this.#given.set(name, given + count);
    return { name, from: from + given, count };
  }

  #mostBehind(): string {
    const degreeOf = (name: string) => (this.#given.get(name) ?? 0) / worldOf(name).share;
    return this.#options.names.reduce((least, name) => (degreeOf(name) < degreeOf(least) ? name : least));
  }

  /** How many seeds are given at once: none if the time may be too short for one. */
  #rangeOf(name: string): number {
    const { seeds, milliseconds } = this.totals.get(name) ?? NONE;
    const rest = this.#options.endsAt - this.#now();
    if (seeds === 0) return rest > 0 ? Math.min(FIRST_RANGE, this.#wholeShare(name)) : 0;
    return Math.floor(Math.min(RANGE_TAKES, rest / LONGER) / (milliseconds / seeds));
  }

  #wholeShare(name: string): number {
    const { names, count } = this.#options;
    const all = names.reduce((sum, one) => sum + worldOf(one).share, 0);
    return Math.max(1, Math.floor((count * worldOf(name).share) / all));
  }

  #add({ name }: SeedRange, added: SeedTotals): void {
    const { seeds, units, events, milliseconds, findings } = this.totals.get(name) ?? NONE;
    this.totals.set(name, {
      seeds: seeds + added.seeds,
      units: units + added.units,
      events: events + added.events,
      milliseconds: milliseconds + added.milliseconds,
      findings: [...findings, ...added.findings],
    });
    for (const finding of added.findings) console.error(finding);
    this.#options.onTotals(this.totals);
  }
}

function startProcess(): Runner {
  const child = fork(new URL("./seed-process.ts", import.meta.url), {
    execArgv: [...process.execArgv, ...V8_OPTIONS],
  });
  return { run: (range) => ask(child, range), stop: () => void child.kill() };
}

async function ask(child: ChildProcess, range: SeedRange): Promise<SeedTotals> {
  const stop = new AbortController();
  child.send(range);
  const died = once(child, "exit", stop).then(([code, signal]) => {
    throw new Error(`the process ended with ${code ?? signal}`);
  });
  try {
    const [totals] = await Promise.race([once(child, "message", stop), died]);
    return totals as SeedTotals;
  } finally {
    died.catch(() => {});
    stop.abort();
  }
}
