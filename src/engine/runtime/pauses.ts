import { type BackoffOptions, backoff } from "../../core/pace.ts";
import type { System } from "../../ports/system.ts";

/** The pauses between two tries at a store that failed. All of them end when it answers again. */
export class Pauses {
  readonly #system: Pick<System, "after">;
  readonly #wakes = new Set<() => void>();

  constructor(system: Pick<System, "after">) {
    this.#system = system;
  }

  /** Waits as long as this many failed tries in a row ask for. Returns how many still count: none after a wake. */
  rest(tries: number, options: BackoffOptions): Promise<number> {
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel();
        resolve(0);
      };
      const end = () => {
        this.#wakes.delete(wake);
        resolve(tries);
      };
      const timer = this.#system.after(backoff(tries, options), end, { keepAlive: true });
      this.#wakes.add(wake);
    });
  }

  /** Ends all pauses. */
  wake(): void {
    for (const wake of this.#wakes) wake();
    this.#wakes.clear();
  }
}
