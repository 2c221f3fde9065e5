import { CurfewError, refuse } from "../core/errors.ts";
import { createIdSource, UUID } from "../core/ids.ts";
import { type EnqueueOptions, preparePayload } from "../core/job/envelope.ts";
import type { JobId, JobRow } from "../core/job/job.ts";
import type { JobDefinition } from "../core/job/job-definition.ts";
import { checkMany } from "../core/job/many.ts";
import type { Why } from "../core/job/why/reason.ts";
import { refuseOldNode } from "../core/node-version.ts";
import type { Duration } from "../core/time.ts";
import type { AttemptParts } from "../engine/context.ts";
import {
  type EngineEvent,
  type EngineEventName,
  type EngineEvents,
  EventBus,
} from "../engine/events/event-bus.ts";
import { type ExtendOptions, parseExtension } from "../engine/operations/operate-job.ts";
import { EngineClock } from "../engine/runtime/engine-clock.ts";
import { type CounterSnapshot, Counters } from "../engine/statistics/counters.ts";
import { QueueWarnings } from "../engine/worker/warn-of-queues.ts";
import type { WorkOptions } from "../engine/worker/work-options.ts";
import { jobPath, PATHS } from "../ojs/paths.ts";
import { type JobSnapshot, object, readSnapshot } from "../ojs/read-job.ts";
import { readWhy } from "../ojs/read-why.ts";
import { checkId, enqueueFields, enqueueText } from "../ojs/write-enqueue.ts";
import { type CheckedOptions, type ClientOptions, checkOptions } from "./client-options.ts";
import { type HandleHost, RemoteJobHandle } from "./remote-job-handle.ts";
import { RemoteWorker } from "./remote-worker.ts";
import { type Reply, type Request, refusalOf, refused, Transport } from "./transport.ts";

type ResultOf<Definition> = Definition extends JobDefinition<unknown, unknown, infer Result> ? Result : never;

/** The most jobs and characters of a batch, within the limits of a server. */
const BATCH_JOBS = 500;
const BATCH_BYTES = 2_000_000;

/** Opens a client of a server. Opening sends no request. */
export function openClient(options: ClientOptions): Client {
  refuseOldNode(process.versions.node);
  return new Client(checkOptions(options));
}

/** A process without a store uses this to enqueue at a server, wait for results and run workers. */
export class Client implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #parts: AttemptParts;
  readonly #clock: EngineClock;
  readonly #nextId: () => JobId;
  readonly #workers = new Set<RemoteWorker>();
  readonly #warnings: QueueWarnings;
  readonly #onClose = new Set<() => void>();
  readonly #host: HandleHost;
  #closing: Promise<void> | undefined;

  constructor(options: CheckedOptions) {
    const { system, logger, documentLimit } = options;
    this.#transport = new Transport(options);
    this.#warnings = new QueueWarnings(system, logger, () => this.#workers);
    this.#clock = EngineClock.unread(system);
    // The machine's clock is good enough for ids.
    this.#nextId = createIdSource(() => system.wall(), system.fill);
    this.#parts = {
      system,
      logger,
      documentLimit,
      clock: this.#clock,
      bus: new EventBus(logger),
      counters: new Counters(),
      enqueueFrom: (parent, definition, payload, more) => this.#enqueue(definition, payload, more, parent),
    };
    this.#host = {
      system,
      load: (id, wait) => this.#load(id, wait),
      cancel: (id) => this.cancel(id),
      extend: (id, limits) => this.extend(id, limits),
      why: (id) => this.why(id),
      onClose: (callback) => {
        this.#onClose.add(callback);
        return () => void this.#onClose.delete(callback);
      },
    };
  }

  /** Adds one job; resolves when it is durable. A known id returns the old job, marked `duplicate`. */
  enqueue<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    ...[payload, options]: undefined extends Input
      ? [payload?: NoInfer<Input>, options?: EnqueueOptions]
      : [payload: NoInfer<Input>, options?: EnqueueOptions]
  ): Promise<RemoteJobHandle<Result>> {
    return this.#enqueue(definition, payload as Input, options, undefined) as Promise<
      RemoteJobHandle<Result>
    >;
  }

  async #enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: Input,
    options: EnqueueOptions | undefined,
    parent: JobRow | undefined,
  ): Promise<RemoteJobHandle<unknown>> {
    // A handler of a draining worker may still enqueue child jobs.
    if (!parent) this.#assertOpen();
    const fields = enqueueFields(definition, options, parent?.id);
    const id = options?.id === undefined ? this.#nextId() : checkId(options.id);
    const text = await preparePayload(definition, payload, this.#parts.documentLimit);
    const body = enqueueText(fields, id, text);
    const reply = await this.#transport.ask({ method: "POST", path: PATHS.jobs, what: "enqueue", body });
    const isKnown = this.#isKnown(reply, "enqueue");
    // Another call came at the same time, and its job stands for this one too.
    if (reply.status === 200) {
      const job = readSnapshot(object(reply.body, "reply").job);
      return new RemoteJobHandle(this.#host, job.id, true);
    }
    // A generated id is known only if an earlier try arrived and its answer was lost.
    return new RemoteJobHandle(this.#host, id, isKnown && options?.id !== undefined);
  }

  /** Adds many jobs of one definition; all payloads are checked before any is sent. */
  async enqueueMany<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payloads: readonly NoInfer<Input>[],
    options?: Omit<EnqueueOptions, "id">,
  ): Promise<RemoteJobHandle<Result>[]> {
    this.#assertOpen();
    checkMany(payloads, options);
    const fields = enqueueFields(definition, options, undefined);
    const texts: string[] = [];
    for (const payload of payloads) {
      const text = preparePayload(definition, payload, this.#parts.documentLimit);
      texts.push(typeof text === "string" ? text : await text);
    }
    const jobs = texts.map((text) => ({ id: this.#nextId(), text }));
    const ids: JobId[] = [];
    for (const batch of batchesOf(jobs.map(({ id, text }) => enqueueText(fields, id, text)))) {
      const body = `{"jobs":[${batch.join(",")}]}`;
      const reply = await this.#transport.ask({
        method: "POST",
        path: PATHS.batch,
        what: "enqueueMany",
        body,
      });
      // A batch is stored as a whole, so a known id means that an earlier try stored it.
      const isKnown = this.#isKnown(reply, "enqueueMany");
      const own = jobs.slice(ids.length, ids.length + batch.length).map(({ id }) => id);
      // Of debounced jobs of one key only the last is stored, and the server names it for all.
      ids.push(...(fields.unique && !isKnown ? idsIn(reply, own) : own));
    }
    return jobs.map(({ id }, index) => {
      const stored = ids[index] ?? id;
      return new RemoteJobHandle<Result>(this.#host, stored, stored !== id);
    });
  }

  /** Whether the id is known. Throws for every other refusal. */
  #isKnown(reply: Reply, what: string): boolean {
    if (reply.status === 200 || reply.status === 201) return false;
    if (reply.status === 409 && refusalOf(reply).code === "duplicate") return true;
    throw refused(what, reply);
  }

  /** A handle on a job that was enqueued elsewhere or earlier. */
  job<Definition extends JobDefinition<unknown, unknown, unknown>>(
    id: JobId,
    _definition?: Definition,
  ): RemoteJobHandle<ResultOf<Definition>> {
    return new RemoteJobHandle(this.#host, id);
  }

  /** The current job, or null. */
  load(id: JobId): Promise<JobSnapshot | null> {
    return this.#load(id);
  }

  async #load(id: JobId, wait?: number): Promise<JobSnapshot | null> {
    const query = wait === undefined ? "" : `?wait_ms=${wait}`;
    const request = { method: "GET", path: `${jobPath(pathId(id))}${query}`, what: "load" } as const;
    const reply = await this.#ask(request);
    if (reply.status === 404) return null;
    return this.#snapshot(request, reply);
  }

  /** Ends a waiting or running job at once. Later writes of its handler are refused (SEMANTICS 5.1). */
  async cancel(id: JobId): Promise<JobSnapshot> {
    const request = { method: "DELETE", path: jobPath(pathId(id)), what: "cancel" } as const;
    const reply = await this.#ask(request);
    if (reply.status === 409 && reply.isRepeated) {
      // An earlier try without an answer may have cancelled it.
      const job = await this.load(id);
      if (job?.state === "cancelled") return job;
    }
    return this.#snapshot(request, reply);
  }

  /** Changes the limits of a waiting or running job (SEMANTICS 5.3). */
  async extend(id: JobId, options: ExtendOptions): Promise<JobSnapshot> {
    const { attempt, total, heartbeat } = parseExtension(options);
    const body = JSON.stringify({
      ...(attempt !== undefined && { timeout_ms: attempt ?? "none" }),
      ...(total !== undefined && { total_timeout_ms: total ?? "none" }),
      ...(heartbeat !== undefined && { heartbeat_timeout_ms: heartbeat ?? "none" }),
    });
    const request = { method: "PATCH", path: jobPath(pathId(id)), what: "extend", body } as const;
    return this.#snapshot(request, await this.#ask(request));
  }

  /** Explains why a job does not run, does not end, or ended. Act on the first reason. */
  async why(id: JobId): Promise<Why> {
    const reply = await this.#ask({ method: "GET", path: `/jobs/${pathId(id)}/why`, what: "why" });
    if (reply.status >= 300) throw refused("why", reply);
    return readWhy(reply.body);
  }

  #ask(request: Request): Promise<Reply> {
    this.#assertOpen();
    return this.#transport.ask(request);
  }

  #snapshot({ what }: Request, reply: Reply): JobSnapshot {
    if (reply.status >= 300) throw refused(what, reply);
    return readSnapshot(object(reply.body, "reply").job);
  }

  /** Starts a worker in this process. It fetches jobs from the server. */
  work(options: WorkOptions): RemoteWorker {
    this.#assertOpen();
    const shared = {
      id: this.#nextId(),
      parts: this.#parts,
      clock: this.#clock,
      transport: this.#transport,
    };
    const worker = new RemoteWorker(shared, options, (closed) => this.#workers.delete(closed));
    this.#workers.add(worker);
    this.#warnings.look();
    return worker.start();
  }

  /** Calls back for events of this process's workers. The outcome of jobs is in the server's events. */
  on<Name extends EngineEventName>(name: Name, listener: (event: EngineEvents[Name]) => void): () => void {
    return this.#parts.bus.on(name, listener);
  }

  /** All events of this process, until the signal aborts or the loop ends. */
  events(signal?: AbortSignal): AsyncGenerator<EngineEvent, void, undefined> {
    return this.#parts.bus.stream(signal);
  }

  /** Counts of this process: started attempts, lost and stuck ones, and how late deadlines fired. */
  counters(): CounterSnapshot {
    return this.#parts.counters.snapshot();
  }

  #assertOpen(): void {
    if (this.#closing) throw new CurfewError("closed", "the client is closed; open a new one");
  }

  /** Closes the workers (SEMANTICS 5.2), then everything else. Calling it twice is harmless. */
  close(options: { readonly drain?: Duration } = {}): Promise<void> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  async #close(options: { readonly drain?: Duration }): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.close(options)));
    this.#transport.close();
    for (const callback of [...this.#onClose]) callback();
    this.#parts.bus.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** An id for a path. Other text could become another path. */
function pathId(id: JobId): string {
  if (typeof id !== "string" || !UUID.test(id))
    throw refuse("invalid_option", "id", id, "pass the id of a job, a lower-case UUID");
  return id;
}

function* batchesOf(texts: readonly string[]): Iterable<string[]> {
  let batch: string[] = [];
  let size = 0;
  for (const text of texts) {
    if (batch.length > 0 && (batch.length >= BATCH_JOBS || size + text.length > BATCH_BYTES)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(text);
    size += text.length;
  }
  if (batch.length > 0) yield batch;
}

/** The ids of the jobs in a reply; `own` if it does not have them. */
function idsIn(reply: Reply, own: readonly JobId[]): readonly JobId[] {
  const { jobs } = object(reply.body, "reply");
  if (!Array.isArray(jobs) || jobs.length !== own.length) return own;
  return jobs.map((job) => readSnapshot(job).id);
}
