import type { Instant } from "../../time.ts";
import { unstartedImage } from "../decide/unstarted-image.ts";
import type { NewJob } from "../enqueue/envelope.ts";
import { type JobDocuments, type JobImage, type JobOptions, rankOf } from "../job.ts";
import { isTerminal } from "../lifecycle.ts";
import { waitingWake } from "../policy/deadlines.ts";
import type { ParsedLine } from "./job-line.ts";

/** What an import writes: the job, and in a second step what a new job cannot have. */
export interface ImportedJob {
  readonly job: Omit<NewJob, "fence">;
  /** Null if the job alone is everything. */
  readonly completion: { readonly image: JobImage; readonly documents: JobDocuments } | null;
}

/**
 * The job of a line. A job that has documents or has ended is stored as a scheduled job that nothing wakes, and
 * completed in a second write. An import that is killed between the two leaves the mark `importing`, by which the next
 * one finds it. With `inTwoSteps` every job is stored so: the second write can then hold more than the job.
 */
export function importedJob(
  { row, dueAt, uniqueKey }: ParsedLine,
  now: Instant,
  inTwoSteps = false,
): ImportedJob {
  const image = isTerminal(row.state) ? endedImage(row, dueAt) : waitingAgain(row, dueAt, now);
  const documents: JobDocuments = {
    options: row.options,
    policy: row.policy,
    errors: row.errors,
    progress: row.progress,
    checkpoint: row.checkpoint,
    result: row.result,
  };
  const isWhole =
    !inTwoSteps &&
    !isTerminal(row.state) &&
    (row.policy ?? row.errors ?? row.progress ?? row.checkpoint ?? row.result) === null;
  const job = {
    id: row.id,
    hasNewId: false,
    queue: row.queue,
    type: row.type,
    priority: row.priority,
    createdAt: row.createdAt,
    payload: row.payload,
    ...(row.needs > 0 && { needs: row.needs }),
    ...(row.limitKey !== null && { limitKey: row.limitKey }),
    ...(row.fairKey !== null && { fairKey: row.fairKey }),
    ...(uniqueKey !== null && { uniqueKey }),
  };
  if (isWhole) return { job: { ...job, image, options: row.options }, completion: null };
  const options: JobOptions = { ...row.options, importing: true };
  return { job: { ...job, image: unwokenImage(image), options }, completion: { image, documents } };
}

function unwokenImage(image: JobImage): JobImage {
  return unstartedImage({ ...image, state: "scheduled" }, { wake: "decide", wakeAt: null });
}

function endedImage(row: ParsedLine["row"], dueAt: Instant): JobImage {
  return {
    state: row.state,
    wake: "decide",
    wakeAt: null,
    rank: rankOf(row.priority, dueAt),
    attempt: row.attempt,
    returns: row.returns,
    expiredClaims: row.expiredClaims,
    waitAt: null,
    totalAt: row.totalAt,
    startedAt: row.startedAt,
    softAt: row.softAt,
    hardAt: row.hardAt,
    stallAt: null,
    heartbeat: row.heartbeat,
    finishedAt: row.finishedAt,
    pruneAt: row.pruneAt,
    deadLetter: row.deadLetter,
  };
}

/**
 * A waiting job waits again, with the deadlines that it had. A job that its limit had admitted asks for admission
 * again: the slot that it held was one of the old store.
 */
function waitingAgain(row: ParsedLine["row"], dueAt: Instant, now: Instant): JobImage {
  const { options } = row;
  const state = row.state === "available" && options?.limit ? "pending" : row.state;
  const rank = rankOf(row.priority, dueAt);
  const wake = waitingWake({ ...row, state, rank }, options?.limit);
  const asksLimit = state === "pending" && options?.limit !== undefined && row.needs === 0;
  return unstartedImage({ ...row, state, rank }, asksLimit ? { ...wake, wakeAt: now } : wake);
}
