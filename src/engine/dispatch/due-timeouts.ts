import { backoff } from "../../core/pace.ts";
import { type Duration, type Instant, parseDuration } from "../../core/time.ts";
import type { System } from "../../ports/system.ts";
import type { LeaseSettings, TimeoutsParts } from "./timeout-api.ts";
import { LeasedDelivery, Leases } from "./timeout-leases.ts";
import { Settler } from "./timeout-settler.ts";
import { type Timeout, timeoutOf } from "./timeout-view.ts";

export interface DueOptions {
  /** Ends the loop after the timeout that is in hand. */
  readonly signal?: AbortSignal;
  readonly destinations?: readonly string[];
  /** How long to sleep at most when nothing is due. Default 1 s. */
  readonly poll?: Duration;
  /** Hears of a store that fails; the loop goes on by itself. */
  readonly onError?: (error: unknown) => void;
}

/** A timeout in the hand of a loop, which removes it when the loop comes back for the next one. */
export interface DueTimeout extends Timeout {
  /** Aborts when the lease is lost: somebody else will be given this timeout. */
  readonly signal: AbortSignal;
  /** Gives it back instead of having it removed. An error counts as a try. */
  release(options?: { readonly after?: Duration; readonly error?: string }): Promise<void>;
}

export interface DueParts extends TimeoutsParts {
  readonly system: System;
  /** Calls back when the store tells of new timeouts; gives the function that stops it. */
  onHint(listener: (dueAt: Instant) => void): () => void;
}

const POLL = 1_000;
const BACKOFF = { first: 100, factor: 2, most: 5_000 };

/** Due timeouts one after the other, for as long as the signal lets it; leaving the loop gives back what it holds. */
export async function* dueTimeouts(
  parts: DueParts,
  settings: LeaseSettings,
  options: DueOptions,
): AsyncGenerator<DueTimeout, void, undefined> {
  const { signal, onError = () => {} } = options;
  const storeFailed = (error: unknown) => onError(error);
  const poll = options.poll === undefined ? POLL : parseDuration(options.poll, "poll");
  const leases = new Leases({ ...parts, storeFailed }, settings.lease);
  const settler = new Settler({ ...parts, storeFailed });
  const bell = new Bell(parts, signal);
  let failures = 0;
  try {
    while (!signal?.aborted) {
      try {
        const held = await claim(parts, settings, options);
        failures = 0;
        if (held.length > 0) yield* handOut(parts, settings, leases, settler, held, signal);
        else await bell.rest(Math.min(poll, await untilNext(parts, options)));
      } catch (error) {
        storeFailed(error);
        failures += 1;
        await bell.rest(backoff(failures, BACKOFF));
      }
    }
  } finally {
    bell.close();
  }
}

async function claim(
  { timeouts, clock, nextId }: DueParts,
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

async function untilNext({ timeouts, clock }: DueParts, { destinations }: DueOptions): Promise<number> {
  const next = await timeouts.nextDueAt(destinations);
  return next === null ? Number.POSITIVE_INFINITY : Math.max(1, next - clock.now());
}

async function* handOut(
  { clock }: DueParts,
  { lease }: LeaseSettings,
  leases: Leases,
  settler: Settler,
  held: readonly LeasedDelivery[],
  signal: AbortSignal | undefined,
): AsyncGenerator<DueTimeout, void, undefined> {
  const waiting = new Set(held);
  for (const delivery of held) leases.add(delivery);
  const giveBack = (delivery: LeasedDelivery, more: { dueAt?: Instant; error?: string } = {}) =>
    settler.release({ id: delivery.row.id, owner: delivery.owner, ...more }, delivery);
  try {
    for (const delivery of held) {
      if (signal?.aborted) return;
      const isLate = delivery.leaseUntil - clock.upper() < Math.min(2_000, lease / 4);
      if (isLate || delivery.signal.aborted) continue;
      let isGivenBack = false;
      yield {
        ...timeoutOf(delivery.row),
        signal: delivery.signal,
        async release({ after, error } = {}) {
          isGivenBack = true;
          const dueAt =
            after === undefined
              ? {}
              : { dueAt: clock.anchor() + parseDuration(after, "after", { zero: true }) };
          await giveBack(delivery, { ...dueAt, ...(error !== undefined && { error }) });
        },
      };
      waiting.delete(delivery);
      leases.delete(delivery);
      // What was handled is never given back: if it cannot be removed, it comes again when its lease is over.
      if (!isGivenBack) await settler.remove({ id: delivery.row.id, owner: delivery.owner }, delivery);
    }
  } finally {
    for (const delivery of waiting) leases.delete(delivery);
    await Promise.all([...waiting].map((delivery) => giveBack(delivery)));
  }
}

/** Rests until the time is over, somebody tells of a new timeout, or the signal aborts. */
class Bell {
  readonly #parts: DueParts;
  readonly #signal: AbortSignal | undefined;
  readonly #stop: () => void;
  #ring: (() => void) | undefined;
  #isRung = false;

  constructor(parts: DueParts, signal: AbortSignal | undefined) {
    this.#parts = parts;
    this.#signal = signal;
    const ring = () => {
      this.#isRung = true;
      this.#ring?.();
    };
    const stop = parts.onHint(ring);
    signal?.addEventListener("abort", ring);
    this.#stop = () => {
      stop();
      signal?.removeEventListener("abort", ring);
    };
  }

  async rest(delay: number): Promise<void> {
    if (!this.#isRung && !this.#signal?.aborted) {
      await new Promise<void>((resolve) => {
        const timer = this.#parts.system.after(delay, resolve, { keepAlive: true });
        this.#ring = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    this.#ring = undefined;
    this.#isRung = false;
  }

  close(): void {
    this.#stop();
  }
}
