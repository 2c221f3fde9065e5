import type { JobLine } from "../core/job/transfer/job-line.ts";
import type { Instant } from "../core/time.ts";
import type { Change, Note } from "./report.ts";
import type { CronSpec } from "./source.ts";
import {
  applyRules,
  defaultQueue,
  limitKey,
  lineFor,
  type NameRules,
  priorityOf,
  type Ruled,
  refused,
  typeOf,
  uniqueKey,
} from "./translate.ts";

/** A row of graphile-worker's table `_private_jobs` with the names of its task and queue. Instants are milliseconds. */
export interface GraphileJob {
  readonly id: string;
  readonly task: string;
  readonly queue_name: string | null;
  readonly payload: string;
  readonly priority: number;
  readonly run_at: Instant;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly last_error: string | null;
  /** Microseconds since 1970. */
  readonly created_at: string;
  readonly updated_at: Instant;
  readonly key: string | null;
}

/** graphile-worker waits `exp(min(attempts, 10))` seconds. */
const BACKOFF = {
  kind: "exponential" as const,
  first: Math.round(Math.E * 1_000),
  factor: Math.E,
  max: Math.round(Math.exp(10) * 1_000),
  jitter: false,
};

export function translateGraphileJob(
  job: GraphileJob,
  context: { readonly schema: string; readonly names: NameRules; readonly now: Instant },
): Ruled<JobLine> {
  return applyRules((changes) => {
    const { schema, names, now } = context;
    const type = typeOf(job.task, names, changes);
    const isDead = job.attempts >= job.max_attempts;
    const createdAt = Math.floor(Number(job.created_at) / 1_000);
    return lineFor(
      {
        origin: {
          engine: "graphile-worker",
          scope: schema,
          queue: job.task,
          id: job.id,
          created: job.created_at,
          createdAt,
          order: Number(BigInt(job.id) & 0x3ffffffn),
        },
        type,
        queue: defaultQueue(names),
        // There the lowest number runs first.
        priority: priorityOf(-job.priority, changes),
        payload: job.payload,
        dueAt: job.run_at,
        attempts: job.attempts,
        settings: {
          retry: { attempts: job.max_attempts, backoff: BACKOFF, onExhausted: "dead-letter" },
        },
        // A dead job releases its key.
        ...(job.key !== null && !isDead && { uniqueKey: uniqueKey(type, job.key) }),
        // The jobs of a named queue run one after the other.
        ...(job.queue_name !== null && { limit: { key: limitKey(job.queue_name) } }),
        ...(job.last_error !== null && { error: { message: job.last_error, at: job.updated_at } }),
        ...(isDead && { deadAt: job.updated_at }),
      },
      now,
    );
  });
}

const CRONTAB_LINE = /^(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+([^\s?{]+)(?:\s+\?(\S*))?(?:\s+(\{.*\}))?$/;

/** The crons of a crontab file of graphile-worker, by line number. Its times are UTC. */
export function translateCrontab(text: string, names: NameRules): { line: number; ruled: Ruled<CronSpec> }[] {
  return text.split("\n").flatMap((raw, index) => {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) return [];
    return [{ line: index + 1, ruled: applyRules((changes) => crontabCron(line, names, changes)) }];
  });
}

function crontabCron(line: string, names: NameRules, changes: Note<Change>[]): CronSpec {
  const [, cron, task, query = "", payload = "{}"] = CRONTAB_LINE.exec(line) ?? [];
  if (cron === undefined || task === undefined)
    return refused("cron_invalid", `not five fields and a task: ${line}`);
  if (!isJson(payload)) refused("cron_invalid", `the payload is not plain JSON: ${payload}`);
  const options = new URLSearchParams(query);
  const most = Number(options.get("max") ?? Number.NaN);
  const queueName = options.get("queue");
  if (queueName !== null) changes.push({ reason: "group", detail: `queue ${queueName}` });
  return {
    name: options.get("id") ?? task,
    cron,
    zone: "UTC",
    missed: options.has("fill") ? "once" : "skip",
    type: typeOf(task, names, changes),
    queue: defaultQueue(names),
    payload,
    priority: priorityOf(-Number(options.get("priority") ?? 0), changes),
    ...(Number.isInteger(most) && most > 0 && { retry: { attempts: Math.min(1_000, most) } }),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
