import { type System, within } from "../../ports/system.ts";

/** Milliseconds that a close has after its drain (SEMANTICS 5.2), whether the store answers or not. */
export const CLOSE_LIMIT = 5_000;

/**
 * The marks up to which the steps of a close may take, in milliseconds after the drain. A store that answers needs a
 * fraction of them. With one that does not, each step gives up at its mark.
 */
export const CLOSE_MARKS = { claims: 1_500, writes: 3_000, goodbye: 3_500, loops: 4_000 } as const;

/** A step that begins after its mark, because handlers took all of their grace, still has a moment. */
const AT_LEAST = 500;
/** A timer that is later than this says that the process stood still. A busy machine alone is not that late. */
const STOOD_STILL = 100;

/** Shares the time that a close has after its drain between its steps. */
export class CloseBudget {
  readonly #system: Pick<System, "after" | "monotonic">;
  #from: number;

  constructor(system: Pick<System, "after" | "monotonic">, from = system.monotonic()) {
    this.#system = system;
    this.#from = from;
  }

  /**
   * Resolves when `done` has settled, and at the mark at the latest. `reserved` is added to what it has after its mark.
   * When a process goes on after it stood still, its timers come before the answers that arrived meanwhile. So a mark that
   * it slept through gives a moment more, once, and the later marks move with it.
   */
  async until(mark: number, done: Promise<unknown>, reserved = 0): Promise<void> {
    const begun = this.#system.monotonic();
    const moment = AT_LEAST + reserved;
    const endsAt = Math.max(this.#from + mark, begun + moment);
    await within(this.#system, endsAt - begun, done);
    const late = this.#system.monotonic() - endsAt;
    if (late <= STOOD_STILL) return;
    this.#from += late;
    await within(this.#system, moment, done);
  }
}
