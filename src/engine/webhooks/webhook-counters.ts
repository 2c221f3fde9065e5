import { Histogram } from "../statistics/lateness-histogram.ts";

/** What a call came to. `dead`: it was the last one of its delivery. */
export type CallOutcome = "delivered" | "failed" | "dead";

/** Milliseconds. */
export const CALL_BOUNDS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
] as const;
/** Names of events with counts of their own; further ones are counted together. */
const MOST_NAMES = 50;
const OTHER = "other";

export interface WebhookCounts {
  readonly calls: readonly {
    readonly event: string;
    readonly outcome: CallOutcome;
    readonly count: number;
  }[];
  readonly durations: ReturnType<Histogram["snapshot"]>;
  /** Deliveries that were put off because their circuit is open. */
  readonly postponed: number;
  /** Active subscriptions. */
  readonly subscriptions: number;
}

/** Counts of this process since it was opened. */
export class WebhookCounters {
  readonly #calls = new Map<string, Map<CallOutcome, number>>();
  readonly #durations = new Histogram(CALL_BOUNDS);
  postponed = 0;

  called(event: string, outcome: CallOutcome, elapsed: number): void {
    const name = this.#calls.has(event) || this.#calls.size < MOST_NAMES ? event : OTHER;
    const counts = this.#calls.get(name) ?? new Map<CallOutcome, number>();
    this.#calls.set(name, counts);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    this.#durations.add(elapsed);
  }

  snapshot(subscriptions: number): WebhookCounts {
    const calls = [...this.#calls].flatMap(([event, counts]) =>
      [...counts].map(([outcome, count]) => ({ event, outcome, count })),
    );
    return { calls, durations: this.#durations.snapshot(), postponed: this.postponed, subscriptions };
  }
}
