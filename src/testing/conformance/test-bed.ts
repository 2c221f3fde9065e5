import assert from "node:assert/strict";
import { type Cell, cellOfName } from "../../core/home/cell.ts";
import { cellOfJob } from "../../core/home/home-of-job.ts";
import { createHomedIdSource, createIdSource, type IdSource } from "../../core/ids.ts";
import { decide } from "../../core/job/decide/decide.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import { unstartedImage } from "../../core/job/decide/unstarted-image.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { fenceSalt, type JobId, type JobImage, type JobRow, rankOf } from "../../core/job/job.ts";
import { CLAIM_LEASE, waitingWake } from "../../core/job/policy/deadlines.ts";
import { resolvePolicy } from "../../core/job/policy/policy.ts";
import { type Random, seededRandom } from "../../core/random.ts";
import type { Instant } from "../../core/time.ts";
import {
  type ClaimRequest,
  type Effect,
  type Outcome,
  queueMark,
  type Store,
  type Swept,
  type Unit,
} from "../../ports/store.ts";
import { type Decided, decidedUnit } from "./decided-unit.ts";
import { spreadIds } from "./spread-ids.ts";

/** The policy of a job for which no source has settings. */
export const POLICY = resolvePolicy({});
const QUEUE = "default";
/** The home of the jobs of a case that needs its queue in one home. */
export const QUEUE_HOME: Cell = cellOfName(queueMark(QUEUE));
export const LEASE = CLAIM_LEASE;
const SEED = 20_260_101;

/** A store on new, empty data. */
export interface OpenedStore {
  readonly store: Store;
  /** A second handle on the same data, over its own connection if the store has connections. */
  another?(): Promise<Store>;
  /** The same data after all handles were closed. Left out by a store whose data ends with the process. */
  reopen?(): Promise<Store>;
  /** Frees what `open` took. The kit closes the store itself. */
  dispose?(): Promise<void>;
}

/** What a case may set on a job. The rest is as in an ordinary enqueue. */
export interface JobSketch
  extends Partial<Omit<NewJob, "image">>,
    Partial<Pick<JobImage, "waitAt" | "totalAt" | "heartbeat">> {
  readonly dueAt?: Instant;
}

/** A store on new data, with shortcuts for what cases often do. */
export interface TestBed {
  readonly store: Store;
  readonly opened: OpenedStore;
  /** The store's time when the case began. Cases count from here and pass time themselves. */
  readonly now: Instant;
  readonly random: Random;
  nextId(): JobId;
  /** This many handles on the same data. The first one is `store`. */
  handles(count: number): Promise<Store[]>;
  job(sketch?: JobSketch): NewJob;
  /** Enqueues one job and returns its row. */
  add(sketch?: JobSketch): Promise<JobRow>;
  addMany(jobs: readonly NewJob[]): Promise<void>;
  claim(request?: Partial<ClaimRequest>): Promise<JobRow[]>;
  /** Claims the best job. */
  claimOne(request?: Partial<ClaimRequest>): Promise<JobRow>;
  load(id: JobId): Promise<JobRow | null>;
  /** The unit of what `decide` makes of an event. The event must be allowed. */
  unit(row: JobRow, event: JobEvent, how?: Decided): Unit;
  commit(...units: Unit[]): Promise<Outcome[]>;
  /** Decides, commits, and returns the resulting row. */
  write(row: JobRow, event: JobEvent, how?: Decided): Promise<JobRow>;
  start(row: JobRow): Promise<JobRow>;
  effect(...effects: Effect[]): Promise<Outcome>;
  sweep(now?: Instant, limit?: number): Promise<Swept>;
  close(): Promise<void>;
}

export async function openBed(opened: OpenedStore, home?: Cell): Promise<TestBed> {
  const { store } = opened;
  const now = await store.clock();
  const random = seededRandom(SEED);
  const fill = (bytes: Uint8Array) => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = random() * 256;
  };
  const nextId =
    store.capabilities.homes === 1
      ? createIdSource(() => now, fill)
      : spreadIds(
          createHomedIdSource(() => now, fill),
          random,
          home,
        );
  const others: Store[] = [];
  const bed: TestBed = {
    store,
    opened,
    now,
    random,
    nextId,
    async handles(count) {
      while (opened.another && others.length < count - 1) others.push(await opened.another());
      return Array.from({ length: count }, (_, index) => others[index - 1] ?? store);
    },
    job: (sketch = {}) => sketchJob(sketch, now, nextId),
    async add(sketch) {
      const job = bed.job(sketch);
      await bed.addMany([job]);
      return found(await bed.load(job.id));
    },
    async addMany(jobs) {
      const answers = await store.jobs.enqueue(jobs, { now });
      assert.deepEqual(
        answers,
        jobs.map(() => "created"),
      );
    },
    claim: (request) => store.jobs.claim(claimRequest(bed, request)),
    async claimOne(request) {
      const rows = await bed.claim({ limit: 1, ...request });
      assert.equal(rows.length, 1, "a claim of one must give one job");
      return rows[0] as JobRow;
    },
    async load(id) {
      return (await store.jobs.load([id]))[0] ?? null;
    },
    unit(row, event, how = {}) {
      const decision = decide(row, event, how.now ?? now, random);
      assert(decision.ok, `decide must allow ${event.type} on a job that is ${row.state}`);
      return decidedUnit(row, decision, how);
    },
    commit: (...units) => store.commit(units, { now }),
    async write(row, event, how) {
      assert.deepEqual(await bed.commit(bed.unit(row, event, how)), [{ ok: true }]);
      return found(await bed.load(row.id));
    },
    start: (row) => bed.write(row, { type: "start", policy: POLICY, upper: now }),
    async effect(...effects) {
      return (await bed.commit({ effects }))[0] as Outcome;
    },
    sweep: (at = now, limit = 1_000) => store.jobs.sweep({ now: at, limit, holdUntil: at + 5_000 }),
    async close() {
      for (const other of others) if (other !== store) await other.close();
    },
  };
  return bed;
}

export function claimRequest(
  { now, random }: Pick<TestBed, "now" | "random">,
  request: Partial<ClaimRequest> = {},
): ClaimRequest {
  const salt = fenceSalt(random);
  return { queue: QUEUE, limit: 1_000, now, lease: LEASE, salt, worker: "worker-1", from: 0, ...request };
}

/** A job as an enqueue at `now` would make it. */
export function sketchJob(sketch: JobSketch, now: Instant, nextId: IdSource): NewJob {
  const { dueAt = now, waitAt = null, totalAt = null, heartbeat = null, ...said } = sketch;
  const isPending = said.limitKey !== undefined || (said.needs ?? 0) > 0;
  const state = isPending ? "pending" : dueAt > now ? "scheduled" : "available";
  const priority = said.priority ?? 0;
  const rank = rankOf(priority, dueAt);
  return {
    id: said.id ?? nextId(cellOfJob(said)),
    hasNewId: said.id === undefined,
    queue: QUEUE,
    type: "kit.job",
    createdAt: now,
    payload: "{}",
    options: null,
    ...said,
    priority,
    image: unstartedImage(
      { state, rank, attempt: 0, returns: 0, expiredClaims: 0, waitAt, totalAt, heartbeat },
      waitingWake({ state, rank, waitAt, totalAt }),
    ),
  };
}

/** A row that must exist. */
export function found(row: JobRow | null | undefined): JobRow {
  assert(row, "the job must be there");
  return row;
}

/** Why a unit was refused. Fails the case if it was not. */
export function refused(outcome: Outcome | undefined): Extract<Outcome, { ok: false }> {
  assert(outcome && !outcome.ok, "the unit must be refused");
  return outcome;
}

/** Splits a list into batches that a store accepts. */
export function batches<Item>(items: readonly Item[], size = 1_000): Item[][] {
  const found: Item[][] = [];
  for (let start = 0; start < items.length; start += size) found.push(items.slice(start, start + size));
  return found;
}

export function times<Value>(count: number, make: (index: number) => Value): Value[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export function idsOf(rows: readonly { readonly id: JobId }[]): JobId[] {
  return rows.map(({ id }) => id);
}
