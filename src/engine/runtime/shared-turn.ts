import type { System } from "../../ports/system.ts";

/** The next turn of the event loop, once for all that wait for it, so that they go on together. */
export class SharedTurn {
  readonly #system: Pick<System, "soon">;
  #next: Promise<void> | undefined;

  constructor(system: Pick<System, "soon">) {
    this.#system = system;
  }

  next(): Promise<void> {
    this.#next ??= new Promise((resolve) => {
      this.#system.soon(() => {
        this.#next = undefined;
        resolve();
      });
    });
    return this.#next;
  }
}
