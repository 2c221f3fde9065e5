import { rereadImage } from "../../core/job/decide/decision.ts";
import { type CheckpointNote, checkpointOf } from "../../core/job/documents/checkpoint.ts";
import type { JobId, JobOptions, JobRow } from "../../core/job/job.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import { commitDecision } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";

/** Whether an outsider may write the checkpoint of this row. */
type MayWrite = (row: JobRow) => boolean;

export type Saved =
  | { readonly ok: true; readonly row: JobRow }
  | { readonly ok: false; readonly because: "gone" | "lost"; readonly row: JobRow | null };

/** Saves or clears, for a caller outside the attempt, the state that the next attempt begins with. Null clears it. */
export async function writeCheckpoint(
  context: EngineContext,
  id: JobId,
  state: Json | null,
  mayWrite: MayWrite,
  note: CheckpointNote = {},
): Promise<Saved> {
  const { documentLimit } = context;
  const isClearing = state === null;
  let isLost = false;
  const row = await commitDecision(context, "checkpoint", id, (row, now) => {
    if (row === null || (isClearing && row.checkpoint === null)) return null;
    isLost = !mayWrite(row);
    if (isLost) return null;
    const checkpoint = isClearing ? null : toJsonText(state, "state", documentLimit);
    const documents = { checkpoint, options: notedOptions(row, isClearing, note, documentLimit) };
    const decision = { ok: true, image: rereadImage(row), documents, events: [] } as const;
    return { row, decision, at: now, by: "outsider" };
  });
  if (row === null) return { ok: false, because: "gone", row };
  return isLost ? { ok: false, because: "lost", row } : { ok: true, row };
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
