import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { isStoppedState, workerOfRecord } from "../../core/worker/worker-report.ts";
import type { Effect, RecordRow } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import type { EngineEvents, WorkerDetail } from "../events/event-bus.ts";
import { workerEvent } from "../events/recording-rules.ts";
import { remoteName, WORKERS, type WorkerBody } from "../worker/worker-record.ts";

/** What an operator asks of a worker. The worker gets it with the reply to its next beat. */
export type WorkerDirective = "quiet" | "terminate";

/** What a remote worker sent about itself, and when. */
export interface RemoteWorker {
  readonly id: string;
  readonly seenAt: Instant;
  readonly state: string;
  readonly running: number;
  readonly directive?: WorkerDirective;
  readonly about?: { readonly [key: string]: Json };
}

/** A worker of any kind, as an operator sees it. */
export interface WorkerView extends RemoteWorker {
  /** Whether it talks to a server; other workers are in processes that have the store open. */
  readonly isRemote: boolean;
}

/** A directive is a record of its own, because every beat overwrites the worker's record. */
export const DIRECTIVES = recordKind<{ readonly directive: WorkerDirective }>("directive");

const CACHED_FOR = 5_000;
const MOST_CACHED = 10_000;
/** Longer than any rolling restart. If the worker is gone, the directive is deleted when its name comes back. */
const DIRECTED_FOR = 30 * 24 * 3_600_000;
/** A live worker beats more often than this. */
const STALE_AFTER = 30_000;
const MOST_LISTED = 10_000;

interface CachedWorker {
  readonly worker: RemoteWorker | null;
  readonly until: number;
}

/**
 * Remote workers by their records in the store, so that every server sees the same. They choose their names themselves. A
 * prefix keeps these names apart from the ids of local workers.
 */
export class RemoteWorkers {
  readonly #context: EngineContext;
  readonly #cache = new Map<string, CachedWorker>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  static bodyOf(worker: RemoteWorker): Json {
    const { id: _id, directive: _directive, about, ...rest } = worker;
    return { ...rest, remote: true, ...(about && { about }) };
  }

  /** The worker, at most `CACHED_FOR` old, so that most fetches need no read. */
  async find(id: string): Promise<RemoteWorker | null> {
    const cached = this.#cache.get(id);
    if (cached && cached.until > this.#context.system.monotonic()) return cached.worker;
    return this.load(id);
  }

  async load(id: string): Promise<RemoteWorker | null> {
    const name = remoteName(id);
    const [record, order] = await this.#context.store.records.load([WORKERS.key(name), DIRECTIVES.key(name)]);
    // A directive for an earlier worker of that name does not apply to this one.
    if (!record && order) await this.#drop(order);
    const directive = order ? DIRECTIVES.read(order).body : undefined;
    const worker = record ? viewOf(WORKERS.read(record), directive) : null;
    this.#store(id, worker, this.#context.system.monotonic() + CACHED_FOR);
    return worker;
  }

  /** Caches what a worker just sent. Keeps the time of the next read, which may find a new directive. */
  learn(id: string, worker: RemoteWorker): void {
    this.#store(id, worker, this.#cache.get(id)?.until ?? this.#context.system.monotonic() + CACHED_FOR);
  }

  #store(id: string, worker: RemoteWorker | null, until: number): void {
    if (this.#cache.size >= MOST_CACHED) this.#cache.clear();
    this.#cache.set(id, { worker, until });
  }

  /**
   * Announces a new worker, and one that started or stopped taking jobs. Reads the store first, because another server may
   * have announced it already. A worker without a name is not announced.
   */
  async announceChange(worker: RemoteWorker, before: RemoteWorker | null): Promise<void> {
    const isSame = before && RemoteWorkers.isStopped(before) === RemoteWorkers.isStopped(worker);
    if (isSame || worker.id === "") return;
    const stored = await this.load(worker.id);
    if (!stored) this.#announce("worker.started", worker);
    if (RemoteWorkers.isStopped(worker) !== (stored !== null && RemoteWorkers.isStopped(stored)))
      this.#announce(RemoteWorkers.isStopped(worker) ? "worker.quiet" : "worker.resumed", worker);
  }

  #announce(name: WorkerDetail["name"], worker: RemoteWorker, reason?: string): void {
    const { bus, clock } = this.#context;
    if (bus.wants(name)) bus.emit(workerDetail(name, worker, clock.now(), reason));
  }

  async #drop({ key, version }: RecordRow): Promise<void> {
    await commitUnits(this.#context, [{ when: [{ record: key, version }], effects: [{ delete: key }] }]);
  }

  async mayFetch(id: string): Promise<boolean> {
    const worker = await this.find(id);
    return worker === null || !RemoteWorkers.isStopped(worker);
  }

  static isStopped({ state, directive }: RemoteWorker): boolean {
    return isStoppedState(state) || directive !== undefined;
  }

  /** Whether the last beat is so old that the worker is most likely gone. */
  static isStale({ seenAt }: RemoteWorker, now: Instant): boolean {
    return now - seenAt > STALE_AFTER;
  }

  /** Local and remote workers by name, at most 10,000. */
  async list(): Promise<WorkerView[]> {
    const { store } = this.#context;
    const orders = await DIRECTIVES.all(store, MOST_LISTED);
    const workers = await WORKERS.all(store, MOST_LISTED);
    return Array.from(workers.values(), (worker) => viewOf(worker, orders.get(worker.name)?.body));
  }

  /** A local or remote worker by its name, or null. */
  async view(id: string): Promise<WorkerView | null> {
    const remote = await this.load(id);
    if (remote) return { ...remote, isRemote: true };
    const record = await WORKERS.load(this.#context.store, id);
    return record && !workerOfRecord(id).isRemote ? viewOf(record, undefined) : null;
  }

  /** Tells a remote worker, with its next beat, to take no more jobs or to end. Null lets it work again. */
  async direct(id: string, directive: WorkerDirective | null, by?: By): Promise<WorkerView> {
    const worker = await this.#remote(id, directive ?? "resume");
    const now = this.#context.clock.now();
    const name = remoteName(id);
    await this.#commit(`worker.${directive ?? "resume"}`, id, by, [
      directive === null ? DIRECTIVES.remove(name) : DIRECTIVES.put(name, { directive }, now + DIRECTED_FOR),
    ]);
    const { directive: _before, ...rest } = worker;
    const directed = directive === null ? rest : { ...rest, directive };
    this.#store(id, directed, this.#context.system.monotonic() + CACHED_FOR);
    const [wasStopped, isStopped] = [RemoteWorkers.isStopped(worker), RemoteWorkers.isStopped(directed)];
    if (wasStopped !== isStopped)
      this.#announce(isStopped ? "worker.quiet" : "worker.resumed", directed, "operator");
    return directed;
  }

  /**
   * Deletes a remote worker that is stopped or silent. Its jobs end at their own deadlines. If the worker beats again, it
   * gets a new record.
   */
  async forget(id: string, by?: By): Promise<void> {
    const worker = await this.#remote(id, "deregister");
    if (!RemoteWorkers.isStale(worker, this.#context.clock.now()) && !RemoteWorkers.isStopped(worker))
      throw new CurfewError(
        "invalid_state",
        `deregister: worker "${id}" is alive; quiet it first, or wait until it has been silent for ${STALE_AFTER / 1_000} s`,
      );
    const name = remoteName(id);
    const { recorder, bus, clock } = this.#context;
    const end = workerDetail("worker.stopped", worker, clock.now(), "operator");
    await this.#commit("worker.deregister", id, by, [
      WORKERS.remove(name),
      DIRECTIVES.remove(name),
      ...recorder.kept(workerEvent(end)),
    ]);
    this.#cache.delete(id);
    bus.emit(end);
  }

  async #commit(action: string, id: string, by: By | undefined, effects: readonly Effect[]): Promise<void> {
    const now = this.#context.clock.now();
    const entry = auditEffects(this.#context, by && parseBy(by), action, { details: { worker: id } }, now);
    await commitUnits(this.#context, [{ effects: [...effects, ...entry] }]);
  }

  async #remote(id: string, action: string): Promise<WorkerView> {
    const worker = await this.view(id);
    if (!worker)
      throw new CurfewError(
        "not_found",
        `${action}: worker "${id}" not found; it never beat, or its record is deleted`,
      );
    if (worker.isRemote) return worker;
    throw new CurfewError(
      "invalid_state",
      `${action}: worker "${id}" is not a remote worker; stop its process instead`,
    );
  }
}

/** The fields of an event about a worker. */
function workerDetail<Name extends WorkerDetail["name"]>(
  name: Name,
  { id, about }: RemoteWorker,
  at: Instant,
  reason?: string,
): WorkerDetail & { readonly name: Name } {
  const queues = Array.isArray(about?.queues) ? (about.queues as readonly string[]) : undefined;
  return {
    name,
    at,
    worker: id,
    remote: true,
    ...(queues && { queues }),
    ...(reason !== undefined && { reason }),
  };
}

/** The event for a silent worker: stopped if it had said that it takes no more jobs, lost otherwise. */
export function silenceOf(record: RecordRow, now: Instant): EngineEvents["worker.lost" | "worker.stopped"] {
  const worker = viewOf(WORKERS.read(record), undefined);
  const { isRemote, seenAt } = worker;
  const name = RemoteWorkers.isStopped(worker) ? "worker.stopped" : "worker.lost";
  const { remote: _remote, ...detail } = workerDetail(name, worker, now);
  return { ...detail, ...(isRemote && { remote: true as const }), seenAt };
}

function viewOf(
  { name, body }: StoredRecord<WorkerBody>,
  order: { readonly directive: WorkerDirective } | undefined,
): WorkerView {
  const directive = order?.directive;
  return {
    ...workerOfRecord(name),
    seenAt: body.seenAt,
    state: body.state ?? "running",
    running: body.running,
    ...(directive && { directive }),
    ...(body.about && { about: body.about }),
    ...(body.queues !== undefined && { about: { queues: body.queues } }),
  };
}
