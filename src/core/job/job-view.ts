import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";
import { type ProgressNote, progressOf } from "./documents/job-progress.ts";
import { visibleRow } from "./documents/redaction.ts";
import { dueAtOf, type ErrorRecord, type JobId, type JobRow, type JobState, type JsonText } from "./job.ts";

/**
 * A job as users see it: documents are values, and every instant is in epoch milliseconds. Its fields are what was stored.
 * What is printed of it (`console.log`, `JSON.stringify`) is redacted.
 */
export interface Job<Result = Json> {
  readonly id: JobId;
  readonly type: string;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  /** What was enqueued. Like every document, it is parsed when it is first read. */
  readonly payload: Json;
  readonly meta: { readonly [key: string]: Json };
  /** What the handler returned; undefined for a job that is not completed or returned nothing. */
  readonly result: Result | undefined;
  /** What the attempt last reported: `value` is from 0 to 1. Null if it reported nothing. */
  readonly progress: ProgressNote | null;
  /** The state that the next attempt begins with; undefined if none was saved. */
  readonly checkpoint: Json | undefined;
  /** The errors that are kept of failed attempts, the last one at the end. */
  readonly errors: readonly ErrorRecord[];
  /** Attempts that have started since the job was enqueued, or since it was retried by hand. */
  readonly attempt: number;
  /** The worker that last claimed it. */
  readonly worker: string | null;
  /** The workflow that it is a step of. */
  readonly workflow: string | null;
  /** Whether it failed for good and is kept for a person to look at. */
  readonly deadLetter: boolean;
  readonly createdAt: Instant;
  /** From when it may start. */
  readonly dueAt: Instant;
  /** When its attempt started: the running one, or the one that it ended with. */
  readonly startedAt: Instant | null;
  readonly finishedAt: Instant | null;
  /** When it may be deleted; null for a job that has not ended and for a dead letter that is kept without end. */
  readonly pruneAt: Instant | null;
  /** When its timeouts end; null where it has none, and for `soft` and `hard` while no attempt runs. */
  readonly deadlines: {
    readonly wait: Instant | null;
    readonly total: Instant | null;
    readonly soft: Instant | null;
    readonly hard: Instant | null;
  };
}

/** Node prints what this gives instead of getters. The name is Node's own, and known without importing it. */
const PRINTED = Symbol.for("nodejs.util.inspect.custom");

/** The view of a row. Nothing is parsed before it is read, because payloads may be large, and nothing twice. */
export function jobView<Result = Json>(row: JobRow): Job<Result> {
  const { options } = row;
  const payload = parsedOnce(row.payload);
  const result = parsedOnce(row.result);
  const checkpoint = parsedOnce(row.checkpoint);
  let progress: ProgressNote | null | undefined;
  const view: Job<Result> = {
    id: row.id,
    type: row.type,
    queue: row.queue,
    state: row.state,
    priority: row.priority,
    get payload() {
      return payload() as Json;
    },
    meta: options?.meta ?? {},
    get result() {
      return result() as Result | undefined;
    },
    get progress() {
      progress ??= progressOf(row);
      return progress;
    },
    get checkpoint() {
      return checkpoint();
    },
    errors: row.errors ?? [],
    attempt: row.attempt,
    worker: row.policy?.worker ?? row.worker,
    workflow: row.workflow,
    deadLetter: row.deadLetter,
    createdAt: row.createdAt,
    dueAt: dueAtOf(row.rank),
    startedAt: row.startedAt,
    finishedAt: row.finishedAt,
    pruneAt: row.pruneAt,
    deadlines: { wait: row.waitAt, total: row.totalAt, soft: row.softAt, hard: row.hardAt },
  };
  if (options?.redact === undefined)
    return Object.defineProperty(view, PRINTED, { value: () => ({ ...view }) });
  const shown = () => ({ ...view, ...visibleDocuments(row) });
  return Object.defineProperties(view, { [PRINTED]: { value: shown }, toJSON: { value: shown } });
}

function visibleDocuments(row: JobRow) {
  const { payload, result, checkpoint, options } = visibleRow(row);
  return {
    payload: JSON.parse(payload) as Json,
    meta: options?.meta ?? {},
    result: parsedOnce(result)(),
    checkpoint: parsedOnce(checkpoint)(),
  };
}

/** A document that is parsed when it is first asked for; undefined if there is none. */
function parsedOnce(text: JsonText | null): () => Json | undefined {
  let value: Json | undefined;
  let isParsed = text === null;
  return () => {
    if (!isParsed) value = JSON.parse(text as JsonText) as Json;
    isParsed = true;
    return value;
  };
}
