import { backoff } from "../../core/pace.ts";
import type { Instant } from "../../core/time.ts";
import { rest, type System } from "../../ports/system.ts";
import type { LeaseAnswer, LeasedTimeout, ReleasedTimeout, TimeoutStore } from "../../ports/timeouts.ts";

interface SettlerParts {
  readonly system: Pick<System, "after">;
  readonly timeouts: Pick<TimeoutStore, "remove" | "release">;
  readonly clock: { now(): Instant; upper(): Instant };
  storeFailed(error: unknown, during: string): void;
}

/** The lease under which something is settled; its end moves on while it is renewed. */
interface Lease {
  readonly leaseUntil: Instant;
}

interface Settled<Item> {
  readonly item: Item;
  readonly lease: Lease;
  done(answer: LeaseAnswer | "given-up"): void;
}

const BATCH = 500;
const BACKOFF = { first: 50, factor: 2, most: 2_000 };

/**
 * Removes and releases what was delivered, as many in one call as there are. A store that fails is asked again while
 * the lease holds; after that the timeout is left alone, and is sent again when its lease is over.
 */
class SettleQueue<Item extends LeasedTimeout> {
  readonly #parts: SettlerParts;
  readonly #name: string;
  readonly #write: (items: readonly Item[], options: { now: Instant }) => Promise<LeaseAnswer[]>;
  #queue: Settled<Item>[] = [];
  #isBusy = false;

  constructor(
    parts: SettlerParts,
    name: string,
    write: (items: readonly Item[], options: { now: Instant }) => Promise<LeaseAnswer[]>,
  ) {
    this.#parts = parts;
    this.#name = name;
    this.#write = write;
  }

  add(item: Item, lease: Lease): Promise<LeaseAnswer | "given-up"> {
    return new Promise((done) => {
      this.#queue.push({ item, lease, done });
      if (this.#isBusy) return;
      this.#isBusy = true;
      void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    for (let failures = 0; this.#queue.length > 0; ) {
      const batch = this.#takeBatch();
      if (batch.length === 0) continue;
      const { clock, storeFailed, system } = this.#parts;
      try {
        const answers = await this.#write(
          batch.map(({ item }) => item),
          { now: clock.now() },
        );
        failures = 0;
        for (const [index, { done }] of batch.entries()) done(answers[index] as LeaseAnswer);
      } catch (error) {
        storeFailed(error, this.#name);
        this.#queue.unshift(...batch);
        failures += 1;
        await rest(system, backoff(failures, BACKOFF));
      }
    }
    this.#isBusy = false;
  }

  /** What can still count; the rest is given up. */
  #takeBatch(): Settled<Item>[] {
    const taken = this.#queue.splice(0, BATCH);
    const upper = this.#parts.clock.upper();
    const [held, late] = [[], []] as [Settled<Item>[], Settled<Item>[]];
    for (const each of taken) (each.lease.leaseUntil > upper ? held : late).push(each);
    for (const { done } of late) done("given-up");
    return held;
  }
}

export class Settler {
  readonly #removes: SettleQueue<LeasedTimeout>;
  readonly #releases: SettleQueue<ReleasedTimeout>;

  constructor(parts: SettlerParts) {
    const { timeouts } = parts;
    this.#removes = new SettleQueue(parts, "remove", (items, options) => timeouts.remove(items, options));
    this.#releases = new SettleQueue(parts, "release", (items, options) => timeouts.release(items, options));
  }

  remove(held: LeasedTimeout, lease: Lease): Promise<LeaseAnswer | "given-up"> {
    return this.#removes.add(held, lease);
  }

  release(released: ReleasedTimeout, lease: Lease): Promise<LeaseAnswer | "given-up"> {
    return this.#releases.add(released, lease);
  }
}
