import { backoff } from "../../core/pace.ts";
import type { Logger } from "../../ports/log.ts";
import type { System, Timer } from "../../ports/system.ts";

export interface LoopOptions {
  readonly name: string;
  readonly system: System;
  readonly logger: Logger;
  /** One round of work. Returns the milliseconds to rest before the next one, or null to rest until `wake`. */
  readonly round: () => Promise<number | null>;
  /** Whether the loop keeps the process alive while it rests. An open worker does; an engine without workers does not. */
  readonly keepAlive?: boolean;
  readonly onError: (error: unknown, loop: string) => void;
  /** Called after the first failed round, and after the first good round that follows. */
  readonly onFailing?: () => void;
}

interface StoreLoopDeps extends Pick<LoopOptions, "system" | "logger"> {
  storeFailed(error: unknown, during: string): void;
}

/** A loop whose rounds fail only with the store. */
export function storeLoop(
  { system, logger, storeFailed }: StoreLoopDeps,
  name: string,
  round: LoopOptions["round"],
): Loop {
  return new Loop({ name, system, logger, round, onError: (error) => storeFailed(error, name) });
}

const BACKOFF = { first: 100, factor: 2, most: 5_000 };

/**
 * Repeats a round of work, with a rest between rounds. A round that fails is reported and tried again with a backoff, so
 * a failing store does not end the loop. `start` and `stop` may be called twice and in any order.
 */
export class Loop {
  readonly #options: LoopOptions;
  #state: "idle" | "running" | "stopped" = "idle";
  #timer: Timer | undefined;
  #current: Promise<void> | undefined;
  #isWoken = false;
  #failures = 0;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "running";
    this.wake();
  }

  /** Resolves when the current round, if any, has ended. No round runs after that. */
  async stop(): Promise<void> {
    this.#state = "stopped";
    this.#timer?.cancel();
    await this.#current;
  }

  /** Runs a round as soon as the current one, if any, is over. */
  wake(): void {
    if (this.#state !== "running") return;
    this.#isWoken = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#current ??= this.#run();
  }

  /** Whether the last round failed, for readiness checks. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  async #run(): Promise<void> {
    let rest: number | null = 0;
    while (this.#state === "running" && (this.#isWoken || rest === 0)) {
      this.#isWoken = false;
      rest = await this.#guardedRound();
    }
    this.#current = undefined;
    if (this.#state !== "running" || rest === null) return;
    const { system, keepAlive = false } = this.#options;
    this.#timer = system.after(rest, () => this.wake(), { keepAlive });
  }

  async #guardedRound(): Promise<number | null> {
    try {
      const rest = await this.#options.round();
      if (this.#failures > 0) {
        this.#failures = 0;
        this.#options.onFailing?.();
      }
      return rest;
    } catch (error) {
      this.#failures += 1;
      this.#isWoken = false;
      this.#options.onError(error, this.#options.name);
      if (this.#failures === 1) this.#options.onFailing?.();
      return backoff(this.#failures, BACKOFF);
    }
  }
}
