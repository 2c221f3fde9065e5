import type { CallPolicy } from "../core/call/call-policy.ts";
import { NEAR_SHARE } from "../core/job/policy/near-miss.ts";
import { type AdaptiveRule, type LearnedLimit, ruleKey } from "../core/stats/adaptive-limit.ts";
import { type Advice, advise } from "../core/stats/advice.ts";
import { type Percentiles, percentilesOf } from "../core/stats/job-stats.ts";
import { OTHER, SeriesSum, withLimit } from "../core/stats/series.ts";
import type { System } from "../ports/system.ts";
import { CallLimit } from "./call-limit.ts";
import type { CallEnd, StreamEnd } from "./running-call.ts";

/** The counts of one name of calls or streams. */
export interface CallCounts {
  readonly name: string;
  /** Calls and streams that have ended. */
  readonly calls: number;
  readonly completed: number;
  /** Results after the signal and within the grace. They count. */
  readonly late: number;
  readonly failed: number;
  /** Calls and streams that ended by a limit, and by which. Only streams have `first` and `idle`. */
  readonly timeouts: {
    readonly execution: number;
    readonly total: number;
    readonly first: number;
    readonly idle: number;
  };
  /** Calls and streams that their callers gave up. */
  readonly stopped: number;
  /** Tries beyond the first. */
  readonly retries: number;
  /** Calls that used more than 80 % of the limit of their last try. */
  readonly nearMisses: number;
  /** Results that came after the verdict and were dropped. */
  readonly ignored: number;
  /** Functions that still run after their verdict, now. */
  readonly stuck: number;
  /** How long successful tries took, in milliseconds. */
  readonly run: Percentiles | null;
}

/** Programs choose names, perhaps from user input, so the number of counted names is bounded. */
const MOST_NAMES = 500;

export class CallStats {
  readonly #byName = new Map<string, NamedCounts>();

  of(name: string): NamedCounts {
    const known = this.#byName.get(name);
    if (known) return known;
    const key = this.#byName.size < MOST_NAMES ? name : OTHER;
    let counts = this.#byName.get(key);
    if (!counts) {
      counts = new NamedCounts(key);
      this.#byName.set(key, counts);
    }
    return counts;
  }

  snapshot(): CallCounts[] {
    return [...this.#byName.values()].map((counts) => counts.snapshot());
  }

  /** What is known under a rule; it counts nothing. */
  learned(name: string, rule: AdaptiveRule): LearnedLimit | undefined {
    return this.#byName.get(name)?.learned(rule);
  }

  /** What the calls of a name say about its `attempt`; `proposed` is another one in milliseconds to try on them. */
  advise(name: string, proposed?: number): Advice | undefined {
    return this.#byName.get(name)?.advise(proposed);
  }
}

/** A name with more rules than this has the ceiling for the others. */
const MOST_RULES = 20;

class NamedCounts {
  readonly name: string;
  ignored = 0;
  stuck = 0;
  #first = 0;
  #idle = 0;
  readonly #sum = new SeriesSum();
  readonly #limits = new Map<string, CallLimit>();
  /** A defined call has the same rule each time. */
  readonly #byRule = new WeakMap<AdaptiveRule, CallLimit>();

  constructor(name: string) {
    this.name = name;
  }

  /** The adaptive limit of a rule; undefined if the name has too many. */
  limitOf(rule: AdaptiveRule, system: Pick<System, "monotonic" | "wall">): CallLimit | undefined {
    const known = this.#byRule.get(rule);
    if (known) return known;
    const key = ruleKey(rule);
    let limit = this.#limits.get(key);
    if (!limit) {
      if (this.#limits.size >= MOST_RULES) return undefined;
      limit = new CallLimit(rule, system);
      this.#limits.set(key, limit);
    }
    this.#byRule.set(rule, limit);
    return limit;
  }

  /** What is known under a rule, without beginning to learn. */
  learned(rule: AdaptiveRule): LearnedLimit | undefined {
    return this.#limits.get(ruleKey(rule))?.learned;
  }

  /** One try was cut off by its own limit. */
  wasCut({ adaptive }: CallPolicy): void {
    if (adaptive) this.#byRule.get(adaptive)?.wasCut();
  }

  ended({ outcome, kind = "execution", attempts, limit, took, policy }: CallEnd): void {
    const { counts, durations } = this.#sum;
    counts.started += 1;
    counts.retrying += Math.max(0, attempts - 1);
    const attempt = policy.attempt ?? 0;
    if (this.#sum.limits.at(-1) !== attempt) this.#sum.limits = withLimit(this.#sum.limits, attempt);
    if (outcome === "failed") counts.failed += 1;
    else if (outcome === "stopped") counts.cancelled += 1;
    else if (outcome === "timeout") counts[kind] += 1;
    else {
      counts.completed += 1;
      if (outcome === "late") counts.late += 1;
      durations.run.add(took);
      if (policy.adaptive) this.#byRule.get(policy.adaptive)?.ran(took);
      if (limit !== null && took > NEAR_SHARE * limit) counts.nearMisses += 1;
    }
  }

  streamEnded(end: StreamEnd): void {
    const { counts } = this.#sum;
    counts.started += 1;
    if (end === "first") this.#first += 1;
    else if (end === "idle") this.#idle += 1;
    else counts[end === "stopped" ? "cancelled" : end] += 1;
  }

  snapshot(): CallCounts {
    const { counts, durations } = this.#sum;
    return {
      name: this.name,
      calls: counts.started,
      completed: counts.completed,
      late: counts.late,
      failed: counts.failed,
      timeouts: { execution: counts.execution, total: counts.total, first: this.#first, idle: this.#idle },
      stopped: counts.cancelled,
      retries: counts.retrying,
      nearMisses: counts.nearMisses,
      ignored: this.ignored,
      stuck: this.stuck,
      run: percentilesOf(durations.run),
    };
  }

  advise(proposed: number | undefined): Advice {
    return advise(this.name, this.#sum, { attempt: proposed });
  }
}
