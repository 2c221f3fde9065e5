import type { Instant } from "../time.ts";
import type { Fence, JobRow, Policy } from "./job.ts";
import type { JobEventName } from "./lifecycle.ts";

/** What a report from outside says about its sender; everything is optional, since old clients say nothing. */
export interface Sender {
  readonly fence?: Fence | undefined;
  readonly worker?: string | undefined;
}

/** The holder of an attempt whose fetch named no worker. */
export const ANONYMOUS = "";

/**
 * Whether a report comes from the holder of the running attempt (SEMANTICS 3.8): the fence decides where it is given,
 * else the worker's name, else any report counts. An attempt inside an engine's own worker is not reported on from
 * outside, unless the sender knows its fence.
 */
export function isHolder(job: JobRow, sender: Sender): boolean {
  if (job.state !== "active" || job.startedAt === null) return false;
  if (sender.fence !== undefined) return sender.fence === job.fence;
  const holder = job.policy?.worker;
  if (holder === undefined) return false;
  return sender.worker === undefined || holder === ANONYMOUS || sender.worker === holder;
}

/**
 * Whether a report was already counted: its reply was lost, and it is sent again. Only the holder of a fence takes a job
 * out of active without changing the fence, so a job that has left active under this one was moved by its holder.
 */
export function isCounted(job: JobRow, sender: Sender, event: JobEventName): boolean {
  if (sender.fence === undefined || sender.fence !== job.fence || job.state === "active") return false;
  return (event === "succeed") === (job.state === "completed");
}

/**
 * Whether the soft signal came before a report. It is due at `softAt` and never earlier; a worker that hears it knows
 * better than the clock whether it had reached the handler, since its report may have been on the way meanwhile.
 */
export function isSignalled(job: JobRow, now: Instant, said?: boolean): boolean {
  if (job.softAt === null || now < job.softAt) return false;
  return job.policy?.hears && said !== undefined ? said : true;
}

/** Whether a report on a running attempt comes after the verdict that was due (SEMANTICS 3.4). */
export function isTooLate(job: JobRow, now: Instant): boolean {
  return job.hardAt !== null && now >= job.hardAt;
}

/** What a worker is told about a job that its beat named. */
export type Directive = "continue" | "cancel" | "soft_timeout" | "lost";

export function directiveFor(job: JobRow | null, sender: Sender, now: Instant): Directive {
  if (job === null) return "lost";
  if (job.state === "cancelled") return "cancel";
  if (!isHolder(job, sender) || isTooLate(job, now)) return "lost";
  return isSignalled(job, now) ? "soft_timeout" : "continue";
}

/**
 * Until when a beat lets an attempt be silent, or null where silence has no limit. A visibility timeout named by the
 * beat stands for this once in place of the one that was named before, but never stretches a heartbeat that a source
 * named. A beat only ever extends: the sweep looks at the job no earlier than it was told.
 */
export function beatenUntil(job: JobRow, now: Instant, visibility?: number): Instant | null {
  if (job.stallAt === null || job.heartbeat === null) return null;
  const until = now + (visibility === undefined ? job.heartbeat : allowedSilence(job.policy, visibility));
  return Math.max(until, job.stallAt);
}

function allowedSilence(policy: Policy | null, visibility: number): number {
  const isNamed = policy !== null && policy.sources.heartbeat !== "built-in" && policy.heartbeat !== null;
  return isNamed ? Math.min(policy.heartbeat as number, visibility) : visibility;
}
