import { BRIEF_PROGRESS } from "../../core/job/documents/brief-row.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import {
  type JobDocuments,
  type JobOptions,
  type JobRow,
  type JobState,
  type Policy,
  priorityOf,
  type Wake,
} from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { RecordRow } from "../../ports/store.ts";
import { optionsText, parseOptions } from "./options-codec.ts";
import { parsePolicy, policyText } from "./policy-codec.ts";

/** The code of each state in SQL stores. The numbers are on disk: add new ones, never change one. */
export const STATE_CODES: Readonly<Record<JobState, number>> = {
  pending: 0,
  available: 1,
  active: 2,
  scheduled: 3,
  retryable: 4,
  completed: 5,
  cancelled: 6,
  discarded: 7,
};

const STATES = Object.entries(STATE_CODES).reduce<JobState[]>((states, [state, code]) => {
  states[code] = state as JobState;
  return states;
}, []);

export function stateOf(code: unknown): JobState {
  return STATES[code as number] as JobState;
}

/** The code of each `wake` in SQL stores. */
export const WAKE_CODES: Readonly<Record<Wake, number>> = { decide: 0, ready: 1 };

/** What a write may say about the documents of a job, in this order. */
export const DOCUMENT_COLUMNS = ["options", "policy", "errors", "progress", "checkpoint", "result"] as const;

/** What an image writes, in this order. A finished job has `END_COLUMNS` too. */
export const IMAGE_COLUMNS = [
  "state",
  "wake",
  "wake_at",
  "rank",
  "attempt",
  "returns",
  "expired_claims",
  "wait_at",
  "total_at",
  "started_at",
  "soft_at",
  "hard_at",
  "stall_at",
  "heartbeat",
] as const;

/** The columns that live and finished jobs have in common, in the order in which `decodeJob` reads them. */
export const JOB_COLUMNS = [
  "id",
  "queue",
  "type",
  "priority",
  "fence",
  "rev",
  "created_at",
  "claimed_at",
  "worker",
  "needs",
  "workflow",
  "limit_key",
  "payload",
  ...DOCUMENT_COLUMNS,
  ...IMAGE_COLUMNS,
  "fair_key",
] as const;

/** The columns that only finished jobs have; a live job has null, null, 0. They follow `JOB_COLUMNS` in a row. */
export const END_COLUMNS = ["finished_at", "prune_at", "dead_letter"] as const;

const BRIEF: Readonly<Record<string, string>> = {
  payload: "'null'",
  progress: `case when progress is null then null else '${BRIEF_PROGRESS}' end`,
  checkpoint: "null",
  result: "null",
};

/** A list of columns with the documents of a brief row. */
export function briefColumns(columns: string): string {
  return columns.replace(/\b(payload|progress|checkpoint|result)\b/g, (name) => BRIEF[name] as string);
}

/** A row from a driver: values by position, because an object per row would cost twice. */
export type SqlRow = readonly unknown[];

type Maybe<Value> = Value | null;

/** A job from a row of `JOB_COLUMNS` and `END_COLUMNS`. */
export function decodeJob(row: SqlRow): JobRow {
  return {
    id: row[0] as string,
    queue: row[1] as string,
    type: row[2] as string,
    priority: priorityOf(row[22] as number),
    fence: row[4] as number,
    rev: row[5] as number,
    createdAt: row[6] as number,
    claimedAt: row[7] as Maybe<number>,
    worker: row[8] as Maybe<string>,
    needs: row[9] as number,
    workflow: row[10] as Maybe<string>,
    limitKey: row[11] as Maybe<string>,
    fairKey: row[33] as Maybe<string>,
    payload: row[12] as string,
    options: optionsParser(row[13]) as JobRow["options"],
    policy: policyParser(row[14]) as JobRow["policy"],
    errors: row[15] === null ? null : (JSON.parse(row[15] as string) as JobRow["errors"]),
    progress: row[16] as Maybe<string>,
    checkpoint: row[17] as Maybe<string>,
    result: row[18] as Maybe<string>,
    state: stateOf(row[19]),
    wake: row[20] === WAKE_CODES.ready ? "ready" : "decide",
    wakeAt: row[21] as Maybe<number>,
    rank: row[22] as number,
    attempt: row[23] as number,
    returns: row[24] as number,
    expiredClaims: row[25] as number,
    waitAt: row[26] as Maybe<number>,
    totalAt: row[27] as Maybe<number>,
    startedAt: row[28] as Maybe<number>,
    softAt: row[29] as Maybe<number>,
    hardAt: row[30] as Maybe<number>,
    stallAt: row[31] as Maybe<number>,
    heartbeat: row[32] as Maybe<number>,
    finishedAt: row[34] as Maybe<number>,
    pruneAt: row[35] as Maybe<number>,
    deadLetter: row[36] === 1,
  };
}

export const optionsParser = rememberingParser(parseOptions);
export const policyParser = rememberingParser(parsePolicy);

/** Jobs of one definition have equal texts, and rows are never changed. So consecutive rows share the parsed value. */
function rememberingParser(parse: (text: string) => unknown): (text: unknown) => unknown {
  let lastText: unknown = null;
  let lastValue: unknown = null;
  return (text) => {
    if (text === lastText) return lastValue;
    lastValue = text === null ? null : parse(text as string);
    lastText = text;
    return lastValue;
  };
}

/** A record from the columns kind, key, version, wake_at, body. */
export function decodeRecord(row: SqlRow): RecordRow {
  return {
    key: [row[0] as string, row[1] as string],
    version: row[2] as number,
    wakeAt: row[3] as Maybe<number>,
    body: JSON.parse(row[4] as string) as Json,
  };
}

/** The value that clears a document. No JSON text is empty. */
const CLEARED = "";

/**
 * The value to write for one document: null keeps the old one, the empty text clears it, otherwise its JSON text.
 * Statements write `nullif(coalesce(new, old), '')`.
 */
export function documentChange(documents: JobDocuments | undefined, name: keyof JobDocuments): string | null {
  const value = documents?.[name];
  if (value === undefined) return null;
  if (value === null) return CLEARED;
  if (typeof value === "string") return value;
  if (name === "options") return optionsText(value as JobOptions);
  return name === "policy" ? policyText(value as Policy) : JSON.stringify(value);
}

export function newOptionsText({ options }: NewJob): string | null {
  return options === null ? null : optionsText(options);
}

/** What `INSERT_ALIKE` of both stores takes once for all its jobs, in its order: they differ only in id and payload. */
export function alikeColumns(job: NewJob): (string | number | null)[] {
  const { image } = job;
  return [
    image.rank,
    job.queue,
    job.type,
    STATE_CODES[image.state],
    job.priority,
    job.createdAt,
    WAKE_CODES[image.wake],
    image.wakeAt,
    image.waitAt,
    image.totalAt,
    image.heartbeat,
    newOptionsText(job),
    job.fairKey ?? null,
  ];
}
