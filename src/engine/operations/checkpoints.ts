import { type CheckpointNote, checkpointOf } from "../../core/job/checkpoint.ts";
import { rereadImage } from "../../core/job/decision.ts";
import type { JobId, JobOptions, JobRow } from "../../core/job/job.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import type { EngineContext } from "../context.ts";

/** Whether an outsider may write the checkpoint of this row. */
type MayWrite = (row: JobRow) => boolean;

const TRIES = 10;

export type Saved =
  | { readonly ok: true; readonly row: JobRow }
  | { readonly ok: false; readonly because: "gone" | "lost"; readonly row: JobRow | null };

/**
 * Saves or clears the state that the next attempt begins with, as somebody who is not the attempt itself: decided on the
 * row as read, written under its fence and revision. Null clears it, and the count begins anew; there being nothing to
 * clear is no mistake.
 */
export async function writeCheckpoint(
  parts: Pick<EngineContext, "store" | "clock" | "documentLimit" | "wakeSweepAt">,
  id: JobId,
  state: Json | null,
  mayWrite: MayWrite,
  note: CheckpointNote = {},
): Promise<Saved> {
  const { store, clock, documentLimit, wakeSweepAt } = parts;
  for (let tries = 0; tries < TRIES; tries++) {
    const [row = null] = await store.jobs.load([id]);
    if (row === null) return { ok: false, because: "gone", row };
    const isClearing = state === null;
    if (isClearing && row.checkpoint === null) return { ok: true, row };
    if (!mayWrite(row)) return { ok: false, because: "lost", row };
    const checkpoint = isClearing ? null : toJsonText(state, "state", documentLimit);
    const documents = { checkpoint, options: notedOptions(row, isClearing, note, documentLimit) };
    const image = rereadImage(row);
    const job = { id, fence: row.fence, rev: row.rev, image, documents };
    const [outcome] = await store.commit([{ job }], { now: clock.now() });
    if (!outcome?.ok) continue;
    if (image.wakeAt !== null) wakeSweepAt(image.wakeAt);
    return { ok: true, row: { ...row, ...documents, rev: row.rev + 1 } };
  }
  return { ok: false, because: "lost", row: null };
}

function notedOptions(row: JobRow, isClearing: boolean, note: CheckpointNote, limit: number): JobOptions {
  const { stepIndex: _step, metadata: _metadata, ...wire } = row.options?.wire ?? {};
  const sequence = isClearing ? 0 : (checkpointOf(row)?.sequence ?? 0) + 1;
  const { stepIndex, metadata } = note;
  if (metadata !== undefined) toJsonText(metadata, "metadata", limit);
  return {
    ...row.options,
    wire: {
      ...wire,
      sequence,
      ...(stepIndex !== undefined && { stepIndex }),
      ...(metadata !== undefined && { metadata }),
    },
  };
}
