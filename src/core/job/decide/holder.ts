import type { Instant } from "../../time.ts";
import type { Fence, JobRow, Policy } from "../job.ts";
import type { JobEventName } from "../lifecycle.ts";

/* Remote workers only: what a local worker may write is decided by its fence, in the store. */

/** What a report from a remote worker says about its sender. All fields are optional: old clients send none. */
export interface Sender {
  readonly fence?: Fence | undefined;
  readonly worker?: string | undefined;
  /** The name of the key that sent the report; left out on a server without keys. */
  readonly caller?: string | undefined;
}

/** The holder of an attempt whose fetch named no worker. */
export const ANONYMOUS = "";

/**
 * Whether a report comes from the holder of the running attempt (SEMANTICS 3.8). The fence decides if it is given,
 * else the worker's name. With neither, any report counts. On a server with keys, a report without a fence must also come
 * from the key that fetched the job. A local attempt accepts only reports that name its fence.
 */
export function isHolder(job: JobRow, sender: Sender): boolean {
  if (job.state !== "active" || job.startedAt === null) return false;
  if (sender.fence !== undefined) return sender.fence === job.fence;
  const holder = job.policy?.worker;
  if (holder === undefined) return false;
  if (sender.caller !== undefined && sender.caller !== job.policy?.caller) return false;
  return sender.worker === undefined || holder === ANONYMOUS || sender.worker === holder;
}

/**
 * Whether a report was already counted: its reply was lost, and it is sent again. Only the holder moves a job out of
 * active without changing the fence. So a job that left active under this fence was moved by its holder.
 */
export function isCounted(job: JobRow, sender: Sender, event: JobEventName): boolean {
  if (sender.fence === undefined || sender.fence !== job.fence || job.state === "active") return false;
  return (event === "succeed") === (job.state === "completed");
}

/**
 * Whether the soft signal came before a report. It is due at `softAt` and never earlier. A worker that hears it says
 * itself whether it had reached the handler: its report may have been on the way meanwhile.
 */
export function isSignalled(job: JobRow, now: Instant, said?: boolean): boolean {
  if (job.softAt === null || now < job.softAt) return false;
  return job.policy?.hears && said !== undefined ? said : true;
}

/** Whether a report on a running attempt comes after the verdict that was due (SEMANTICS 3.4). */
export function isTooLate(job: JobRow, now: Instant): boolean {
  return job.hardAt !== null && now >= job.hardAt;
}

/** The answer to a worker about a job that its beat named. */
export type Directive = "continue" | "cancel" | "soft_timeout" | "lost";

export function directiveFor(job: JobRow | null, sender: Sender, now: Instant): Directive {
  if (job === null) return "lost";
  if (job.state === "cancelled") return "cancel";
  if (!isHolder(job, sender) || isTooLate(job, now)) return "lost";
  return isSignalled(job, now) ? "soft_timeout" : "continue";
}

/**
 * Until when a beat allows an attempt to be silent; null if silence has no limit. A visibility timeout in the beat
 * replaces the earlier one for this beat, but never exceeds a heartbeat that a source named. A beat never shortens:
 * the sweep looks at the job no earlier than announced before.
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
