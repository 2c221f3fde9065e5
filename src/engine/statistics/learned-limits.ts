import { type AdaptiveRule, type LearnedLimit, ruleKey } from "../../core/stats/adaptive-limit.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";

/** The current limit of each type and rule. A record is made when its window has enough runs. */
export const LEARNED = recordKind<LearnedLimit>("learned");

function learnedName(type: string, rule: AdaptiveRule): string {
  return `${type} ${ruleKey(rule)}`;
}

/** A type and a rule that a job of this process was started under. */
export interface AskedLimit {
  readonly name: string;
  readonly type: string;
  readonly rule: AdaptiveRule;
}

/** More pairs of type and rule than this have their ceiling. */
const MOST_LIMITS = 1_000;

/**
 * The adaptive limits of all processes on the store (SEMANTICS 16). They are records, so that every process starts jobs
 * with the same ones. Where no job has one, nothing is read after the opening.
 */
export class LearnedLimits {
  readonly #store: Pick<Store, "records">;
  #known: ReadonlyMap<string, StoredRecord<LearnedLimit>> = new Map();
  readonly #asked = new Map<string, AskedLimit>();
  /** Called when a limit is asked for that nobody keeps up to date here yet. */
  onAsked: () => void = () => {};
  #isRead = false;
  #epoch = 0;

  constructor(store: Pick<Store, "records">) {
    this.#store = store;
  }

  /** Grows with each change: policies that were resolved at an older epoch are resolved again. */
  get epoch(): number {
    return this.#epoch;
  }

  get asked(): readonly AskedLimit[] {
    return [...this.#asked.values()];
  }

  /** The limit for a job that starts now, and whose type is kept up to date from now on; undefined for the ceiling. */
  of(type: string, rule: AdaptiveRule): LearnedLimit | undefined {
    const name = learnedName(type, rule);
    if (!this.#asked.has(name) && this.#asked.size < MOST_LIMITS) {
      this.#asked.set(name, { name, type, rule });
      this.onAsked();
    }
    return this.#known.get(name)?.body;
  }

  stored(name: string): StoredRecord<LearnedLimit> | undefined {
    return this.#known.get(name);
  }

  /** The names of limits that nobody has computed since then, with their versions. */
  idleSince(at: Instant): StoredRecord<LearnedLimit>[] {
    return [...this.#known.values()].filter(({ body }) => body.until < at);
  }

  /** The stored limit, for people. It does not count as asked for. */
  async read(type: string, rule: AdaptiveRule): Promise<LearnedLimit | undefined> {
    return (await LEARNED.load(this.#store, learnedName(type, rule)))?.body;
  }

  async refresh(): Promise<void> {
    if (this.#isRead && this.#asked.size === 0) return;
    const known = await LEARNED.all(this.#store, MOST_LIMITS);
    this.#isRead = true;
    const isSame =
      known.size === this.#known.size &&
      [...known].every(([name, { version }]) => this.#known.get(name)?.version === version);
    if (isSame) return;
    this.#known = known;
    this.#epoch += 1;
  }
}
