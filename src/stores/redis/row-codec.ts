import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobDocuments } from "../../core/job/job.ts";
import { type JobImage, type JobRow, priorityOf } from "../../core/job/job.ts";
import { parseOptions } from "../sql/options-codec.ts";
import { parsePolicy } from "../sql/policy-codec.ts";
import { documentChange, newOptionsText, STATE_CODES, stateOf, WAKE_CODES } from "../sql/row-codec.ts";
import { encodeAll, type Packed, type Reader, type Unpacked } from "./codec.ts";
import type { EventHeads } from "./event-heads.ts";

/*
 * A job is a hash. Its field `i` has everything small, one value after the other, in the order below, which lua/base.ts repeats. The documents
 * have fields of their own, so that a write of the row does not copy a large payload.
 */

function imageValues(image: JobImage): Packed[] {
  return [
    STATE_CODES[image.state],
    WAKE_CODES[image.wake],
    image.wakeAt,
    image.rank,
    image.attempt,
    image.returns,
    image.expiredClaims,
    image.waitAt,
    image.totalAt,
    image.startedAt,
    image.softAt,
    image.hardAt,
    image.stallAt,
    image.heartbeat,
    image.finishedAt,
    image.pruneAt,
    image.deadLetter ? 1 : 0,
  ];
}

export { imageValues };

/** The row of a new job, encoded. Jobs that are enqueued together mostly have the same, and the server reads it once. */
class RowTexts {
  #last: NewJob | undefined;
  #bytes: Buffer | undefined;

  of(job: NewJob): Buffer {
    if (this.#last && this.#bytes && isAlike(this.#last, job)) return this.#bytes;
    this.#last = job;
    this.#bytes = encodeAll([
      job.queue,
      job.type,
      job.createdAt,
      job.workflow,
      job.fairKey,
      job.uniqueKey,
      job.limitKey,
      job.fence ?? 0,
      0,
      null,
      null,
      job.needs ?? 0,
      ...imageValues(job.image),
    ]);
    return this.#bytes;
  }
}

function isAlike(a: NewJob, b: NewJob): boolean {
  return (
    (a.image === b.image || isSameImage(a.image, b.image)) &&
    a.queue === b.queue &&
    a.type === b.type &&
    a.createdAt === b.createdAt &&
    a.workflow === b.workflow &&
    a.fairKey === b.fairKey &&
    a.uniqueKey === b.uniqueKey &&
    a.limitKey === b.limitKey &&
    (a.fence ?? 0) === (b.fence ?? 0) &&
    (a.needs ?? 0) === (b.needs ?? 0)
  );
}

function isSameImage(a: JobImage, b: JobImage): boolean {
  const [values, others] = [imageValues(a), imageValues(b)];
  return values.every((value, index) => value === others[index]);
}

/** New jobs as `insert` in lua/jobs.ts takes them. */
export class NewJobs {
  readonly #texts = new RowTexts();
  readonly #heads: EventHeads;

  constructor(heads: EventHeads) {
    this.#heads = heads;
  }

  encode(job: NewJob): Packed {
    const event = job.records && this.#heads.item(job.records);
    const text = this.#texts.of(job);
    if (!event) return [job.id, text, job.payload, newOptionsText(job)];
    return [job.id, text, job.payload, newOptionsText(job), ...event];
  }
}

/** The field of each document. */
const DOCUMENT_FIELDS = {
  options: "o",
  policy: "y",
  errors: "e",
  progress: "g",
  checkpoint: "k",
  result: "r",
} as const satisfies Record<keyof JobDocuments, string>;

/** The documents to write, as field and text; null clears one. */
export function documentValues(documents: JobDocuments | undefined): Packed[] {
  if (!documents) return [];
  const values: Packed[] = [];
  for (const name of Object.keys(DOCUMENT_FIELDS) as (keyof JobDocuments)[]) {
    const text = documentChange(documents, name);
    if (text !== null) values.push(DOCUMENT_FIELDS[name], text === "" ? null : text);
  }
  return values;
}

/** The number of small values. */
const ROW_LENGTH = 29;

type Maybe<Value> = Value | null;
type Text = Maybe<string>;
type Number_ = Maybe<number>;

/** Reads the next job of an answer; null if the list says that there is none. */
export function readJob(reader: Reader): JobRow | null {
  const queue = reader.read();
  if (queue === null) return null;
  const row: Unpacked[] = [queue];
  for (let at = 1; at < ROW_LENGTH; at++) row.push(reader.read());
  const id = reader.read() as string;
  const payload = reader.read() as string;
  const options = parseOptionsText(reader.read() as Text) as JobRow["options"];
  const policy = parsePolicyText(reader.read() as Text) as JobRow["policy"];
  const errors = reader.read() as Text;
  return {
    id,
    queue: row[0] as string,
    type: row[1] as string,
    priority: priorityOf(row[15] as number),
    fence: row[7] as number,
    rev: row[8] as number,
    createdAt: row[2] as number,
    claimedAt: row[9] as Number_,
    worker: row[10] as Text,
    needs: row[11] as number,
    workflow: row[3] as Text,
    limitKey: row[6] as Text,
    fairKey: row[4] as Text,
    payload,
    options,
    policy,
    errors: errors === null ? null : (JSON.parse(errors) as JobRow["errors"]),
    progress: reader.read() as Text,
    checkpoint: reader.read() as Text,
    result: reader.read() as Text,
    state: stateOf(row[12]),
    wake: row[13] === WAKE_CODES.ready ? "ready" : "decide",
    wakeAt: row[14] as Number_,
    rank: row[15] as number,
    attempt: row[16] as number,
    returns: row[17] as number,
    expiredClaims: row[18] as number,
    waitAt: row[19] as Number_,
    totalAt: row[20] as Number_,
    startedAt: row[21] as Number_,
    softAt: row[22] as Number_,
    hardAt: row[23] as Number_,
    stallAt: row[24] as Number_,
    heartbeat: row[25] as Number_,
    finishedAt: row[26] as Number_,
    pruneAt: row[27] as Number_,
    deadLetter: row[28] === 1,
  };
}

/** All jobs that an answer still has. */
export function readJobs(reader: Reader): JobRow[] {
  const rows: JobRow[] = [];
  while (!reader.isAtEnd) rows.push(readJob(reader) as JobRow);
  return rows;
}

const parseOptionsText = rememberingParser(parseOptions);
const parsePolicyText = rememberingParser(parsePolicy);

/** Jobs of one definition have equal texts, and rows are never changed. So consecutive rows share the parsed value. */
function rememberingParser(parse: (text: string) => unknown): (text: Text) => unknown {
  let lastText: Text = null;
  let lastValue: unknown = null;
  return (text) => {
    if (text === lastText) return lastValue;
    lastValue = text === null ? null : parse(text);
    lastText = text;
    return lastValue;
  };
}
