import { constant, exponential } from "../core/job/policy/retry.ts";
import type { JobLine } from "../core/job/transfer/job-line.ts";
import type { Instant } from "../core/time.ts";
import type { Change, Note } from "./report.ts";
import type { CronSpec } from "./source.ts";
import * as rules from "./translate.ts";

/** A row of pg-boss's table `job`. Instants are milliseconds, documents are JSON as text. */
export interface PgBossJob {
  readonly id: string;
  readonly name: string;
  readonly priority: number;
  readonly state: "created" | "retry" | "failed";
  readonly data: string | null;
  readonly output: string | null;
  readonly retry_limit: number;
  readonly retry_count: number;
  readonly retry_delay: number;
  readonly retry_backoff: boolean;
  readonly retry_delay_max: number | null;
  /** In seconds, as all durations here. */
  readonly expire: number;
  readonly heartbeat: number | null;
  readonly singleton_key: string | null;
  readonly has_slot: boolean;
  readonly group_id: string | null;
  readonly start_after: Instant;
  /** Microseconds since 1970. */
  readonly created_on: string;
  readonly completed_on: Instant | null;
  readonly keep_until: Instant;
  readonly dead_letter: string | null;
  readonly policy: string | null;
  readonly has_dependencies: boolean;
  readonly source_name: string | null;
  readonly source_retry_count: number | null;
  readonly source_output: string | null;
}

const SECOND = 1_000;
const DAY = 86_400_000;
const LONGEST = 3_650 * DAY;
/** A backoff without an end in pg-boss: 2^16 times the delay, at most ten years here. */
const longest = (milliseconds: number) => Math.min(LONGEST, milliseconds);

export function translatePgBossJob(
  job: PgBossJob,
  context: { readonly schema: string; readonly names: rules.NameRules; readonly now: Instant },
): rules.Ruled<JobLine> {
  return rules.applyRules((changes) => {
    const { names, now } = context;
    if (job.has_dependencies) rules.refused("flow", job.name);
    if (job.state === "failed" && job.dead_letter !== null)
      rules.refused("copied", `copy in ${JSON.stringify(job.dead_letter)}`);
    // A copy in a dead letter queue becomes a dead letter of the type that failed.
    const isCopy = job.state !== "failed" && job.source_name !== null;
    const name = isCopy ? (job.source_name as string) : job.name;
    const type = rules.typeOf(name, names, changes);
    const isDead = job.state === "failed" || isCopy;
    const createdAt = Math.floor(Number(job.created_on) / 1_000);
    const attempts = isCopy
      ? (job.source_retry_count ?? 0) + 1
      : job.state === "created"
        ? 0
        : job.retry_count + 1;
    if (job.group_id !== null) changes.push({ reason: "group", detail: job.group_id });
    if (job.has_slot) changes.push({ reason: "throttle", detail: job.singleton_key ?? job.name });
    return rules.lineFor(
      {
        origin: originOf(job, context.schema, createdAt),
        type,
        queue: rules.queueOf(name, names, changes),
        priority: rules.priorityOf(job.priority, changes),
        payload: job.data ?? "null",
        dueAt: job.start_after,
        attempts,
        settings: settingsOf(job),
        expiresAt: job.keep_until,
        error: errorOf(
          isCopy ? job.source_output : job.output,
          isDead ? (job.completed_on ?? createdAt) : now,
        ),
        ...(isDead ? { deadAt: job.completed_on ?? createdAt } : keysOf(job, type, changes)),
      },
      now,
    );
  });
}

function originOf({ name, id, created_on }: PgBossJob, schema: string, createdAt: Instant): rules.Origin {
  const microseconds = Number(created_on) % 1_000;
  // pg-boss orders jobs of one instant by id.
  const order = microseconds * 2 ** 16 + Number.parseInt(id.slice(0, 4), 16);
  return { engine: "pg-boss", scope: schema, queue: name, id, created: created_on, createdAt, order };
}

function settingsOf(job: PgBossJob) {
  const delay = job.retry_delay * SECOND;
  const most = job.retry_delay_max === null ? null : job.retry_delay_max * SECOND;
  const first = Math.max(SECOND, delay);
  return {
    timeouts: {
      attempt: Math.max(1, job.expire) * SECOND,
      ...(job.heartbeat !== null && { heartbeat: Math.max(1, job.heartbeat) * SECOND }),
    },
    retry: {
      attempts: job.retry_limit + 1,
      backoff: job.retry_backoff
        ? {
            kind: "exponential" as const,
            first: Math.min(first, most ?? first),
            factor: 2,
            max: longest(most ?? first * 2 ** 16),
            jitter: true,
          }
        : { kind: "constant" as const, first: delay, max: Math.max(delay, SECOND), jitter: false },
      ...(job.dead_letter !== null && { onExhausted: "dead-letter" as const }),
    },
  };
}

/** What the policy of the queue means for one job. A key that is left out counts as one key. */
function keysOf(job: PgBossJob, type: string, changes: Note<Change>[]) {
  const key = job.singleton_key ?? job.name;
  const limit = { key: rules.limitKey(`${type}:${key}`) };
  switch (job.policy) {
    case "short":
      if (job.state !== "created") return {};
      changes.push({ reason: "wider_key", detail: key });
      return { uniqueKey: rules.uniqueKey(type, key) };
    case "stately":
      if (job.state !== "created") return { limit };
      changes.push({ reason: "wider_key", detail: key });
      return { uniqueKey: rules.uniqueKey(type, key), limit };
    case "exclusive":
      return { uniqueKey: rules.uniqueKey(type, key) };
    case "singleton":
      return { limit };
    case "key_strict_fifo":
      return { limit: { ...limit, strict: true as const } };
    default:
      return {};
  }
}

/** `output` of a failed job is an error as JSON, or what the handler threw. */
function errorOf(output: string | null, at: Instant) {
  if (output === null) return undefined;
  const value = JSON.parse(output) as { message?: unknown; stack?: unknown; value?: unknown } | null;
  const message = typeof value?.message === "string" ? value.message : JSON.stringify(value?.value ?? value);
  return { message, at, ...(typeof value?.stack === "string" && { stack: value.stack }) };
}

/** A row of pg-boss's table `schedule`. */
export interface PgBossSchedule {
  readonly name: string;
  readonly key: string;
  readonly kind: string | null;
  readonly cron: string;
  readonly timezone: string | null;
  readonly data: string | null;
  readonly options: Readonly<Record<string, unknown>> | null;
}

export function translatePgBossSchedule(row: PgBossSchedule, names: rules.NameRules): rules.Ruled<CronSpec> {
  return rules.applyRules((changes) => {
    if (row.kind === "rrule") rules.refused("cron_rule", row.cron);
    return {
      ...cronOf(row),
      type: rules.typeOf(row.name, names, changes),
      queue: rules.queueOf(row.name, names, changes),
      priority: rules.priorityOf(numberIn(row.options, "priority") ?? 0, changes),
    };
  });
}

function cronOf({
  name,
  key,
  cron,
  timezone,
  data,
  options,
}: PgBossSchedule): Omit<CronSpec, "type" | "queue" | "priority"> {
  const expire = numberIn(options, "expireInSeconds");
  const retries = numberIn(options, "retryLimit");
  const delay = numberIn(options, "retryDelay") ?? 0;
  const hasBackoff = options?.retryBackoff === true;
  const first = `${Math.max(1, delay)}s` as const;
  return {
    name: key === "" ? name : `${name}/${key}`,
    cron,
    zone: timezone ?? "UTC",
    missed: options?.missed === "once" ? "once" : "skip",
    payload: data ?? "null",
    ...(expire !== undefined && { timeouts: { attempt: `${expire}s` as const } }),
    ...(retries !== undefined && {
      retry: {
        attempts: Math.min(1_000, retries + 1),
        backoff: hasBackoff
          ? exponential({ first, max: "1d" })
          : constant({ first, jitter: false, max: "1d" }),
      },
    }),
  };
}

function numberIn(options: PgBossSchedule["options"], name: string): number | undefined {
  const value = options?.[name];
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}
