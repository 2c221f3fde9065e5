import { backoff } from "../../core/pace.ts";
import type { Instant } from "../../core/time.ts";
import { rest, type System } from "../../ports/system.ts";
import type { LeaseAnswer, LeasedTimeout, ReleasedTimeout, TimeoutStore } from "../../ports/timeouts.ts";
import { Batcher } from "../runtime/batcher.ts";

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
}

type SettleAnswer = LeaseAnswer | "given-up";
type SettleQueue<Item> = Batcher<Settled<Item>, SettleAnswer>;

const BATCH = 500;
const BACKOFF = { first: 50, factor: 2, most: 2_000 };

/**
 * Removes or releases delivered timeouts in batches. A store that fails is asked again while the lease holds. After that
 * the timeout is left alone, and is delivered again when its lease is over.
 */
function settleQueue<Item extends LeasedTimeout>(
  { system, clock, storeFailed }: SettlerParts,
  name: string,
  write: (items: readonly Item[], options: { now: Instant }) => Promise<LeaseAnswer[]>,
): SettleQueue<Item> {
  let failures = 0;
  const call = async (batch: readonly Settled<Item>[]): Promise<SettleAnswer[]> => {
    for (;;) {
      const upper = clock.upper();
      const held = batch.filter(({ lease }) => lease.leaseUntil > upper);
      if (held.length === 0) return batch.map(() => "given-up");
      const items = held.map(({ item }) => item);
      try {
        const answers = await write(items, { now: clock.now() });
        failures = 0;
        if (held.length === batch.length) return answers;
        const known = new Map(held.map((each, index) => [each, answers[index] as LeaseAnswer]));
        return batch.map((each) => known.get(each) ?? "given-up");
      } catch (error) {
        failures += 1;
        storeFailed(error, name);
        await rest(system, backoff(failures, BACKOFF));
      }
    }
  };
  return new Batcher({ call, count: () => BATCH });
}

export class Settler {
  readonly #removes: SettleQueue<LeasedTimeout>;
  readonly #releases: SettleQueue<ReleasedTimeout>;

  constructor(parts: SettlerParts) {
    const { timeouts } = parts;
    this.#removes = settleQueue(parts, "remove", (items, options) => timeouts.remove(items, options));
    this.#releases = settleQueue(parts, "release", (items, options) => timeouts.release(items, options));
  }

  remove(item: LeasedTimeout, lease: Lease): Promise<SettleAnswer> {
    return this.#removes.add({ item, lease });
  }

  release(item: ReleasedTimeout, lease: Lease): Promise<SettleAnswer> {
    return this.#releases.add({ item, lease });
  }
}
