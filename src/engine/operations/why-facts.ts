import { weightsOf } from "../../core/fair/fair-options.ts";
import { waitsForLimit } from "../../core/job/decide/decision.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import {
  type LimitFacts,
  MOST_AHEAD,
  MOST_KEYS,
  type ShareFacts,
  type WhyFacts,
  type WorkflowFacts,
} from "../../core/job/why/facts.ts";
import type { Why } from "../../core/job/why/reason.ts";
import { sharePosition } from "../../core/job/why/share.ts";
import { whyJob } from "../../core/job/why/why.ts";
import { effectiveLimit, type LimitOverride } from "../../core/limit/limit.ts";
import type { StoredQueue } from "../../core/limit/queue-settings.ts";
import { FINEST, keyBefore, startOf, startOfKey } from "../../core/stats/grains.ts";
import type { Instant } from "../../core/time.ts";
import { readWorker, remoteRecordId, type WorkerReport } from "../../core/worker/worker-report.ts";
import { finalsOf, positionOf } from "../../core/workflow/plan.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import { limitRecordKey, pauseKey, type RecordKey, type RecordRow, type Store } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { loadBrief } from "../find/bounded-reader.ts";
import { MAINTENANCE, MAINTENANCE_NAME, maintenanceIn } from "../queues/maintenance-record.ts";
import { QUEUES } from "../queues/queue-settings-cache.ts";
import { PAUSES } from "../queues/queues.ts";
import { statsKind } from "../statistics/roll-up.ts";
import { loadPlan, WORKFLOWS } from "../workflows/workflow-records.ts";
import { unknownJob } from "./operate-job.ts";
import { listWorkers } from "./worker-list.ts";

type Reader = Pick<EngineContext, "store" | "clock">;

/** The starts of a queue per millisecond are computed from these last minutes, with at most this many records. */
const PACE_SPAN = 5 * 60_000;
const PACE_RECORDS = 100;
/** At most this many slots are counted. A larger limit counts as full from here on. */
const MOST_SLOTS = 10_000;
/** The plan of a larger workflow is not read: it is one record that grows with the number of steps. */
const PLAN_READ_UP_TO = 2_000;
const STEPS_READ = 100;

/**
 * Says why a job does not run, does not end, or ended as it did. It needs a few indexed reads, so its cost does not
 * depend on the number of jobs.
 */
export async function why({ store, clock }: Reader, id: JobId): Promise<Why> {
  const [row] = await store.jobs.load([id]);
  if (!row) throw unknownJob("why", id);
  return whyJob(await factsOf(store, row, clock.now()));
}

async function factsOf(store: Store, row: JobRow, now: Instant): Promise<WhyFacts> {
  const isWaiting = row.state !== "active" && !isTerminal(row.state);
  const [records, list] = await Promise.all([readRecords(store, row), listWorkers(store)]);
  const { ahead, share } = await positionOfJob(store, row, records.settings?.body as StoredQueue | undefined);
  const concurrency = (records.settings?.body as StoredQueue | undefined)?.concurrency;
  const isNarrow = row.state === "available" && concurrency !== undefined;
  const [pace, queueSlots, limit, workflow] = await Promise.all([
    ahead === null || ahead === 0 ? null : paceOf(store, row.queue, now),
    isNarrow ? store.inspect.slots({ queue: row.queue }, slotBound(concurrency)) : null,
    isWaiting ? limitFacts(store, row, records.limit) : null,
    workflowFacts(store, row, records.workflow),
  ]);
  const pause = records.pause && PAUSES.read(records.pause).body;
  return {
    now,
    row,
    pausedAt: pause?.at ?? null,
    pausedBy: pause?.by,
    maintenance: maintenanceIn(records.maintenance && MAINTENANCE.read(records.maintenance), now),
    workers: list.workers,
    hasMoreWorkers: list.hasMore,
    holder: holderOf(records.holder, list.workers),
    ahead,
    share,
    pace,
    queueSlots: queueSlots && { concurrency: concurrency as number, slots: queueSlots },
    limit,
    workflow,
  };
}

/** Which jobs come before an available job: by rank, or in turns if its queue is fair. */
async function positionOfJob(
  { inspect }: Store,
  row: JobRow,
  settings: StoredQueue | undefined,
): Promise<{ readonly ahead: number | null; readonly share: ShareFacts | null }> {
  if (row.state !== "available") return { ahead: null, share: null };
  const most = MOST_AHEAD + 1;
  if (!settings?.fair || row.fairKey === null)
    return { ahead: await inspect.ahead({ queue: row.queue }, row, most), share: null };
  const [own, shares] = await Promise.all([
    inspect.ahead({ queue: row.queue, fairKey: row.fairKey }, row, most),
    inspect.shares(row.queue, MOST_KEYS, most),
  ]);
  return sharePosition(row, own, shares, weightsOf(settings.fair), most);
}

/** The worker of a record; the entry in the list is preferred, because it has the operators' directives. */
function holderOf(record: RecordRow | null, listed: readonly WorkerReport[]): WorkerReport | null {
  if (!record) return null;
  const holder = readWorker(record.key[1], record.body, false);
  return listed.find(({ id, isRemote }) => id === holder.id && isRemote === holder.isRemote) ?? holder;
}

/** Reads all records that are found by key, in one call. */
async function readRecords({ records }: Store, row: JobRow) {
  const remote = row.policy?.worker;
  const holder = remote === undefined ? row.worker : remoteRecordId(remote);
  const keys: RecordKey[] = [
    pauseKey(row.queue),
    MAINTENANCE.key(MAINTENANCE_NAME),
    QUEUES.key(row.queue),
    ...(row.limitKey === null ? [] : [limitRecordKey(row.limitKey)]),
    ...(holder === null || row.state !== "active" ? [] : [["worker", holder] as const]),
    ...(row.workflow === null ? [] : [WORKFLOWS.key(row.workflow)]),
  ];
  const byKind = new Map<string, RecordRow>();
  for (const record of await records.load(keys)) if (record) byKind.set(record.key[0], record);
  return {
    pause: byKind.get(pauseKey("")[0]) ?? null,
    maintenance: byKind.get(MAINTENANCE.kind) ?? null,
    settings: byKind.get(QUEUES.kind) ?? null,
    limit: byKind.get(limitRecordKey("")[0]) ?? null,
    holder: byKind.get("worker") ?? null,
    workflow: byKind.get(WORKFLOWS.kind) ?? null,
  };
}

const HOLDERS_NAMED = 3;

/** Counting one more than the limit shows whether it is full. More than MOST_SLOTS are not counted. */
function slotBound(limit: number): number {
  return Math.min(limit + 1, MOST_SLOTS);
}

async function limitFacts(
  { inspect }: Store,
  row: JobRow,
  override: RecordRow | null,
): Promise<LimitFacts | null> {
  const own = row.options?.limit;
  if (!own || row.limitKey === null || (!waitsForLimit(row) && typeof own.onLimit !== "object")) return null;
  const limit = effectiveLimit(own, override?.body as LimitOverride | undefined);
  const most = slotBound(Math.max(limit.concurrency ?? 0, limit.rate?.limit ?? 0));
  const line = { limitKey: row.limitKey };
  const [slots, ahead] = await Promise.all([
    inspect.slots(line, most),
    waitsForLimit(row) ? inspect.ahead(line, row, MOST_AHEAD + 1) : 0,
  ]);
  const areAllWaiting = slots.jobs.length === 0 && slots.available > 0;
  const admitted = areAllWaiting ? await inspect.limitJobs(row.limitKey, "available", HOLDERS_NAMED) : [];
  return { limit, slots, countedUpTo: most, admitted, ahead };
}

/** Starts per millisecond in a queue, by the stats of all engines. Stats of the last seconds are not written yet. */
async function paceOf({ records }: Store, queue: string, now: Instant): Promise<number | null> {
  const since = startOf(now - PACE_SPAN, FINEST.span);
  const minutes = await records.list(FINEST.kind, keyBefore(since), PACE_RECORDS);
  const last = minutes.at(-1);
  // The last minute of a full page is incomplete.
  const until = minutes.length < PACE_RECORDS || !last ? now : startOfKey(last.key[1]);
  let started = 0;
  let first: Instant | null = null;
  for (const record of minutes) {
    const start = startOfKey(record.key[1]);
    if (start >= until) break;
    for (const series of statsKind(FINEST).read(record).body.series) {
      if (series.queue !== queue || !series.counts.started) continue;
      first ??= start;
      started += series.counts.started;
    }
  }
  return first === null || until <= first ? null : started / (until - first);
}

async function workflowFacts(
  store: Store,
  row: JobRow,
  workflow: RecordRow | null,
): Promise<WorkflowFacts | null> {
  if (row.workflow === null) return null;
  const record = workflow ? WORKFLOWS.read(workflow).body : null;
  const isBefore = row.options?.step?.waitsFor !== undefined && record?.state === "running";
  const before = isBefore ? await stepsBefore(store, row, record) : [];
  return { id: row.workflow, record, before };
}

const NEAREST_TO_END = ["active", "retryable", "available", "scheduled", "pending"];

async function stepsBefore(store: Store, row: JobRow, record: WorkflowRecord): Promise<JobRow[]> {
  const ids = row.options?.step?.waitsFor?.after ?? (await plannedBefore(store, row, record));
  const rows = ids.length === 0 ? [] : await loadBrief(store, ids.slice(0, STEPS_READ));
  const unfinished = rows.filter((step) => step !== null && !isTerminal(step.state)) as JobRow[];
  const order = ({ state }: JobRow) => NEAREST_TO_END.indexOf(state);
  return unfinished.sort((a, b) => order(a) - order(b));
}

async function plannedBefore(store: Store, row: JobRow, record: WorkflowRecord): Promise<readonly JobId[]> {
  if (record.total > PLAN_READ_UP_TO) return [];
  const plan = await loadPlan(store, row.workflow as string);
  const position = plan && positionOf(plan.root, row.id);
  if (!position) return [];
  return finalsOf("before" in position ? position.before : position.batch);
}
