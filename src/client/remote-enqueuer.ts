import { refuse } from "../core/errors.ts";
import { type EnqueueOptions, preparePayload } from "../core/job/enqueue/envelope.ts";
import type { UniqueOptions } from "../core/job/enqueue/unique-key.ts";
import type { JobId } from "../core/job/job.ts";
import type { AnyDefinition } from "../core/job/job-definition.ts";
import { PATHS } from "../ojs/paths.ts";
import { list, object } from "../ojs/read-job.ts";
import { checkId, enqueueFields, enqueueText, exactOptions, fairFields } from "../ojs/write-enqueue.ts";
import type { Caller } from "./caller.ts";
import { duplicateOf, errorOf } from "./remote-errors.ts";
import { RemoteJobHandle } from "./remote-job-handle.ts";
import { type Reply, refusalOf, type Transport } from "./transport.ts";

/** The most jobs and characters of a batch, within the limits of a server. */
const BATCH_JOBS = 500;
const BATCH_BYTES = 2_000_000;

/** A job that is ready to be sent. */
interface SentJob {
  readonly id: JobId;
  readonly type: string;
  readonly body: string;
  /** Its unique rule may answer with another job. */
  readonly isUnique: boolean;
  /** The caller chose the id. */
  readonly hasOwnId: boolean;
}

/** Adds jobs at the server. An id is made before the first try, so a repeated request never adds a job twice. */
export class RemoteEnqueuer {
  readonly #caller: Caller;
  readonly #transport: Transport;

  constructor(caller: Caller, transport: Transport) {
    this.#caller = caller;
    this.#transport = transport;
  }

  async enqueue(
    definition: AnyDefinition,
    payload: unknown,
    options: EnqueueOptions | undefined,
    parent: JobId | undefined,
  ): Promise<RemoteJobHandle> {
    const fields = enqueueFields(definition, options, parent);
    const id = options?.id === undefined ? this.#caller.nextId() : checkId(options.id);
    const text = await preparePayload(definition, payload, this.#caller.documentLimit);
    const exact = exactOptions(definition, options, payload);
    return this.#send({
      id,
      type: definition.type,
      body: enqueueText(
        { ...fields, ...fairFields(definition, options, payload) },
        id,
        this.#sealed(text, id, exact),
        exact,
      ),
      isUnique: isUnique(exact),
      hasOwnId: options?.id !== undefined,
    });
  }

  /** The server cannot compare what it cannot read, so an encrypted job has a unique key without its payload. */
  #sealed(text: string, id: JobId, exact: object | undefined): string {
    const { sealing } = this.#caller;
    if (!sealing) return text;
    const { unique } = (exact ?? {}) as { readonly unique?: UniqueOptions | false };
    if (unique && unique.key === undefined && unique.payload !== false) {
      const fix = "the server cannot compare encrypted payloads: use unique.key, or enqueue with openEngine";
      throw refuse("not_over_http", "options.unique.payload", "encrypted", fix);
    }
    return sealing.seal(text, id, "payload");
  }

  async #send({ id, type, body, hasOwnId }: SentJob): Promise<RemoteJobHandle> {
    const reply = await this.#transport.ask({ method: "POST", path: PATHS.jobs, what: "enqueue", body });
    if (reply.status === 201) return new RemoteJobHandle(this.#caller, id);
    if (reply.status === 200) return this.#named(id, object(reply.body, "reply").job);
    if (reply.status === 409 && refusalOf(reply).code === "duplicate") {
      const rival = duplicateOf(type, reply);
      // The rival is this very job if an earlier try arrived and its answer was lost.
      if (rival && rival.existing !== id) throw rival;
      return new RemoteJobHandle(this.#caller, id, !rival && hasOwnId);
    }
    throw errorOf("enqueue", reply, id);
  }

  /** The job that the server answered with: this one, or the one that holds its unique key. */
  #named(id: JobId, job: unknown): RemoteJobHandle {
    const known = String(object(job, "job").id);
    return new RemoteJobHandle(this.#caller, known, known !== id);
  }

  async enqueueMany(
    definition: AnyDefinition,
    payloads: readonly unknown[],
    options: EnqueueOptions | undefined,
    prepare: (payload: unknown) => string | Promise<string>,
  ): Promise<RemoteJobHandle[]> {
    const fields = enqueueFields(definition, options, undefined);
    const jobs: SentJob[] = [];
    for (const payload of payloads) {
      const text = prepare(payload);
      const id = this.#caller.nextId();
      const exact = exactOptions(definition, options, payload);
      const own = { ...fields, ...fairFields(definition, options, payload) };
      const sealed = this.#sealed(typeof text === "string" ? text : await text, id, exact);
      const body = enqueueText(own, id, sealed, exact);
      jobs.push({ id, type: definition.type, body, isUnique: isUnique(exact), hasOwnId: false });
    }
    const handles: RemoteJobHandle[] = [];
    for (const batch of batchesOf(jobs)) handles.push(...(await this.#sendBatch(batch)));
    return handles;
  }

  async #sendBatch(jobs: readonly SentJob[]): Promise<RemoteJobHandle[]> {
    const body = `{"jobs":[${jobs.map((job) => job.body).join(",")}]}`;
    const what = "enqueueMany";
    const reply = await this.#transport.ask({ method: "POST", path: PATHS.batch, what, body });
    if (reply.status === 200 || reply.status === 201) return this.#answered(jobs, reply);
    if (reply.status !== 409 || refusalOf(reply).code !== "duplicate")
      throw errorOf(what, reply, jobs[0]?.id);
    // A batch is stored as a whole, so a known id means that an earlier try stored it.
    if (!jobs.some((job) => job.isUnique)) return jobs.map(({ id }) => new RemoteJobHandle(this.#caller, id));
    // Which of them were duplicates, each job says when it is sent again under its id.
    const handles: RemoteJobHandle[] = [];
    for (const job of jobs) handles.push(await this.#again(job));
    return handles;
  }

  #answered(jobs: readonly SentJob[], reply: Reply): RemoteJobHandle[] {
    const made = list(object(reply.body, "reply").jobs, "jobs");
    return jobs.map(({ id }, index) => this.#named(id, made[index]));
  }

  /** A taken key among many jobs is never an error, as on an engine. */
  async #again(job: SentJob): Promise<RemoteJobHandle> {
    try {
      return await this.#send(job);
    } catch (error) {
      const { existing } = error as { readonly existing?: JobId };
      if (existing === undefined) throw error;
      return new RemoteJobHandle(this.#caller, existing, true);
    }
  }
}

function isUnique(exact: object | undefined): boolean {
  return exact !== undefined && "unique" in exact && exact.unique !== false;
}

function* batchesOf(jobs: readonly SentJob[]): Iterable<SentJob[]> {
  let batch: SentJob[] = [];
  let size = 0;
  for (const job of jobs) {
    const { length } = job.body;
    if (batch.length > 0 && (batch.length >= BATCH_JOBS || size + length > BATCH_BYTES)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(job);
    size += length;
  }
  if (batch.length > 0) yield batch;
}
