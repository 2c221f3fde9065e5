import { INTERNAL } from "../../core/job/internal-queue.ts";
import type { StoredQueue } from "../../core/limit/queue-settings.ts";
import type { JobStats } from "../../core/stats/job-stats.ts";
import type { Instant } from "../../core/time.ts";
import type { Engine } from "../../engine/engine.ts";
import { QUEUES } from "../../engine/queues/queue-settings-cache.ts";
import { PAUSES } from "../../engine/queues/queues.ts";
import type { Depth } from "../../engine/statistics/statistics.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { refusedField } from "../http/http-error.ts";
import { countsOf, LATELY, RECENTLY, throughputOf } from "./counts.ts";
import { configFields } from "./queue-config.ts";
import { queueName } from "./schemas.ts";

const MOST = 10_000;

const NOTHING: JobStats & { readonly depth: Depth } = {
  enqueued: 0,
  started: 0,
  failed: 0,
  retrying: 0,
  completed: 0,
  discarded: 0,
  cancelled: 0,
  deadLettered: 0,
  late: 0,
  nearMisses: 0,
  timeouts: { execution: 0, total: 0, enqueue_ttl: 0, stalled: 0, visibility: 0 },
  attainment: null,
  throughput: 0,
  wait: null,
  run: null,
  failedRun: null,
  depth: { scheduled: 0, available: 0, pending: 0, active: 0, retryable: 0 },
};

export function queueOf(params: Readonly<Record<string, string>>): string {
  const name = params.queue ?? "";
  const { error } = queueName.safeParse(name);
  if (!error) return name;
  const shown = JSON.stringify(name.slice(0, 128));
  throw refusedField("queue", `${shown} is not a valid queue name; ${error.issues[0]?.message}`);
}

interface QueueFacts {
  readonly name: string;
  readonly day: JobStats & { readonly depth: Depth };
  readonly recent: JobStats;
  readonly settings: StoredQueue | undefined;
  readonly pausedAt: Instant | undefined;
}

/** One queue, with the field names of all known clients. */
function fieldsOf({ name, day, recent, settings, pausedAt }: QueueFacts) {
  const { run } = recent;
  const status = pausedAt === undefined ? "active" : "paused";
  const { scheduled, available, pending, retryable } = day.depth;
  const depth = scheduled + available + pending + retryable;
  return {
    name,
    status,
    state: status,
    paused: pausedAt !== undefined,
    ...(pausedAt !== undefined && { paused_at: instantText(pausedAt) }),
    depth,
    // Jobs that ended in the last 24 hours.
    dead_letters: day.deadLettered,
    counts: countsOf(day),
    throughput: throughputOf(recent),
    ...(run && { latency_ms: { p50: run.p50, p95: run.p95, p99: run.p99 } }),
    configuration: configFields(settings, depth),
  };
}

export type QueueFields = ReturnType<typeof fieldsOf>;

/** One queue. Every valid name is a queue, even without jobs. */
export async function describeQueue(engine: Engine, name: string): Promise<QueueFields> {
  const [day, recent, settings, pause] = await Promise.all([
    engine.stats({ since: LATELY, queue: name, by: "queue" }),
    engine.stats({ since: RECENTLY, queue: name }),
    QUEUES.load(engine.store, name),
    PAUSES.load(engine.store, name),
  ]);
  const facts = { name, day: day.total, recent: recent.total };
  return fieldsOf({ ...facts, settings: settings?.body, pausedAt: pause?.body.at });
}

/** Every queue with jobs in the last 24 hours, with settings, or with a pause. */
export async function describeQueues(engine: Engine): Promise<QueueFields[]> {
  const [day, recent, settings, pauses] = await Promise.all([
    engine.stats({ since: LATELY, by: "queue" }),
    engine.stats({ since: RECENTLY, by: "queue" }),
    QUEUES.all(engine.store, MOST),
    PAUSES.all(engine.store, MOST),
  ]);
  const days = byQueue(day.groups);
  const recents = byQueue(recent.groups);
  return [...new Set([...days.keys(), ...settings.keys(), ...pauses.keys()])]
    .filter((name) => !name.startsWith(INTERNAL))
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) =>
      fieldsOf({
        name,
        day: days.get(name) ?? NOTHING,
        recent: recents.get(name) ?? NOTHING,
        settings: settings.get(name)?.body,
        pausedAt: pauses.get(name)?.body.at,
      }),
    );
}

function byQueue<Group extends { readonly queue: string | null }>(groups: readonly Group[]) {
  return new Map(groups.flatMap((group) => (group.queue === null ? [] : [[group.queue, group] as const])));
}
