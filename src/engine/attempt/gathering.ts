import { CurfewError } from "../../core/errors.ts";
import { type AbortReason, Snooze } from "../../core/job/reasons.ts";
import { earlier } from "../../core/time.ts";
import { isInstance } from "../../core/user-values.ts";
import { captureContext, runInside } from "../../ports/ambient.ts";
import type { Timer } from "../../ports/system.ts";
import type { AttemptParts } from "../context.ts";
import { AttemptScope, type ScopedAttempt } from "./attempt-scope.ts";
import type { BatchContext, BatchJob, BatchSettings } from "./processor.ts";

/** The context of one job of a batch. */
export class BatchScope extends AttemptScope implements BatchJob {
  seat: Seat | undefined;

  get settle(): (value: unknown) => void {
    return (value) => this.seat?.settle(value);
  }
}

/**
 * The place of one attempt in a batch. To its attempt it is the handler: it settles when the handler of the batch gave
 * this job its verdict.
 */
export class Seat {
  readonly attempt: ScopedAttempt;
  readonly scope: BatchScope;
  readonly result: Promise<unknown>;
  /** What it waits in or runs in. */
  place: Gathering | RunningBatch | undefined;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;
  #reason: AbortReason | undefined;
  #isSettled = false;

  constructor(attempt: ScopedAttempt, scope: BatchScope) {
    this.attempt = attempt;
    this.scope = scope;
    scope.seat = this;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** The batch still works for this job. */
  get isWanted(): boolean {
    return !this.#isSettled && this.#reason === undefined;
  }

  /** A handler is never entered past a deadline (SEMANTICS 3.1), also if the timer of that deadline has not fired yet. */
  get canEnter(): boolean {
    const { row, parts } = this.attempt;
    const endsAt = earlier(row.softAt, row.stallAt);
    return this.isWanted && (endsAt === null || parts.clock.upper() < endsAt);
  }

  settle(value: unknown): void {
    if (isInstance(value, Error)) this.fail(value);
    else if (this.#end()) this.#resolve(value);
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  /** Returns false if the handler has given a verdict before. */
  #end(): boolean {
    if (this.#isSettled) return false;
    const { isWanted } = this;
    this.#isSettled = true;
    if (isWanted) this.place?.left(this, undefined);
    return true;
  }

  /** The attempt was told to stop. A job that is still gathered never enters the handler. */
  aborted(reason: AbortReason): void {
    const { isWanted, place } = this;
    this.#reason ??= reason;
    if (isWanted) place?.left(this, reason);
    if (!(place instanceof RunningBatch)) this.fail(reason);
  }
}

/** One call of a batch handler. */
class RunningBatch implements BatchContext {
  readonly jobs: readonly BatchJob[];
  readonly #seats: readonly Seat[];
  #controller: AbortController | undefined;
  #reason: Error | undefined;
  /** Jobs that have no verdict and were not told to stop. */
  #wanted: number;

  constructor(seats: readonly Seat[]) {
    this.#seats = seats;
    this.#wanted = seats.length;
    this.jobs = seats.map(({ scope }) => scope);
    for (const seat of seats) seat.place = this;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get remaining(): () => number {
    return () => Math.max(...this.#seats.map(({ scope }) => scope.remaining()));
  }

  untilSignal(): number {
    return Math.max(...this.#seats.map(({ scope }) => scope.untilSignal()));
  }

  /** A job has its verdict or was told to stop. After the last one nobody needs the work. */
  left(_seat: Seat, reason: AbortReason | undefined): void {
    this.#wanted -= 1;
    if (this.#wanted > 0) return;
    this.#reason = reason ?? new Error("Every job of the batch has its verdict");
    this.#controller?.abort(this.#reason);
  }

  run(handler: BatchSettings["handler"]): void {
    // An async function, so that a handler that throws at once and one that rejects end alike.
    const run = async () => handler(this as BatchContext as never);
    run().then(
      (value) => this.#returned(value),
      (error) => this.#failAll(error),
    );
  }

  #returned(value: unknown): void {
    try {
      this.#settleAll(value);
    } catch (error) {
      // An array of user code may throw when it is read.
      this.#failAll(error);
    }
  }

  #settleAll(value: unknown): void {
    if (value === undefined || isInstance(value, Snooze)) {
      for (const seat of this.#seats) seat.settle(value);
      return;
    }
    const count = this.#seats.length;
    if (!Array.isArray(value) || value.length !== count) {
      const given = Array.isArray(value) ? `an array of ${value.length}` : typeof value;
      const fix = `return one element per job in the order of batch.jobs (${count}), or nothing`;
      throw new CurfewError("invalid_result", `batch handler: ${given} was returned; ${fix}`, {
        field: "result",
      });
    }
    for (const [index, seat] of this.#seats.entries()) seat.settle(value[index]);
  }

  #failAll(error: unknown): void {
    for (const seat of this.#seats) seat.fail(error);
  }
}

/** Gathers the jobs of one type and queue in one worker, and calls their handler (SEMANTICS 3.13). */
export class Gathering {
  readonly #parts: AttemptParts;
  readonly #settings: BatchSettings;
  readonly #size: number;
  #seats: Seat[] = [];
  #timer: Timer | undefined;
  #inContext: ReturnType<typeof captureContext> | undefined;
  #isClosing = false;

  /** A worker with fewer slots than `size` never gathers more than them, so it does not wait for more. */
  constructor(parts: AttemptParts, settings: BatchSettings, slots: number) {
    this.#parts = parts;
    this.#settings = settings;
    this.#size = Math.min(settings.size, slots);
  }

  join(seat: Seat): void {
    if (this.#seats.length === 0) {
      this.#inContext = captureContext();
      if (!this.#isClosing) this.#timer = this.#parts.system.after(this.#settings.within, () => this.flush());
    }
    seat.place = this;
    this.#seats.push(seat);
    if (this.#seats.length >= this.#size || this.#isClosing) this.flush();
  }

  /** A job was told to stop while it was gathered. */
  left(seat: Seat): void {
    this.#seats = this.#seats.filter((one) => one !== seat);
    if (this.#seats.length === 0) this.flush();
  }

  /** Calls the handler for the jobs that have joined and may still enter. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const inContext = this.#inContext;
    this.#inContext = undefined;
    const seats = this.#seats.filter((seat) => seat.canEnter);
    this.#seats = [];
    if (seats.length === 0 || !inContext) return;
    const batch = new RunningBatch(seats);
    inContext(() => runInside(batch, () => batch.run(this.#settings.handler)));
  }

  close(): void {
    this.#isClosing = true;
    this.flush();
  }
}
