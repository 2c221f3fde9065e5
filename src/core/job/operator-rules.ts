import type { Random } from "../random.ts";
import { earlier, type Instant } from "../time.ts";
import { activeWakeAt, attemptLimits, longestSilence } from "./deadlines.ts";
import type { EventOf, Extension } from "./events.ts";
import { fenceSalt, type JobImage, type JobOptions, type JobRow, nextFence, type Policy } from "./job.ts";
import { type Decision, imageOf, type LifecycleEvent, waitingImage } from "./verdict.ts";

/** New limits for a waiting or running job (SEMANTICS 5.3); what was already signalled cannot be taken back. */
export function extend(job: JobRow, event: EventOf<"extend">, now: Instant): Decision {
  if (job.softAt !== null && now >= job.softAt) return { ok: false, because: "timing_out" };
  const totalAt =
    event.total === undefined
      ? job.totalAt
      : event.total === null
        ? null
        : (job.options?.anchoredAt ?? job.createdAt) + event.total;
  if (totalAt !== null && totalAt <= now) return { ok: false, because: "timing_out" };
  const options = extendedOptions(job, event);
  const events: LifecycleEvent[] = [{ name: "job.extended" }];
  if (job.policy === null || job.startedAt === null) {
    const image =
      job.state === "active"
        ? extendedClaim(job, totalAt)
        : waitingImage(job, job.state as "available", { totalAt });
    const policy = job.policy && extendedPolicy(job.policy, event);
    return { ok: true, image, documents: { options, ...(policy && { policy }) }, events };
  }
  const policy = extendedPolicy(job.policy, event);
  const limits = attemptLimits(job.startedAt, policy, totalAt);
  if (limits.softAt !== null && limits.softAt <= now) return { ok: false, because: "timing_out" };
  const heartbeat = longestSilence(policy);
  // A new heartbeat counts from now: the silence so far was allowed under the old one.
  const stallAt =
    policy.beats === "worker" || heartbeat === null
      ? null
      : event.heartbeat === undefined
        ? job.stallAt
        : now + heartbeat;
  const image: JobImage = {
    ...imageOf(job),
    totalAt,
    softAt: limits.softAt,
    hardAt: limits.hardAt,
    stallAt,
    heartbeat,
  };
  return {
    ok: true,
    image: { ...image, wakeAt: activeWakeAt(image, policy.hears) },
    documents: { options, policy },
    events,
  };
}

function extendedClaim(job: JobRow, totalAt: Instant | null): JobImage {
  return { ...imageOf(job), totalAt, wakeAt: earlier(job.stallAt, earlier(job.waitAt, totalAt)) };
}

function extendedPolicy(policy: Policy, event: Extension): Policy {
  return {
    ...policy,
    ...(event.attempt !== undefined && { attempt: event.attempt }),
    ...(event.heartbeat !== undefined && { heartbeat: event.heartbeat }),
    rungs: {
      ...policy.rungs,
      ...(event.attempt !== undefined && { attempt: "enqueue" as const }),
      ...(event.heartbeat !== undefined && { heartbeat: "enqueue" as const }),
    },
  };
}

/** An extension is written into the enqueue rung, so that a manual retry and `explain()` see it too. */
function extendedOptions(job: JobRow, event: Extension): JobOptions {
  const { total: _total, totalFrom: _totalFrom, inheritedFrom, ...rest } = job.options ?? {};
  const { type: _type, ...limits } = event as EventOf<"extend">;
  return {
    ...rest,
    rung: { ...rest.rung, timeouts: { ...rest.rung?.timeouts, ...limits } },
    ...(event.total === undefined
      ? {
          ...(_total !== undefined && { total: _total }),
          ...(_totalFrom && { totalFrom: _totalFrom }),
          ...(inheritedFrom !== undefined && { inheritedFrom }),
        }
      : event.total !== null && { total: event.total, totalFrom: "enqueue" as const }),
  };
}

/** Manual retry (SEMANTICS 4.6): attempts start anew, budgets are anchored at now, policies are resolved again. */
export function retryByHand(job: JobRow, keepDeadline: boolean, now: Instant, random: Random): Decision {
  const { expiresAt: expiredAt, inheritedFrom, anchoredAt: _earlier, ...rest } = job.options ?? {};
  const expiresAt = expiredAt !== undefined && expiredAt > now ? expiredAt : null;
  const options: JobOptions = {
    ...rest,
    ...(expiresAt !== null && { expiresAt }),
    ...(keepDeadline
      ? inheritedFrom !== undefined && { inheritedFrom }
      : rest.total !== undefined && { anchoredAt: now }),
  };
  const totalAt = keepDeadline ? job.totalAt : options.total === undefined ? null : now + options.total;
  const waitAt = earlier(options.wait === undefined ? null : now + options.wait, expiresAt);
  const image = waitingImage(job, "available", {
    dueAt: now,
    attempt: 0,
    returns: 0,
    strikes: 0,
    waitAt,
    totalAt,
  });
  return {
    ok: true,
    image,
    documents: {
      options: Object.keys(options).length === 0 ? null : options,
      policy: null,
      progress: null,
      result: null,
    },
    fence: nextFence(job.fence, fenceSalt(random)),
    events: [{ name: "job.retried" }],
  };
}
