import { nextLimit, periodOf } from "../../core/stats/adaptive-limit.ts";
import { LogHistogram } from "../../core/stats/histogram.ts";
import type { Instant } from "../../core/time.ts";
import type { Unit } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { type AskedLimit, LEARNED } from "./learned-limits.ts";
import { readRanges } from "./stats-reader.ts";

/** Processes write their counts every five seconds. After this time all of them have written those of a period. */
const SETTLES_AFTER = 10_000;
/** The longest window: what was learned before it says nothing any more. */
const FORGOTTEN_AFTER = 30 * 86_400_000;

interface Window extends AskedLimit {
  readonly since: Instant;
  readonly until: Instant;
  readonly runs: LogHistogram;
  cut: number;
}

/**
 * Computes adaptive limits, each once per period. Any process may do it: the version of the record makes sure that only
 * one does, so no period has two steps.
 */
export class Learner {
  readonly #context: Pick<EngineContext, "store" | "clock" | "learned">;
  readonly #flush: () => Promise<void>;
  /** The last period for which each limit was computed here. */
  readonly #done = new Map<string, Instant>();

  constructor(context: Pick<EngineContext, "store" | "clock" | "learned">, flush: () => Promise<void>) {
    this.#context = context;
    this.#flush = flush;
  }

  async round(): Promise<void> {
    const windows = this.#due(this.#context.clock.now() - SETTLES_AFTER);
    if (windows.length === 0) return;
    await this.#flush();
    await this.#fill(windows);
    const outcomes = await commitUnits(this.#context, [
      ...windows.flatMap((window) => this.#unitOf(window)),
      ...this.#forgotten(),
    ]);
    for (const { name, until } of windows) this.#done.set(name, until);
    if (outcomes.length > 0) await this.#context.learned.refresh();
  }

  /** Milliseconds until the counts of the next period are complete; Infinity without adaptive limits. */
  untilNext(): number {
    const now = this.#context.clock.now();
    const nextOf = ({ rule }: AskedLimit) =>
      periodOf(rule, now - SETTLES_AFTER) + rule.every + SETTLES_AFTER - now;
    return Math.min(...this.#context.learned.asked.map(nextOf));
  }

  #due(now: Instant): Window[] {
    const { learned } = this.#context;
    return learned.asked.flatMap((asked) => {
      const until = periodOf(asked.rule, now);
      const last = learned.stored(asked.name)?.body.until ?? 0;
      if (last >= until || this.#done.get(asked.name) === until) return [];
      const since = Math.max(0, until - asked.rule.window);
      return [{ ...asked, since, until, runs: new LogHistogram(), cut: 0 }];
    });
  }

  /** Limits of rules and types that are gone. A job that uses one again has the ceiling at first. */
  #forgotten(): Unit[] {
    const { learned, clock } = this.#context;
    return learned.idleSince(clock.now() - FORGOTTEN_AFTER).map(({ name, version }) => ({
      when: [LEARNED.guard(name, version)],
      effects: [LEARNED.remove(name)],
    }));
  }

  async #fill(windows: readonly Window[]): Promise<void> {
    const byType = Map.groupBy(windows, ({ type }) => type);
    const since = Math.min(...windows.map((window) => window.since));
    const until = Math.max(...windows.map((window) => window.until));
    for await (const { start, span, series } of readRanges(this.#context.store, since, until)) {
      for (const { type, durations, counts } of series) {
        for (const window of byType.get(type) ?? []) {
          if (start + span <= window.since || start >= window.until) continue;
          if (durations.run) window.runs.merge(durations.run);
          window.cut += counts.execution ?? 0;
        }
      }
    }
  }

  /** Nothing is stored before there are enough runs: until then the ceiling applies anyway. */
  #unitOf({ name, rule, ...seen }: Window): Unit[] {
    const known = this.#context.learned.stored(name);
    if (!known && seen.runs.total + seen.cut < rule.samples) return [];
    const limit = nextLimit(rule, seen, known?.body.limit);
    const when = [LEARNED.guard(name, known?.version ?? 0)];
    return [{ when, effects: [LEARNED.put(name, limit, null)] }];
  }
}
