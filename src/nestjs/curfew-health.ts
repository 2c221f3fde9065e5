import { errorText } from "../core/errors.ts";
import type { Engine } from "../engine/engine.ts";
import { realSystem } from "../engine/runtime/real-system.ts";
import type { CurfewWorkers } from "./curfew-workers.ts";

/** What a health check of Nest returns, also for `@nestjs/terminus`. */
export type HealthResult = Readonly<Record<string, HealthDetail>>;

interface HealthDetail {
  readonly status: "up" | "down";
  /** Why it is down. */
  readonly reason?: string;
  readonly running?: number;
}

/** How long a store may take to answer a check. */
const ANSWER_WITHIN = 2_000;
const ERROR_LIMIT = 200;

/** Says whether the store answers and the worker takes jobs. `() => health.check()` fits into `HealthCheckService`. */
export class CurfewHealth {
  readonly #engine: Engine;
  readonly #workers: CurfewWorkers;

  constructor(engine: Engine, workers: CurfewWorkers) {
    this.#engine = engine;
    this.#workers = workers;
  }

  async check(key = "curfew"): Promise<HealthResult> {
    const status = this.#workers.worker?.status();
    const reason = (await this.#storeProblem()) ?? status?.reason ?? undefined;
    return {
      [key]: {
        status: reason === undefined ? "up" : "down",
        ...(reason !== undefined && { reason }),
        ...(status && { running: status.running }),
      },
    };
  }

  /** A check is about the real machine, also in a test with virtual time. */
  #storeProblem(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const timer = realSystem.after(ANSWER_WITHIN, () => resolve("the store does not answer"));
      this.#engine.store.clock().then(
        () => {
          timer.cancel();
          resolve(undefined);
        },
        (error: unknown) => {
          timer.cancel();
          resolve(`the store failed: ${errorText(error, ERROR_LIMIT)}`);
        },
      );
    });
  }
}
