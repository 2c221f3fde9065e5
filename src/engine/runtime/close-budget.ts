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

/** Shares the time that a close has after its drain between its steps. */
export class CloseBudget {
  readonly #system: Pick<System, "after" | "monotonic">;
  readonly #from: number;

  constructor(system: Pick<System, "after" | "monotonic">, from = system.monotonic()) {
    this.#system = system;
    this.#from = from;
  }

  /** Resolves when `done` has settled, and at the mark at the latest. `reserved` is added to what it has after its mark. */
  until(mark: number, done: Promise<unknown>, reserved = 0): Promise<void> {
    const left = this.#from + mark - this.#system.monotonic();
    return within(this.#system, Math.max(left, AT_LEAST + reserved), done);
  }
}
