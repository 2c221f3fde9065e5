import { instantText } from "../../core/event/wire-fields.ts";
import type { JobStats } from "../../core/stats/job-stats.ts";
import type { Instant } from "../../core/time.ts";
import type { Engine } from "../../engine/engine.ts";
import { QUEUES } from "../../engine/queues/queue-settings-cache.ts";
import type { Depth } from "../../engine/statistics/statistics.ts";
import { pauseKey, type RecordRow } from "../../ports/store.ts";
import { HttpError } from "../http-error.ts";
import { countsOf, LATELY, RECENTLY, throughputOf } from "./counts.ts";
import { configFields } from "./queue-config.ts";
import { queueName } from "./schemas.ts";

const PAGE = 500;
const MOST = 10_000;
/** Queues of the engine's own, where nobody enqueues. */
const OWN = "curfew.";

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
  const message = `queue: ${JSON.stringify(name.slice(0, 128))} is no name of a queue; ${error.issues[0]?.message}`;
  throw new HttpError(400, "invalid_request", message, { details: { field: "queue" } });
}

/** What there is to say about a queue. */
interface QueueFacts {
  readonly name: string;
  readonly day: JobStats & { readonly depth: Depth };
  readonly recent: JobStats;
  readonly settings: RecordRow | undefined;
  readonly pause: RecordRow | undefined;
}

/** One queue in the fields of every client that is known. */
function fieldsOf({ name, day, recent, settings, pause }: QueueFacts) {
  const pausedAt = (pause?.body as { at: Instant } | undefined)?.at;
  const { run } = recent;
  const status = pause ? "paused" : "active";
  const { scheduled, available, pending, retryable } = day.depth;
  const depth = scheduled + available + pending + retryable;
  return {
    name,
    status,
    state: status,
    paused: pause !== undefined,
    ...(pausedAt !== undefined && { paused_at: instantText(pausedAt) }),
    depth,
    // Of those that ended in the last 24 hours, like all that have.
    dead_letters: day.deadLettered,
    counts: countsOf(day),
    throughput: throughputOf(recent),
    ...(run && { latency_ms: { p50: run.p50, p95: run.p95, p99: run.p99 } }),
    configuration: configFields(settings?.body, depth),
  };
}

export type QueueFields = ReturnType<typeof fieldsOf>;

/** One queue; every name is a queue, whether it has anything or not. */
export async function describeQueue(engine: Engine, name: string): Promise<QueueFields> {
  const [day, recent, live, [settings, pause]] = await Promise.all([
    engine.stats({ since: LATELY, queue: name, by: "queue" }),
    engine.stats({ since: RECENTLY, queue: name }),
    engine.store.inspect.live(),
    engine.store.records.load([QUEUES.key(name), pauseKey(name)]),
  ]);
  // Figures may be a moment old on a busy store; whoever asks for one queue wants to know what is in it now.
  const depth = { ...NOTHING.depth };
  for (const { queue, state, count } of live) if (queue === name) depth[state as keyof Depth] += count;
  const facts = { name, day: { ...day.total, depth }, recent: recent.total };
  return fieldsOf({ ...facts, settings: settings ?? undefined, pause: pause ?? undefined });
}

/** Every queue that has jobs, had some lately, has settings or is paused; what ended long ago costs nothing. */
export async function describeQueues(engine: Engine): Promise<QueueFields[]> {
  const [day, recent, settings, pauses] = await Promise.all([
    engine.stats({ since: LATELY, by: "queue" }),
    engine.stats({ since: RECENTLY, by: "queue" }),
    recordsOf(engine, QUEUES.kind),
    recordsOf(engine, pauseKey("")[0]),
  ]);
  const days = byQueue(day.groups);
  const recents = byQueue(recent.groups);
  return [...new Set([...days.keys(), ...settings.keys(), ...pauses.keys()])]
    .filter((name) => !name.startsWith(OWN))
    .sort((a, b) => (a < b ? -1 : 1))
    .map((name) =>
      fieldsOf({
        name,
        day: days.get(name) ?? NOTHING,
        recent: recents.get(name) ?? NOTHING,
        settings: settings.get(name),
        pause: pauses.get(name),
      }),
    );
}

function byQueue<Group extends { readonly queue: string | null }>(groups: readonly Group[]) {
  return new Map(groups.flatMap((group) => (group.queue === null ? [] : [[group.queue, group] as const])));
}

async function recordsOf({ store }: Engine, kind: string): Promise<Map<string, RecordRow>> {
  const records = new Map<string, RecordRow>();
  for (let after: string | null = null; records.size < MOST; ) {
    const page: RecordRow[] = await store.records.list(kind, after, PAGE);
    for (const record of page) records.set(record.key[1], record);
    if (page.length < PAGE) break;
    after = (page.at(-1) as RecordRow).key[1];
  }
  return records;
}
