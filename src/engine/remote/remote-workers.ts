import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { isStoppedState, workerOfRecord } from "../../core/worker/worker-report.ts";
import type { Effect, RecordRow } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind, type StoredRecord } from "../commit/records.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import type { EngineEvents, WorkerDetail } from "../events/event-bus.ts";
import { workerEvent } from "../events/recording-rules.ts";
import { remoteName, WORKERS, type WorkerBody } from "../worker/worker-record.ts";

/** What an operator wants of a worker: told with its next beat. */
export type WorkerDirective = "quiet" | "terminate";

/** What a remote worker says of itself, and when it was last heard of. */
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
  /** Whether it works over the wire; the others live in processes that have the store open. */
  readonly isRemote: boolean;
}

/** A directive is a record of its own, because every beat writes the worker's again. */
export const DIRECTIVES = recordKind<{ readonly directive: WorkerDirective }>("directive");

const KNOWN_FOR = 5_000;
const MOST_KNOWN = 10_000;
/** A directive outlives every rolling restart; one for a worker that is gone is deleted when its name comes back. */
const DIRECTED_FOR = 30 * 24 * 3_600_000;
/** Whoever beats at all beats more often than this. */
const STALE_AFTER = 30_000;
const MOST_LISTED = 10_000;

interface Known {
  readonly worker: RemoteWorker | null;
  readonly until: number;
}

/**
 * Remote workers by their records in the store, so that every server sees the same. Their names are their own, so they
 * live under a prefix and never meet the worker of an engine.
 */
export class RemoteWorkers {
  readonly #parts: EngineContext;
  readonly #known = new Map<string, Known>();

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  static bodyOf(worker: RemoteWorker): Json {
    const { id: _id, directive: _directive, about, ...rest } = worker;
    return { ...rest, remote: true, ...(about && { about }) };
  }

  /** What is known of a worker; a moment old at most, so that a fetch does not cost a read each time. */
  async find(id: string): Promise<RemoteWorker | null> {
    const known = this.#known.get(id);
    if (known && known.until > this.#parts.system.monotonic()) return known.worker;
    return this.load(id);
  }

  async load(id: string): Promise<RemoteWorker | null> {
    const name = remoteName(id);
    const [record, order] = await this.#parts.store.records.load([WORKERS.key(name), DIRECTIVES.key(name)]);
    // What was said to an earlier worker of that name does not bind this one.
    if (!record && order) await this.#drop(order);
    const directive = order ? DIRECTIVES.read(order).body : undefined;
    const worker = record ? viewOf(WORKERS.read(record), directive) : null;
    this.#keep(id, worker, this.#parts.system.monotonic() + KNOWN_FOR);
    return worker;
  }

  /** What a worker said of itself just now. It does not put off the next look at what an operator says about it. */
  learn(id: string, worker: RemoteWorker): void {
    this.#keep(id, worker, this.#known.get(id)?.until ?? this.#parts.system.monotonic() + KNOWN_FOR);
  }

  #keep(id: string, worker: RemoteWorker | null, until: number): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, { worker, until });
  }

  /**
   * Tells of a worker that was not known, and of one that has begun or ceased to take jobs. Before it does so it looks
   * at the store: another server may have told it already. Nothing is told of a worker that gives no name.
   */
  async announceChange(worker: RemoteWorker, before: RemoteWorker | null): Promise<void> {
    const isSame = before && RemoteWorkers.isStopped(before) === RemoteWorkers.isStopped(worker);
    if (isSame || worker.id === "") return;
    const stored = await this.load(worker.id);
    if (!stored) this.#tell("worker.started", worker);
    if (RemoteWorkers.isStopped(worker) !== (stored !== null && RemoteWorkers.isStopped(stored)))
      this.#tell(RemoteWorkers.isStopped(worker) ? "worker.quiet" : "worker.resumed", worker);
  }

  #tell(name: WorkerDetail["name"], worker: RemoteWorker, reason?: string): void {
    const { bus, clock } = this.#parts;
    if (bus.wants(name)) bus.emit(lifeOf(name, worker, clock.now(), reason));
  }

  async #drop({ key, version }: RecordRow): Promise<void> {
    await commitUnits(this.#parts, [{ when: [{ record: key, version }], effects: [{ delete: key }] }]);
  }

  async mayFetch(id: string): Promise<boolean> {
    const worker = await this.find(id);
    return worker === null || !RemoteWorkers.isStopped(worker);
  }

  static isStopped({ state, directive }: RemoteWorker): boolean {
    return isStoppedState(state) || directive !== undefined;
  }

  /** Whether a worker missed so many beats that it is most likely gone. */
  static isStale({ seenAt }: RemoteWorker, now: Instant): boolean {
    return now - seenAt > STALE_AFTER;
  }

  /** Workers of every kind that were heard of lately, by their names; at most 10,000. */
  async list(): Promise<WorkerView[]> {
    const { store } = this.#parts;
    const orders = await DIRECTIVES.all(store, MOST_LISTED);
    const workers = await WORKERS.all(store, MOST_LISTED);
    return Array.from(workers.values(), (worker) => viewOf(worker, orders.get(worker.name)?.body));
  }

  /** One worker of any kind by its name, or null. */
  async view(id: string): Promise<WorkerView | null> {
    const remote = await this.load(id);
    if (remote) return { ...remote, isRemote: true };
    const record = await WORKERS.load(this.#parts.store, id);
    return record && !workerOfRecord(id).isRemote ? viewOf(record, undefined) : null;
  }

  /** Tells a remote worker to take no more jobs, or to end; null lets it work again. It hears of it with its next beat. */
  async direct(id: string, directive: WorkerDirective | null, by?: By): Promise<WorkerView> {
    const worker = await this.#remote(id, directive ?? "resume");
    const now = this.#parts.clock.now();
    const name = remoteName(id);
    await this.#order(`worker.${directive ?? "resume"}`, id, by, [
      directive === null ? DIRECTIVES.remove(name) : DIRECTIVES.put(name, { directive }, now + DIRECTED_FOR),
    ]);
    const { directive: _before, ...rest } = worker;
    const told = directive === null ? rest : { ...rest, directive };
    this.#keep(id, told, this.#parts.system.monotonic() + KNOWN_FOR);
    const [wasStopped, isStopped] = [RemoteWorkers.isStopped(worker), RemoteWorkers.isStopped(told)];
    if (wasStopped !== isStopped) this.#tell(isStopped ? "worker.quiet" : "worker.resumed", told, "operator");
    return told;
  }

  /**
   * Forgets a remote worker that is not heard of any more. The jobs it held are taken back when their own silence is
   * over, as always. One that beats after all is known again.
   */
  async forget(id: string, by?: By): Promise<void> {
    const worker = await this.#remote(id, "deregister");
    if (!RemoteWorkers.isStale(worker, this.#parts.clock.now()) && !RemoteWorkers.isStopped(worker))
      throw new CurfewError(
        "invalid_state",
        `deregister: worker "${id}" is alive; quiet it first, or wait until it has been silent for ${STALE_AFTER / 1_000} s`,
      );
    const name = remoteName(id);
    const { recorder, bus, clock } = this.#parts;
    const end = lifeOf("worker.stopped", worker, clock.now(), "operator");
    await this.#order("worker.deregister", id, by, [
      WORKERS.remove(name),
      DIRECTIVES.remove(name),
      ...recorder.kept(workerEvent(end)),
    ]);
    this.#known.delete(id);
    bus.emit(end);
  }

  async #order(action: string, id: string, by: By | undefined, effects: readonly Effect[]): Promise<void> {
    const now = this.#parts.clock.now();
    const entry = auditEffects(this.#parts, by && parseBy(by), action, { details: { worker: id } }, now);
    await commitUnits(this.#parts, [{ effects: [...effects, ...entry] }]);
  }

  async #remote(id: string, action: string): Promise<WorkerView> {
    const worker = await this.view(id);
    if (!worker) throw new CurfewError("not_found", `${action}: there is no worker "${id}"`);
    if (worker.isRemote) return worker;
    throw new CurfewError(
      "invalid_state",
      `${action}: worker "${id}" is no remote one; stop the process that it lives in`,
    );
  }
}

/** A worker of any kind as an event tells of it. */
function lifeOf<Name extends WorkerDetail["name"]>(
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

/** What the end of a silent worker's record says: one that had said it takes no more jobs has ended as it wanted to. */
export function silenceOf(record: RecordRow, now: Instant): EngineEvents["worker.lost" | "worker.stopped"] {
  const worker = viewOf(WORKERS.read(record), undefined);
  const { isRemote, seenAt } = worker;
  const name = RemoteWorkers.isStopped(worker) ? "worker.stopped" : "worker.lost";
  const { remote: _remote, ...told } = lifeOf(name, worker, now);
  return { ...told, ...(isRemote && { remote: true as const }), seenAt };
}

function viewOf(
  { name, body: said }: StoredRecord<WorkerBody>,
  order: { readonly directive: WorkerDirective } | undefined,
): WorkerView {
  const directive = order?.directive;
  return {
    ...workerOfRecord(name),
    seenAt: said.seenAt,
    state: said.state ?? "running",
    running: said.running,
    ...(directive && { directive }),
    ...(said.about && { about: said.about }),
    ...(said.queues !== undefined && { about: { queues: said.queues } }),
  };
}
