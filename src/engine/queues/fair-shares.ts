import { type QueueFairness, weightOf, weightsOf } from "../../core/fair/fair-options.ts";
import { dueAtOf } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";

export interface FairKeyView {
  /** Empty: the jobs without a key. */
  readonly key: string;
  readonly weight: number;
  /** The part of all starts that the key gets while all of these keys have jobs, from 0 to 1. */
  readonly share: number;
  /** Available jobs, up to 10,000. */
  readonly waiting: number;
  /** When the job that is next of this key became due. */
  readonly nextDueAt: Instant;
}

export interface QueueShares {
  readonly queue: string;
  /** Whether claims take turns now. If not, keys are kept for when they do. */
  readonly isFair: boolean;
  readonly keys: readonly FairKeyView[];
  /** There are more keys than were read. */
  readonly hasMore: boolean;
}

const MOST_KEYS = 1_000;
const MOST_JOBS = 10_000;

/** The fair keys of a queue that have jobs. */
export async function sharesOf(
  { inspect }: Pick<Store, "inspect">,
  queue: string,
  fair: QueueFairness | undefined,
): Promise<QueueShares> {
  const rows = await inspect.shares(queue, MOST_KEYS + 1, MOST_JOBS);
  const weights = weightsOf(fair ?? { strategy: "round-robin" });
  const byKey = Map.groupBy(rows.slice(0, MOST_KEYS), ({ key }) => key);
  const sum = [...byKey.keys()].reduce((all, key) => all + weightOf(weights, key), 0);
  const keys = [...byKey].map(([key, priorities]): FairKeyView => {
    const weight = weightOf(weights, key);
    return {
      key,
      weight,
      share: weight / sum,
      waiting: priorities.reduce((all, { waiting }) => all + waiting, 0),
      nextDueAt: dueAtOf(priorities[0]?.rank as number),
    };
  });
  keys.sort((a, b) => b.waiting - a.waiting || (a.key < b.key ? -1 : 1));
  return { queue, isFair: fair !== undefined, keys, hasMore: rows.length > MOST_KEYS };
}
