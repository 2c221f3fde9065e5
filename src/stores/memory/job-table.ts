import { DueHeap, type Slotted } from "../../core/due-heap.ts";
import { availableRow, claimedRow } from "../../core/job/decide/store-formulas.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { newRow } from "../../core/job/enqueue/new-row.ts";
import {
  dueAtOf,
  JOB_STATES,
  type JobId,
  type JobRow,
  type JobState,
  nextPriorityRank,
  noJobs,
  priorityRank,
  type Rank,
  sumDepths,
} from "../../core/job/job.ts";
import { isWanted } from "../../core/job/job-filter.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Json } from "../../core/schema.ts";
import { namesOf, tenantOf } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import {
  type ClaimRequest,
  type Enqueued,
  type FairLine,
  type KeyHolder,
  type Line,
  type LiveCount,
  LOG_LIMIT,
  type NumberedLine,
  queueMark,
  type ReadyJob,
  SCAN_STEP,
  type ShareRow,
} from "../../ports/store.ts";
import { answerNow } from "../claim-questions.ts";
import { claimTurns } from "../claim-turns.ts";
import { cursorOf, type ScanCursor, type ScanPath, scanCursorOf } from "../scan-cursor.ts";
import { FairTable, keysOfFair, takeFair, takeInOrder } from "./fair-table.ts";
import { type LeastRevision, lifted } from "./least-revision.ts";
import { LimitTable } from "./limit-table.ts";
import { SortedList } from "./sorted-list.ts";

/** A job, and what the table knows about it beyond its row. */
export interface JobEntry extends Slotted {
  row: JobRow;
  readonly queue: QueueIndex;
  readonly depth: TypeDepth;
  /** The unique key that it holds while it is live. */
  uniqueKey: string | null;
  logs: LineLog | null;
}

/** The last lines of a log, and the number of the line before them. */
interface LineLog {
  before: number;
  readonly lines: Json[];
}

/** The number of a queue's jobs of one type, by state. */
interface TypeDepth {
  readonly type: string;
  size: number;
  readonly states: Record<JobState, number>;
}

/** The jobs of one tenant, or of none. */
interface Space {
  readonly byId: SortedList<JobEntry>;
  readonly deadLetters: SortedList<JobEntry>;
}

interface QueueIndex {
  readonly name: string;
  readonly space: Space;
  /** The number of its jobs, finished ones included. An index without jobs is deleted. */
  size: number;
  readonly ready: SortedList<JobEntry>;
  /** Its available jobs with a fair key. Undefined until it had one. */
  fair: FairTable<JobEntry> | undefined;
  readonly types: Map<string, TypeDepth>;
}

/**
 * All jobs, with an index for each query of a store, so that no query becomes slower with more jobs. The indexes
 * depend on the row alone, and only `#enter` and `#leave` change them.
 */
export class JobTable {
  readonly #least: LeastRevision;
  readonly #jobs = new Map<JobId, JobEntry>();
  /** By tenant; the empty name has the jobs of none. */
  readonly #spaces = new Map<string, Space>();
  readonly #queues = new Map<string, QueueIndex>();
  readonly limits = new LimitTable<JobEntry>(compareRank);
  readonly #uniqueKeys = new Map<string, JobEntry>();
  readonly #promotable = new DueHeap<JobEntry>();
  readonly #undecided = new DueHeap<JobEntry>();
  readonly #prunable = new DueHeap<JobEntry>();

  constructor(least: LeastRevision) {
    this.#least = least;
  }

  get(id: JobId): JobEntry | undefined {
    return this.#jobs.get(id);
  }

  /** The next instant at which a live job is due. */
  get nextWakeAt(): Instant | null {
    return earlier(this.#promotable.nextAt, this.#undecided.nextAt);
  }

  /** What prevents a job from being inserted, if anything does. */
  known(job: NewJob): Exclude<Enqueued, "created" | "full"> | undefined {
    if (this.#jobs.has(job.id)) return "exists";
    const holder = job.uniqueKey === undefined ? undefined : this.#uniqueKeys.get(job.uniqueKey);
    return holder && { duplicate: holder.row.id };
  }

  insert(job: NewJob): Enqueued {
    const known = this.known(job);
    if (known) return known;
    const uniqueKey = job.uniqueKey ?? null;
    const queue = this.#queueOf(job.queue);
    const entry: JobEntry = {
      row: newRow(job),
      slot: -1,
      queue,
      depth: depthOf(queue, job.type),
      uniqueKey,
      logs: null,
    };
    queue.size += 1;
    entry.depth.size += 1;
    this.#jobs.set(job.id, entry);
    queue.space.byId.add(entry);
    this.#enter(entry);
    return "created";
  }

  /** Claims the best available jobs of a queue. */
  claim(request: ClaimRequest): JobRow[] {
    const { queue, limit, most, turns } = request;
    const index = this.#queues.get(queue);
    if (!index) return [];
    const room = most === undefined ? limit : Math.min(limit, most - this.limits.activeIn(queue));
    if (room <= 0) return [];
    const mark = most === undefined ? null : queueMark(queue);
    const taken = (entry: JobEntry) => {
      this.#leaveHeap(entry);
      const row = lifted(claimedRow(entry.row, request), this.#least());
      entry.row = mark !== null && row.limitKey === null ? { ...row, limitKey: mark } : row;
      this.#enter(entry);
      return entry.row;
    };
    if (!turns) {
      const best = index.ready.take(room, (entry) => entry.row.rank < request.from);
      for (const entry of best) if (entry.row.fairKey !== null) index.fair?.remove(entry);
      return best.map(taken);
    }
    const rows: JobRow[] = [];
    answerNow(claimTurns(turns, request.salt, room, rows), (question) => {
      if ("inOrder" in question) {
        const answer = takeInOrder(index.ready, index.fair, question);
        return answer && { rows: answer.found.map(taken), isCut: false, isEnd: answer.isEnd };
      }
      if (!("take" in question)) return keysOfFair(index.ready, index.fair, question);
      return { rows: takeFair(index.ready, index.fair, question).map(taken), isCut: false };
    });
    return rows;
  }

  /** Makes the best jobs that wait for a limit available. */
  admit(limitKey: string, count: number): JobEntry[] {
    const admitted = this.limits.best(limitKey, count);
    for (const entry of admitted) this.write(entry, availableRow(entry.row));
    return admitted;
  }

  /** Makes jobs available whose delay or backoff is over. */
  promote(now: Instant, limit: number): JobEntry[] {
    const due = this.#promotable.takeDue(now, limit);
    for (const entry of due) this.write(entry, availableRow(entry.row));
    return due;
  }

  /** Returns jobs that need a decision, and holds them until `holdUntil`. */
  hold(now: Instant, limit: number, holdUntil: Instant): JobRow[] {
    return this.#undecided.takeDue(now, limit).map((entry) => {
      entry.row = { ...entry.row, wakeAt: holdUntil };
      this.#undecided.add(entry, holdUntil);
      return entry.row;
    });
  }

  /** Replaces the row of a job. */
  write(entry: JobEntry, row: JobRow): void {
    this.#leave(entry);
    entry.row = lifted(row, this.#least());
    this.#enter(entry);
  }

  /** Replaces the row by one that differs only in fields that no index uses. */
  amend(entry: JobEntry, row: JobRow): void {
    entry.row = row;
  }

  delete(entry: JobEntry): void {
    this.#leave(entry);
    if (entry.uniqueKey !== null) this.#freeKey(entry, entry.uniqueKey);
    this.#jobs.delete(entry.row.id);
    entry.queue.space.byId.remove(entry);
    entry.queue.size -= 1;
    entry.depth.size -= 1;
    if (entry.depth.size === 0) entry.queue.types.delete(entry.depth.type);
    if (entry.queue.size === 0) this.#queues.delete(entry.queue.name);
  }

  prune(now: Instant, limit: number): number {
    const due = this.#prunable.takeDue(now, limit);
    for (const entry of due) this.delete(entry);
    return due.length;
  }

  /** Keeps only the last lines: a handler that logs in a loop must not fill the memory. */
  log(entry: JobEntry, line: Json): void {
    entry.logs ??= { before: 0, lines: [] };
    entry.logs.lines.push(line);
    if (entry.logs.lines.length <= LOG_LIMIT) return;
    entry.logs.lines.shift();
    entry.logs.before += 1;
  }

  lines(id: JobId, after: number, limit: number): NumberedLine[] {
    const { before, lines } = this.#jobs.get(id)?.logs ?? { before: 0, lines: [] };
    const from = Math.max(0, after - before);
    return lines.slice(from, from + limit).map((line, index) => ({ seq: before + from + index + 1, line }));
  }

  /** Live jobs of a limit in the order of their ids. It reads all jobs: inspection is not a hot path. */
  ofLimit(limitKey: string, state: JobState | null, limit: number): JobRow[] {
    const found: JobRow[] = [];
    const byId = this.#spaces.get(tenantOf(limitKey) ?? "")?.byId;
    for (const { row } of byId?.from(() => false) ?? []) {
      if (found.length === limit) break;
      if (row.limitKey !== limitKey || isTerminal(row.state)) continue;
      if (state === null || row.state === state) found.push(row);
    }
    return found;
  }

  /**
   * One step of a scan. Calls back for each match. Returns the cursor at which it stopped, or null if there is no
   * more.
   */
  step(path: ScanPath, found: (row: JobRow) => boolean): string | null {
    const space = this.#spaces.get(path.filter.tenant ?? "");
    if (!space) return null;
    const list = path.byEnd ? space.deadLetters : space.byId;
    const { after, newestFirst } = path;
    const isBefore = (entry: JobEntry) => after !== null && comparePosition(entry.row, after) <= 0;
    const isStillBefore = (entry: JobEntry) => after === null || comparePosition(entry.row, after) < 0;
    let left = SCAN_STEP;
    for (const { row } of newestFirst ? list.back(isStillBefore) : list.from(isBefore)) {
      left -= 1;
      const wantsMore = isWanted(row, path.filter) ? found(row) : true;
      if (!wantsMore || left === 0) return cursorOf(scanCursorOf(row, path.byEnd));
    }
    return null;
  }

  /** The depth of every queue, or of one, sorted by name. */
  depths(
    queue: string | undefined,
    tenant: string | undefined,
  ): ReadonlyMap<string, Readonly<Record<JobState, number>>> {
    const all = () => this.#queuesOf(tenant).map(({ name }) => name);
    const names = queue === undefined ? all().sort(compareText) : [queue];
    return new Map(
      names.flatMap((name) => {
        const index = this.#queues.get(name);
        return index
          ? [[name, sumDepths([...index.types.values()].map(({ states }) => states))] as const]
          : [];
      }),
    );
  }

  /** The number of waiting jobs of a queue, in all waiting states. */
  waitingIn(queue: string): number {
    let waiting = 0;
    for (const { states } of this.#queues.get(queue)?.types.values() ?? [])
      waiting += states.available + states.pending + states.scheduled + states.retryable;
    return waiting;
  }

  live(limit: number, tenant: string | undefined): LiveCount[] {
    const counts: LiveCount[] = [];
    for (const { name, types } of this.#queuesOf(tenant)) {
      for (const { type, states } of types.values()) {
        for (const state of JOB_STATES) {
          if (counts.length === limit) return counts;
          const count = states[state];
          if (count > 0 && !isTerminal(state)) counts.push({ queue: name, type, state, count });
        }
      }
    }
    return counts;
  }

  /** Counts the jobs of a line before a position, up to `most`. */
  ahead(line: Line | FairLine, { rank, id }: Pick<JobRow, "rank" | "id">, most: number): number {
    const entries = this.#entriesOf(line, rank);
    let count = 0;
    for (const { row } of entries) {
      if (count >= most || row.rank > rank || (row.rank === rank && row.id >= id)) break;
      count += 1;
    }
    return count;
  }

  #entriesOf(line: Line | FairLine, rank: Rank): Iterable<JobEntry> {
    if ("limitKey" in line) return this.limits.waiting(line.limitKey);
    const index = this.#queues.get(line.queue);
    if ("fairKey" in line) return index?.fair?.jobs(priorityRank(rank), line.fairKey) ?? [];
    return index?.ready.from(() => false) ?? [];
  }

  /** What waits of each fair key. */
  shares(queue: string, limit: number, most: number): ShareRow[] {
    const fair = this.#queues.get(queue)?.fair;
    const found: ShareRow[] = [];
    for (const rank of fair?.priorities() ?? []) {
      for (const { key, jobs, size } of fair?.keys(rank, "") ?? []) {
        if (found.length === limit) return found;
        const first = jobs.from(() => false).next().value as JobEntry;
        found.push({ key, rank: first.row.rank, waiting: Math.min(size, most) });
      }
    }
    return found;
  }

  /** Active jobs that hold a slot of a limit, or of their queue. */
  holding(line: Line, limit: number): JobRow[] {
    if ("limitKey" in line) return this.ofLimit(line.limitKey, "active", limit);
    const found: JobRow[] = [];
    for (const { row } of this.#jobs.values()) {
      if (found.length === limit) break;
      if (row.state === "active" && row.limitKey !== null && row.queue === line.queue) found.push(row);
    }
    return found;
  }

  #queuesOf(tenant: string | undefined): QueueIndex[] {
    const { from, to } = namesOf(tenant);
    return [...this.#queues.values()].filter(({ name }) => name >= from && name < to);
  }

  hasReady(queue: string): boolean {
    return this.#queues.get(queue)?.ready.isEmpty === false;
  }

  /** Names of queues with available jobs. */
  readyQueues(after: string | null, limit: number): string[] {
    const from = after ?? namesOf(undefined).from;
    const names = [...this.#queues.values()].filter(({ ready }) => !ready.isEmpty).map(({ name }) => name);
    return names
      .filter((name) => name > from)
      .sort(compareText)
      .slice(0, limit);
  }

  /** The available job of each queue that became due first. Jumps from one priority to the next. */
  oldestReady(limit: number, tenant: string | undefined): ReadyJob[] {
    const waiting = this.#queuesOf(tenant).filter(({ ready }) => !ready.isEmpty);
    const sorted = waiting.sort((a, b) => compareText(a.name, b.name)).slice(0, limit);
    return sorted.map(({ ready }) => {
      let oldest: JobRow | undefined;
      for (let from = 0; ; ) {
        const next = ready.from(({ row }) => row.rank < from).next();
        if (next.done) break;
        const { row } = next.value;
        if (!oldest || dueAtOf(row.rank) < dueAtOf(oldest.rank)) oldest = row;
        from = nextPriorityRank(row.rank);
      }
      const { queue, id, rank, createdAt } = oldest as JobRow;
      return { queue, id, rank, createdAt };
    });
  }

  #enter(entry: JobEntry): void {
    const { row, queue, depth, uniqueKey } = entry;
    depth.states[row.state] += 1;
    if (row.deadLetter) queue.space.deadLetters.add(entry);
    if (row.state === "available") {
      queue.ready.add(entry);
      if (row.fairKey !== null) {
        queue.fair ??= new FairTable(compareRank);
        queue.fair.add(entry);
      }
    }
    if (row.limitKey !== null) this.limits.enter(entry, row.limitKey);
    const dueAt = isTerminal(row.state) ? row.pruneAt : row.wakeAt;
    if (dueAt !== null) this.#heapOf(row).add(entry, dueAt);
    if (uniqueKey !== null) this.#holdKey(entry, uniqueKey);
  }

  #leave(entry: JobEntry): void {
    const { row, queue } = entry;
    if (row.state === "available") this.#leaveReady(entry);
    if (row.deadLetter) queue.space.deadLetters.remove(entry);
    this.#leaveHeap(entry);
  }

  #leaveReady(entry: JobEntry): void {
    entry.queue.ready.remove(entry);
    if (entry.row.fairKey !== null) entry.queue.fair?.remove(entry);
  }

  /** Removes a job from all indexes except the ready list, from which a claim has just taken it. */
  #leaveHeap(entry: JobEntry): void {
    const { row } = entry;
    entry.depth.states[row.state] -= 1;
    if (row.limitKey !== null) this.limits.leave(entry, row.limitKey);
    if (entry.slot >= 0) this.#heapOf(entry.row).remove(entry);
  }

  /** Unique keys that live jobs hold, sorted. */
  holders(after: string | null, limit: number): KeyHolder[] {
    return [...this.#uniqueKeys]
      .filter(([key]) => key > (after ?? namesOf(undefined).from))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([key, { row }]) => ({ key, job: row.id }));
  }

  /** A live job holds its key, and a finished one does not. A revived job loses the key if another job holds it. */
  #holdKey(entry: JobEntry, key: string): void {
    const holder = this.#uniqueKeys.get(key);
    if (isTerminal(entry.row.state)) this.#freeKey(entry, key);
    else if (holder === undefined) this.#uniqueKeys.set(key, entry);
    else if (holder !== entry) entry.uniqueKey = null;
  }

  #freeKey(entry: JobEntry, key: string): void {
    if (this.#uniqueKeys.get(key) === entry) this.#uniqueKeys.delete(key);
  }

  #heapOf(row: JobRow): DueHeap<JobEntry> {
    if (isTerminal(row.state)) return this.#prunable;
    return row.wake === "ready" ? this.#promotable : this.#undecided;
  }

  #spaceOf(tenant: string): Space {
    let space = this.#spaces.get(tenant);
    if (!space) {
      const byId = new SortedList<JobEntry>((a, b) => compareText(a.row.id, b.row.id));
      space = { byId, deadLetters: new SortedList<JobEntry>(compareEnd) };
      this.#spaces.set(tenant, space);
    }
    return space;
  }

  #queueOf(name: string): QueueIndex {
    let index = this.#queues.get(name);
    if (!index) {
      const space = this.#spaceOf(tenantOf(name) ?? "");
      index = { name, space, size: 0, ready: new SortedList(compareRank), fair: undefined, types: new Map() };
      this.#queues.set(name, index);
    }
    return index;
  }
}

function depthOf(queue: QueueIndex, type: string): TypeDepth {
  let depth = queue.types.get(type);
  if (!depth) {
    depth = { type, size: 0, states: noJobs() };
    queue.types.set(type, depth);
  }
  return depth;
}

/** The promised order of claims. */
function compareRank(a: JobEntry, b: JobEntry): number {
  return a.row.rank - b.row.rank || compareText(a.row.id, b.row.id);
}

/** The order in which dead letters are scanned. */
function compareEnd(a: JobEntry, b: JobEntry): number {
  return comparePosition(a.row, scanCursorOf(b.row, true));
}

function comparePosition(row: JobRow, { id, at }: ScanCursor): number {
  return (at === null ? 0 : (row.finishedAt ?? 0) - at) || compareText(row.id, id);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
