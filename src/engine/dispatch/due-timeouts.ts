import { backoff } from "../../core/pace.ts";
import { type Duration, type Instant, parseDuration } from "../../core/time.ts";
import type { System } from "../../ports/system.ts";
import { Pauses } from "../runtime/pauses.ts";
import type { LeaseSettings, TimeoutsDeps } from "./timeout-api.ts";
import { LeasedDelivery, Leases } from "./timeout-leases.ts";
import { Settler } from "./timeout-settler.ts";
import { type Timeout, timeoutOf } from "./timeout-view.ts";

export interface DueOptions {
  /** Ends the loop after the current timeout. */
  readonly signal?: AbortSignal;
  readonly destinations?: readonly string[];
  /** How long to sleep at most when no timeout is due. Default 1 s. */
  readonly poll?: Duration;
  /** Called with errors of the store; the loop retries by itself. */
  readonly onError?: (error: unknown) => void;
}

/** A timeout that the loop removes when its body asks for the next one. */
export interface DueTimeout extends Timeout {
  /** Aborts when the lease is lost: another process will get this timeout. */
  readonly signal: AbortSignal;
  /** Releases the timeout instead of removing it. An error counts as a try. */
  release(options?: { readonly after?: Duration; readonly error?: string }): Promise<void>;
}

export interface DueDeps extends TimeoutsDeps {
  readonly system: System;
  /** Calls back on the store's hints about new timeouts. Returns the function that stops it. */
  onHint(listener: (dueAt: Instant) => void): () => void;
}

const POLL = 1_000;
const BACKOFF = { first: 100, factor: 2, most: 5_000 };

/** Yields due timeouts until the signal aborts. Leaving the loop releases the timeouts that it holds. */
export async function* dueTimeouts(
  deps: DueDeps,
  settings: LeaseSettings,
  options: DueOptions,
): AsyncGenerator<DueTimeout, void, undefined> {
  const { signal, onError = () => {} } = options;
  const storeFailed = (error: unknown) => onError(error);
  const poll = options.poll === undefined ? POLL : parseDuration(options.poll, "poll");
  const leases = new Leases({ ...deps, storeFailed }, settings.lease);
  const settler = new Settler({ ...deps, pauses: new Pauses(deps.system), storeFailed });
  const waiter = new HintWaiter(deps, signal);
  let failures = 0;
  try {
    while (!signal?.aborted) {
      try {
        const deliveries = await claim(deps, settings, options);
        failures = 0;
        if (deliveries.length > 0) yield* handOut(deps, settings, leases, settler, deliveries, signal);
        else await waiter.rest(Math.min(poll, await untilNext(deps, options)));
      } catch (error) {
        storeFailed(error);
        failures += 1;
        await waiter.rest(backoff(failures, BACKOFF));
      }
    }
  } finally {
    waiter.close();
  }
}

async function claim(
  { timeouts, clock, nextId }: DueDeps,
  { lease, batch }: LeaseSettings,
  { destinations }: DueOptions,
): Promise<LeasedDelivery[]> {
  const now = clock.now();
  const owner = nextId();
  const leaseUntil = now + lease;
  const named = destinations?.map((name) => ({ name, limit: batch }));
  const rows = await timeouts.claimDue({
    now,
    leaseUntil,
    owner,
    limit: batch,
    ...(named && { destinations: named }),
  });
  return rows.map((row) => new LeasedDelivery(row, owner, leaseUntil));
}

async function untilNext({ timeouts, clock }: DueDeps, { destinations }: DueOptions): Promise<number> {
  const next = await timeouts.nextDueAt(destinations);
  return next === null ? Number.POSITIVE_INFINITY : Math.max(1, next - clock.now());
}

async function* handOut(
  { clock }: DueDeps,
  { lease }: LeaseSettings,
  leases: Leases,
  settler: Settler,
  deliveries: readonly LeasedDelivery[],
  signal: AbortSignal | undefined,
): AsyncGenerator<DueTimeout, void, undefined> {
  const waiting = new Set(deliveries);
  for (const delivery of deliveries) leases.add(delivery);
  const release = (delivery: LeasedDelivery, more: { dueAt?: Instant; error?: string } = {}) =>
    settler.release({ id: delivery.row.id, owner: delivery.owner, ...more }, delivery);
  try {
    for (const delivery of deliveries) {
      if (signal?.aborted) return;
      const isLate = delivery.leaseUntil - clock.upper() < Math.min(2_000, lease / 4);
      if (isLate || delivery.signal.aborted) continue;
      let isReleased = false;
      yield {
        ...timeoutOf(delivery.row),
        signal: delivery.signal,
        async release({ after, error } = {}) {
          isReleased = true;
          const dueAt =
            after === undefined
              ? {}
              : { dueAt: clock.anchor() + parseDuration(after, "after", { zero: true }) };
          await release(delivery, { ...dueAt, ...(error !== undefined && { error }) });
        },
      };
      waiting.delete(delivery);
      leases.delete(delivery);
      // A handled timeout is never released. If it cannot be removed, it comes again when its lease ends.
      if (!isReleased) await settler.remove({ id: delivery.row.id, owner: delivery.owner }, delivery);
    }
  } finally {
    for (const delivery of waiting) leases.delete(delivery);
    await Promise.all([...waiting].map((delivery) => release(delivery)));
  }
}

/** Waits until the delay is over, a hint comes, or the signal aborts. */
class HintWaiter {
  readonly #deps: DueDeps;
  readonly #signal: AbortSignal | undefined;
  readonly #stop: () => void;
  #wake: (() => void) | undefined;
  #isWoken = false;

  constructor(deps: DueDeps, signal: AbortSignal | undefined) {
    this.#deps = deps;
    this.#signal = signal;
    const wake = () => {
      this.#isWoken = true;
      this.#wake?.();
    };
    const stop = deps.onHint(wake);
    signal?.addEventListener("abort", wake);
    this.#stop = () => {
      stop();
      signal?.removeEventListener("abort", wake);
    };
  }

  async rest(delay: number): Promise<void> {
    if (!this.#isWoken && !this.#signal?.aborted) {
      await new Promise<void>((resolve) => {
        const timer = this.#deps.system.after(delay, resolve, { keepAlive: true });
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    this.#wake = undefined;
    this.#isWoken = false;
  }

  close(): void {
    this.#stop();
  }
}
