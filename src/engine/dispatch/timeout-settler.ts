import type { Instant } from "../../core/time.ts";
import type {
  ExtendedLease,
  LeaseAnswer,
  LeasedTimeout,
  ReleasedTimeout,
  TimeoutStore,
} from "../../ports/timeouts.ts";
import { Batcher } from "../runtime/batcher.ts";
import type { Pauses } from "../runtime/pauses.ts";

interface SettlerDeps {
  readonly pauses: Pauses;
  readonly timeouts: Pick<TimeoutStore, "remove" | "release" | "extend">;
  readonly clock: { now(): Instant; upper(): Instant };
  storeFailed(error: unknown, during: string): void;
}

/** The lease of the timeout that is settled; renewals move its end. */
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
 * Removes or releases delivered timeouts in batches. After a store failure it retries while the lease lasts. Then it
 * gives up, and the timeout is delivered again when its lease ends.
 */
function settleQueue<Item extends LeasedTimeout>(
  { pauses, clock, storeFailed }: SettlerDeps,
  name: string,
  write: (items: readonly Item[], options: { now: Instant }) => Promise<LeaseAnswer[]>,
): SettleQueue<Item> {
  let failures = 0;
  const call = async (batch: readonly Settled<Item>[]): Promise<SettleAnswer[]> => {
    for (;;) {
      const upper = clock.upper();
      const leased = batch.filter(({ lease }) => lease.leaseUntil > upper);
      if (leased.length === 0) return batch.map(() => "given-up");
      const items = leased.map(({ item }) => item);
      try {
        const answers = await write(items, { now: clock.now() });
        failures = 0;
        if (leased.length === batch.length) return answers;
        const known = new Map(leased.map((each, index) => [each, answers[index] as LeaseAnswer]));
        return batch.map((each) => known.get(each) ?? "given-up");
      } catch (error) {
        storeFailed(error, name);
        failures = await pauses.rest(failures + 1, BACKOFF);
      }
    }
  };
  return new Batcher({ call, count: () => BATCH });
}

export class Settler {
  readonly #removes: SettleQueue<LeasedTimeout>;
  readonly #releases: SettleQueue<ReleasedTimeout>;
  readonly #holds: SettleQueue<ExtendedLease>;

  constructor(deps: SettlerDeps) {
    const { timeouts } = deps;
    this.#removes = settleQueue(deps, "remove", (items, options) => timeouts.remove(items, options));
    this.#releases = settleQueue(deps, "release", (items, options) => timeouts.release(items, options));
    this.#holds = settleQueue(deps, "extend", (items, options) => timeouts.extend(items, options));
  }

  remove(item: LeasedTimeout, lease: Lease): Promise<SettleAnswer> {
    return this.#removes.add({ item, lease });
  }

  /** Lets the lease end at another instant. */
  hold(item: ExtendedLease, lease: Lease): Promise<SettleAnswer> {
    return this.#holds.add({ item, lease });
  }

  release(item: ReleasedTimeout, lease: Lease): Promise<SettleAnswer> {
    return this.#releases.add({ item, lease });
  }
}
