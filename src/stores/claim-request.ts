import { checkInstant } from "../core/time.ts";
import { checkClaimLimit } from "../core/timeout/timeout.ts";
import { BATCH_LIMIT } from "../ports/store.ts";
import { CLAIM_BATCH, type DueRequest } from "../ports/timeouts.ts";

/** The limit of a claim, after all its limits and instants are checked. */
export function claimLimit({ limit = CLAIM_BATCH, destinations, now, leaseUntil }: DueRequest): number {
  checkInstant(now, "now");
  checkInstant(leaseUntil, "leaseUntil");
  checkClaimLimit(limit, BATCH_LIMIT);
  for (const each of destinations ?? []) checkClaimLimit(each.limit, BATCH_LIMIT, "destinations.limit");
  return limit;
}
