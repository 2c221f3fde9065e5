import { type FairWeights, weightOf } from "../../fair/fair-options.ts";
import { type JobRow, priorityRank, type Rank } from "../job.ts";
import type { ShareFacts } from "./facts.ts";

/**
 * The most jobs that start before this one in a fair queue, up to `most`: all of better priorities, those of its own key
 * before it, and of each other key what it gives until then.
 */
export function sharePosition(
  row: JobRow,
  own: number,
  shares: readonly { readonly key: string; readonly rank: Rank; readonly waiting: number }[],
  weights: FairWeights,
  most: number,
): { readonly ahead: number; readonly share: ShareFacts } {
  const key = row.fairKey as string;
  const weight = weightOf(weights, key);
  const rounds = Math.floor(own / weight) + 1;
  const mine = priorityRank(row.rank);
  let ahead = own;
  let keys = 0;
  for (const share of shares) {
    const rank = priorityRank(share.rank);
    if (rank < mine) ahead += share.waiting;
    if (rank !== mine) continue;
    keys += 1;
    if (share.key !== key) ahead += Math.min(share.waiting, rounds * weightOf(weights, share.key));
  }
  return { ahead: Math.min(ahead, most), share: { key, weight, keys: Math.max(1, keys), own } };
}
