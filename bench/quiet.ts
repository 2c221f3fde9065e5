import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { readStat } from "./measure.ts";

const TICK = 10;
/** Of all cores: with more than this taken by others, a sample says more about them. */
const DISTURBED = 0.12;
const LOOKED_FOR = 1_500;

interface Mark {
  readonly at: number;
  readonly busy: number;
  readonly ours: number;
}

/** Tells how much of the machine other programs took while something was measured. It knows only on Linux. */
export class Strangers {
  /** Whose CPU time, with all their descendants', is our own. */
  readonly #roots: readonly number[];
  #patience: number;

  /** `patience`: how long to wait for the others in all, in milliseconds. */
  constructor(roots: readonly number[], patience: number) {
    this.#roots = roots;
    this.#patience = patience;
  }

  /** Waits until others leave the machine alone, then does something; again if they came back meanwhile. */
  async without<Result>(work: () => Promise<Result>): Promise<{ result: Result; strangers: number }> {
    for (;;) {
      const from = performance.now();
      while (this.#patience > performance.now() - from && (await this.#watched()) > DISTURBED) {
        await new Promise((resolve) => setTimeout(resolve, LOOKED_FOR));
      }
      this.#patience -= performance.now() - from;
      const mark = this.#mark();
      const result = await work();
      const strangers = this.#since(mark);
      if (!(strangers > DISTURBED) || this.#patience <= 0) return { result, strangers };
      this.#patience -= performance.now() - mark.at;
    }
  }

  async #watched(): Promise<number> {
    const mark = this.#mark();
    await new Promise((resolve) => setTimeout(resolve, LOOKED_FOR));
    return this.#since(mark);
  }

  #mark(): Mark {
    return { at: performance.now(), busy: busyTime(), ours: ourTime(this.#roots) };
  }

  /** The share of all cores that others had. */
  #since(mark: Mark): number {
    const now = this.#mark();
    const theirs = now.busy - mark.busy - (now.ours - mark.ours);
    return Math.max(0, theirs / (now.at - mark.at) / cpus().length);
  }
}

/** Milliseconds that all cores were not idle, including what the host of a virtual machine took; NaN if unknown. */
function busyTime(): number {
  try {
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readFileSync(
      "/proc/stat",
      "utf8",
    )
      .slice(0, 200)
      .split("\n", 1)
      .join()
      .split(/\s+/)
      .slice(1)
      .map(Number);
    return (user + nice + system + irq + softirq + steal) * TICK;
  } catch {
    return Number.NaN;
  }
}

/** Milliseconds of these processes and all that descend from them. */
function ourTime(roots: readonly number[]): number {
  const stats = new Map<number, { parent: number; ownAndReaped: number }>();
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (stat) stats.set(Number(name), stat);
  }
  let ticks = 0;
  for (const [pid, { ownAndReaped }] of stats) {
    let at = pid;
    while (at > 0 && !roots.includes(at)) at = stats.get(at)?.parent ?? 0;
    if (at > 0) ticks += ownAndReaped;
  }
  return ticks * TICK;
}
