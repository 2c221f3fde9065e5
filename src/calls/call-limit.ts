import type { CallPolicy } from "../core/call/call-policy.ts";
import { type AdaptiveRule, type LearnedLimit, nextLimit } from "../core/stats/adaptive-limit.ts";
import { LogHistogram } from "../core/stats/histogram.ts";
import type { System } from "../ports/system.ts";

/** The window moves in this many steps, so a call limit keeps no more than this many histograms. */
const SLICES = 8;

interface Slice {
  /** By the monotonic clock. */
  readonly startedAt: number;
  readonly runs: LogHistogram;
  cut: number;
}

/**
 * The adaptive limit of one call name and rule in this process (SEMANTICS 16.6). It has no timer: the first call of a
 * period computes it.
 */
export class CallLimit {
  readonly #rule: AdaptiveRule;
  readonly #system: Pick<System, "monotonic" | "wall">;
  #slices: Slice[];
  #nextAt: number;
  #learned: LearnedLimit | undefined;
  /** The last policy that this limit was put into: most calls of a name share one. */
  #cached: { readonly base: CallPolicy; readonly policy: CallPolicy } | undefined;

  constructor(rule: AdaptiveRule, system: Pick<System, "monotonic" | "wall">) {
    this.#rule = rule;
    this.#system = system;
    const startedAt = system.monotonic();
    this.#slices = [{ startedAt, runs: new LogHistogram(), cut: 0 }];
    this.#nextAt = startedAt + rule.every;
  }

  /** What is known now; undefined while the ceiling applies because of too few calls. */
  get learned(): LearnedLimit | undefined {
    if (this.#system.monotonic() >= this.#nextAt) this.#advance();
    return this.#learned;
  }

  /** The policy of a call that starts now. All its tries have this limit. */
  applyTo(base: CallPolicy): CallPolicy {
    if (this.#system.monotonic() >= this.#nextAt) this.#advance();
    if (!this.#learned) return base;
    if (this.#cached?.base !== base) {
      const attempt = this.#learned.limit;
      const retryNeeds = base.retryFit === "full" ? attempt : base.retryNeeds;
      this.#cached = { base, policy: { ...base, attempt, retryNeeds } };
    }
    return this.#cached.policy;
  }

  ran(took: number): void {
    this.#slice().runs.add(took);
  }

  wasCut(): void {
    this.#slice().cut += 1;
  }

  #slice(): Slice {
    const now = this.#system.monotonic();
    let last = this.#slices.at(-1) as Slice;
    if (now - last.startedAt >= this.#rule.window / SLICES) {
      last = { startedAt: now, runs: new LogHistogram(), cut: 0 };
      this.#slices = [
        ...this.#slices.filter(({ startedAt }) => now - startedAt < this.#rule.window),
        last,
      ].slice(-SLICES);
    }
    return last;
  }

  /** One step, however long the last call was ago. */
  #advance(): void {
    const { every, window, samples } = this.#rule;
    const now = this.#system.monotonic();
    this.#nextAt += (Math.floor((now - this.#nextAt) / every) + 1) * every;
    const runs = new LogHistogram();
    let cut = 0;
    for (const slice of this.#slices) {
      if (now - slice.startedAt >= window) continue;
      const data = slice.runs.data();
      if (data) runs.merge(data);
      cut += slice.cut;
    }
    if (!this.#learned && runs.total + cut < samples) return;
    const until = Math.floor(this.#system.wall());
    const since = until - Math.min(window, now - (this.#slices[0] as Slice).startedAt);
    this.#learned = nextLimit(this.#rule, { runs, cut, since, until }, this.#learned?.limit);
    this.#cached = undefined;
  }
}
