import type { EngineContext } from "../context.ts";

/** Work on workflows with at least this many steps goes on outside the sweep: it must not delay it. */
const BIG = 500;
/** How many of them are worked on at once. */
export const AT_ONCE = 8;

/** Work on steps or workflows under way, by name. */
export class WorkflowRuns {
  readonly #storeFailed: EngineContext["storeFailed"];
  readonly #running = new Map<string, Promise<void>>();

  constructor({ storeFailed }: EngineContext) {
    this.#storeFailed = storeFailed;
  }

  has(name: string): boolean {
    return this.#running.has(name);
  }

  /** Resolves when nothing runs outside the sweep. */
  async flushed(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** Resolves when the work is done; at once, if the workflow has many steps. */
  async run(name: string, steps: number, act: () => Promise<void>): Promise<void> {
    const work = act()
      .catch((error) => this.#storeFailed(error, "workflow"))
      .finally(() => this.#running.delete(name));
    if (steps < BIG) await work;
    else this.#running.set(name, work);
  }
}
