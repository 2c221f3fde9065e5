import type { Random } from "../../random.ts";
import type { Json } from "../../schema.ts";
import { earlier, type Instant } from "../../time.ts";
import {
  dueAtOf,
  fenceSalt,
  type JobImage,
  type JobOptions,
  type JobRow,
  nextFence,
  type Policy,
  rankOf,
} from "../job.ts";
import { activeWakeAt, anchorOf, attemptLimits, longestSilence } from "../policy/deadlines.ts";
import { type Decision, imageOf, type LifecycleEvent, rereadImage, waitingImage } from "./decision.ts";
import type { EventOf, Extension, RetryChanges } from "./job-events.ts";

/* Rules of `extend`, `prioritise` and `retry`. `run` and `reschedule` are in waiting-rules.ts, `cancel` is in decide.ts. */

/** Sets new limits of a waiting or running job (SEMANTICS 5.3). A signal that has fired cannot be undone. */
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
  const limits = runningLimits(job, {
    anchor: anchorOf(job, job.policy),
    policy,
    totalAt,
    extension: event,
    now,
  });
  if (limits.softAt !== null && limits.softAt <= now) return { ok: false, because: "timing_out" };
  return { ok: true, image: { ...imageOf(job), totalAt, ...limits }, documents: { options, policy }, events };
}

/**
 * A running attempt after another process changed its row. If only the worker knows its start, its start and policy
 * stay, and only the extension is taken over. A beat that the store does not have yet counts.
 */
export function extendedAttempt(running: JobRow, changed: JobRow, now: Instant): JobRow {
  const anchor = anchorOf(running, running.policy as Policy);
  if (changed.startedAt !== null) {
    const isBeaten =
      running.heartbeat === changed.heartbeat && running.stallAt !== null && changed.stallAt !== null;
    const stallAt = isBeaten ? Math.max(running.stallAt, changed.stallAt) : changed.stallAt;
    const policy = changed.policy ?? (running.policy as Policy);
    const { totalAt } = changed;
    const { startedAt } = running;
    const isSameStart = startedAt === changed.startedAt && anchor <= anchorOf(changed, policy);
    if (isSameStart) return { ...changed, stallAt, policy };
    // The attempt counts from its entry, which is not the committed start (`restarted`).
    const row = { ...changed, stallAt, policy, startedAt };
    return { ...row, ...runningLimits(row, { anchor, policy, totalAt, extension: {}, now }) };
  }
  const said = changed.options?.settings?.timeouts;
  const known = running.options?.settings?.timeouts;
  const extension: Extension = {
    ...(said?.attempt !== undefined && said.attempt !== known?.attempt && { attempt: said.attempt }),
    ...(said?.heartbeat !== undefined &&
      said.heartbeat !== known?.heartbeat && { heartbeat: said.heartbeat }),
  };
  const policy = extendedPolicy(running.policy as Policy, extension);
  const { totalAt, fence, rev, options } = changed;
  return {
    ...running,
    ...runningLimits(running, { anchor, policy, totalAt, extension, now }),
    policy,
    totalAt,
    fence,
    rev,
    options,
  };
}

/**
 * The deadlines of a running attempt under new limits. A new heartbeat counts from now: the silence so far was
 * allowed.
 */
function runningLimits(
  job: JobRow,
  {
    anchor,
    policy,
    totalAt,
    extension,
    now,
  }: {
    readonly anchor: Instant;
    readonly policy: Policy;
    readonly totalAt: Instant | null;
    readonly extension: Extension;
    readonly now: Instant;
  },
) {
  const { softAt, hardAt } = attemptLimits(anchor, policy, totalAt);
  const heartbeat = longestSilence(policy);
  const isSilenceKept = policy.beats === "worker" || heartbeat === null;
  const stallAt = isSilenceKept ? null : extension.heartbeat === undefined ? job.stallAt : now + heartbeat;
  const limits = { softAt, hardAt, stallAt, heartbeat };
  return { ...limits, wakeAt: activeWakeAt({ ...limits, startedAt: job.startedAt }, policy.hears) };
}

function extendedClaim(job: JobRow, totalAt: Instant | null): JobImage {
  return { ...imageOf(job), totalAt, wakeAt: earlier(job.stallAt, earlier(job.waitAt, totalAt)) };
}

function extendedPolicy(policy: Policy, event: Extension): Policy {
  const { adaptive, ...rest } = policy;
  return {
    ...rest,
    ...(adaptive && event.attempt === undefined && { adaptive }),
    ...(event.attempt !== undefined && { attempt: event.attempt }),
    // A named heartbeat is the handler's to send (SEMANTICS 3.6), as in a definition.
    ...(event.heartbeat !== undefined && { heartbeat: event.heartbeat, beats: "handler" as const }),
    sources: {
      ...policy.sources,
      ...(event.attempt !== undefined && { attempt: "enqueue" as const }),
      ...(event.heartbeat !== undefined && { heartbeat: "enqueue" as const }),
    },
  };
}

/** Writes an extension into the enqueue source, so that a manual retry and `explain()` see it. */
function extendedOptions(job: JobRow, event: Extension): JobOptions {
  const { total: _total, totalFrom: _totalFrom, inheritedFrom, ...rest } = job.options ?? {};
  const { type: _type, ...limits } = event as EventOf<"extend">;
  const { adaptive, ...said } = rest.settings?.timeouts ?? {};
  const isKept = adaptive !== undefined && event.attempt === undefined;
  return {
    ...rest,
    settings: { ...rest.settings, timeouts: { ...said, ...(isKept && { adaptive }), ...limits } },
    ...(event.total === undefined
      ? {
          ...(_total !== undefined && { total: _total }),
          ...(_totalFrom && { totalFrom: _totalFrom }),
          ...(inheritedFrom !== undefined && { inheritedFrom }),
        }
      : event.total !== null && { total: event.total, totalFrom: "enqueue" as const }),
  };
}

/** Changes the priority of a waiting job, and nothing else. */
export function prioritise(job: JobRow, priority: number): Decision {
  const rank = rankOf(priority, dueAtOf(job.rank));
  return { ok: true, image: { ...rereadImage(job), rank }, events: [] };
}

/** A job that has started has met its `wait`. A past `expiresAt` is dropped, also where it was the limit. */
function keptWait({ waitAt, options }: JobRow, expiresAt: Instant | null): Instant | null {
  return expiresAt === null && waitAt === options?.expiresAt ? null : waitAt;
}

/** The options of a job after a manual retry has changed them. */
function changedOptions(options: JobOptions, { retry, meta, wireRetry }: RetryChanges): JobOptions {
  const { settings, wire } = options;
  return {
    ...options,
    ...(retry && { settings: { ...settings, retry: { ...settings?.retry, ...retry } } }),
    ...(retry?.onExhausted && { onExhausted: retry.onExhausted }),
    ...(meta && { meta: { ...options.meta, ...meta } }),
    ...(wireRetry && { wire: { ...wire, fields: shownFields(wire?.fields, wireRetry) } }),
  };
}

type Fields = { readonly [key: string]: Json };

/** What a client wrote, with the changed retry policy. */
function shownFields(fields: Json | undefined, retry: Fields): Fields {
  const before = (fields ?? {}) as Fields;
  return { ...before, retry: { ...(before.retry as Fields | undefined), ...retry } };
}

/** Manual retry (SEMANTICS 4.6): attempts start again at 0, budgets count from now, policies are resolved again. */
export function retryByHand(job: JobRow, event: EventOf<"retry">, now: Instant, random: Random): Decision {
  const { keepDeadline = false, changes = {} } = event;
  const {
    expiresAt: expiredAt,
    inheritedFrom,
    anchoredAt,
    ...rest
  } = changedOptions(job.options ?? {}, changes);
  const expiresAt = expiredAt !== undefined && expiredAt > now ? expiredAt : null;
  const options: JobOptions = {
    ...rest,
    ...(expiresAt !== null && { expiresAt }),
    ...(keepDeadline && inheritedFrom !== undefined && { inheritedFrom }),
    ...(keepDeadline && anchoredAt !== undefined && { anchoredAt }),
    ...(!keepDeadline && rest.total !== undefined && { anchoredAt: now }),
  };
  const totalAt = keepDeadline ? job.totalAt : options.total === undefined ? null : now + options.total;
  const waitAt = keepDeadline
    ? keptWait(job, expiresAt)
    : earlier(options.wait === undefined ? null : now + options.wait, expiresAt);
  const image = waitingImage(job, job.options?.limit ? "pending" : "available", {
    dueAt: now,
    attempt: 0,
    returns: 0,
    expiredClaims: 0,
    waitAt,
    totalAt,
  });
  const { priority } = changes;
  return {
    ok: true,
    image: priority === undefined ? image : { ...image, rank: rankOf(priority, dueAtOf(image.rank)) },
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
