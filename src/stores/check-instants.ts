import { checkImage } from "../core/job/decide/check-image.ts";
import type { NewJob } from "../core/job/enqueue/envelope.ts";
import { checkInstant, type Instant } from "../core/time.ts";
import type { ClaimRequest, Effect, SweepRequest } from "../ports/store.ts";
import type { ExtendedLease, Move, ReleasedTimeout } from "../ports/timeouts.ts";
import type { HomeBeat } from "./homes/home-store.ts";

/*
 * Instants are whole milliseconds. Every store refuses others before it writes anything: a store that rounds them would
 * compare them differently from one that does not.
 */

/** Jobs that were enqueued together share their image, so one that equals the last one was checked. */
export function checkJobInstants({ createdAt, image }: NewJob, last?: NewJob): void {
  checkInstant(createdAt, "createdAt");
  if (image !== last?.image) checkImage(image);
}

export function checkEffectInstants(effect: Effect): void {
  if ("put" in effect) checkOptional(effect.wakeAt, "wakeAt");
  else if ("spend" in effect) checkInstant(effect.at, "at");
  else if ("request" in effect) checkInstant(effect.request.dueAt, "dueAt");
}

export function checkClaimInstants({ now, lease }: ClaimRequest): void {
  checkInstant(now, "now");
  checkInstant(now + lease, "lease");
}

export function checkBeatInstants({ now, worker, jobs }: HomeBeat): void {
  checkInstant(now, "now");
  if (worker) checkInstant(worker.wakeAt, "worker.wakeAt");
  for (const { stallAt } of jobs) checkOptional(stallAt, "stallAt");
}

export function checkSweepInstants({ now, holdUntil }: SweepRequest): void {
  checkInstant(now, "now");
  checkInstant(holdUntil, "holdUntil");
}

export function checkReleased(released: readonly ReleasedTimeout[]): void {
  for (const { dueAt } of released) checkOptional(dueAt, "dueAt");
}

export function checkExtended(extended: readonly ExtendedLease[]): void {
  for (const { leaseUntil } of extended) checkInstant(leaseUntil, "leaseUntil");
}

export function checkMoves(moves: readonly Move[]): void {
  for (const { to } of moves) checkInstant(to, "to");
}

function checkOptional(value: Instant | null | undefined, field: string): void {
  if (value !== null && value !== undefined) checkInstant(value, field);
}
