import type { Backoff } from "../core/job/job.ts";
import type { JobLine } from "../core/job/transfer/job-line.ts";
import type { Instant } from "../core/time.ts";
import type { Change, Note } from "./report.ts";
import type { CronSpec } from "./source.ts";
import * as rules from "./translate.ts";

export type BullmqState = "waiting" | "prioritized" | "delayed" | "failed";

/** A job as BullMQ's `job.asJSON()` gives it, with what only the queue knows. */
export interface BullmqJob {
  readonly id: string;
  readonly name: string;
  readonly state: BullmqState;
  /** JSON as text. */
  readonly data: string;
  readonly opts: Readonly<Record<string, unknown>>;
  readonly attemptsMade: number;
  readonly timestamp: Instant;
  readonly priority: number;
  /** When a delayed job is due. */
  readonly dueAt: Instant | null;
  readonly processedOn: Instant | null;
  readonly finishedOn: Instant | null;
  readonly failedReason: string | null;
  readonly stack: string | null;
  readonly deduplicationId: string | null;
  readonly isInFlow: boolean;
}

/** The name that BullMQ gives to jobs without one. */
const UNNAMED = "__default__";

export function translateBullmqJob(
  job: BullmqJob,
  context: {
    readonly queue: string;
    readonly prefix: string;
    readonly names: rules.NameRules;
    readonly now: Instant;
  },
): rules.Ruled<JobLine> {
  return rules.applyRules((changes) => {
    const { queue, prefix, names, now } = context;
    if (job.isInFlow) rules.refused("flow", job.name);
    const type = rules.typeOf(job.name === UNNAMED ? queue : job.name, names, changes);
    const isDead = job.state === "failed";
    if (job.opts.lifo === true) changes.push({ reason: "order", detail: job.name });
    const number = Number(job.id);
    const at = job.finishedOn ?? job.processedOn ?? job.timestamp;
    return rules.lineFor(
      {
        origin: {
          engine: "bullmq",
          scope: prefix,
          queue,
          id: job.id,
          created: String(job.timestamp),
          createdAt: job.timestamp,
          ...(Number.isSafeInteger(number) && number >= 0 && { order: number }),
        },
        type,
        queue: rules.queueOf(queue, names, changes),
        // There 0 runs first, and then the lowest number.
        priority: rules.priorityOf(-job.priority, changes),
        payload: job.data,
        dueAt: job.dueAt ?? job.timestamp,
        attempts: isDead ? Math.max(1, job.attemptsMade) : job.attemptsMade,
        settings: { retry: retryOf(job.opts, changes) },
        ...(!isDead && { uniqueKey: keyOf(job, type, changes) }),
        ...(job.failedReason !== null && {
          error: { message: job.failedReason, at, ...(job.stack !== null && { stack: job.stack }) },
        }),
        ...(isDead && { deadAt: at }),
      },
      now,
    );
  });
}

function keyOf(
  { deduplicationId, opts }: BullmqJob,
  type: string,
  changes: Note<Change>[],
): string | undefined {
  if (deduplicationId === null) return undefined;
  const { ttl } = (opts.deduplication ?? opts.de ?? {}) as { ttl?: unknown };
  // With a time to live the key was free again before the job ended.
  if (ttl === undefined) return rules.uniqueKey(type, deduplicationId);
  changes.push({ reason: "throttle", detail: deduplicationId });
  return undefined;
}

const LONGEST = 315_360_000_000;

function retryOf(opts: Readonly<Record<string, unknown>>, changes: Note<Change>[]) {
  const { attempts, backoff, removeOnFail } = opts;
  const made = backoffOf(backoff, changes);
  return {
    attempts: typeof attempts === "number" && attempts >= 1 ? Math.min(1_000_000, Math.floor(attempts)) : 1,
    ...(made && { backoff: made }),
    ...(removeOnFail !== true && { onExhausted: "dead-letter" as const }),
  };
}

function backoffOf(value: unknown, changes: Note<Change>[]): Backoff | undefined {
  // Without a backoff BullMQ retries at once.
  if (value === undefined || value === null || value === 0)
    return { kind: "constant", first: 0, max: 1_000, jitter: false };
  const { type, delay, jitter } = (
    typeof value === "number" ? { type: "fixed", delay: value } : value
  ) as Record<string, unknown>;
  const first = typeof delay === "number" && delay >= 0 ? Math.min(LONGEST, Math.round(delay)) : 0;
  const isSpread = typeof jitter === "number" && jitter > 0;
  if (type === "fixed") return { kind: "constant", first, max: Math.max(first, 1_000), jitter: isSpread };
  if (type === "exponential")
    return { kind: "exponential", first, factor: 2, max: LONGEST, jitter: isSpread };
  changes.push({ reason: "backoff", detail: String(type) });
  return undefined;
}

/** A scheduler as BullMQ's `getJobSchedulers()` gives it. */
export interface BullmqScheduler {
  readonly key: string;
  readonly name: string;
  readonly pattern?: string | null | undefined;
  readonly every?: number | string | null | undefined;
  readonly tz?: string | null | undefined;
  readonly limit?: number | null | undefined;
  readonly startDate?: number | null | undefined;
  readonly endDate?: number | null | undefined;
  readonly template?:
    | { readonly data?: unknown; readonly opts?: Readonly<Record<string, unknown>> | undefined }
    | undefined;
}

export function translateBullmqScheduler(
  scheduler: BullmqScheduler,
  queue: string,
  names: rules.NameRules,
): rules.Ruled<CronSpec> {
  const { key, name, pattern, every, tz, limit, startDate, endDate, template } = scheduler;
  return rules.applyRules((changes) => {
    if (limit != null || endDate != null || startDate != null) rules.refused("cron_end", key);
    const cron = pattern ?? intervalCron(Number(every));
    const interval = `every ${String(every)} ms`;
    if (cron === undefined) return rules.refused("cron_interval", interval);
    if (pattern == null) changes.push({ reason: "interval", detail: interval });
    const attempts = Number(template?.opts?.attempts ?? 1);
    return {
      name: `${queue}/${key}`,
      cron,
      zone: tz ?? "UTC",
      // A scheduler makes one job for all the instants at which no worker ran.
      missed: "once",
      type: rules.typeOf(name === UNNAMED ? queue : name, names, changes),
      queue: rules.queueOf(queue, names, changes),
      payload: JSON.stringify(template?.data ?? {}),
      priority: rules.priorityOf(-Number(template?.opts?.priority ?? 0), changes),
      retry: { attempts: Number.isInteger(attempts) && attempts >= 1 ? Math.min(1_000, attempts) : 1 },
    };
  });
}

/** The cron expression of an interval that divides a minute, an hour or a day. */
export function intervalCron(milliseconds: number): string | undefined {
  const seconds = milliseconds / 1_000;
  if (!Number.isInteger(seconds) || seconds < 1) return undefined;
  if (seconds < 60) return 60 % seconds === 0 ? `*/${seconds} * * * * *` : undefined;
  const minutes = seconds / 60;
  if (!Number.isInteger(minutes)) return undefined;
  if (minutes < 60) return 60 % minutes === 0 ? `*/${minutes} * * * *` : undefined;
  const hours = minutes / 60;
  if (!Number.isInteger(hours)) return undefined;
  if (hours < 24) return 24 % hours === 0 ? `0 */${hours} * * *` : undefined;
  return hours === 24 ? "0 0 * * *" : undefined;
}
