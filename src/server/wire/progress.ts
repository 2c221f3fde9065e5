import type { ProgressNote } from "../../core/job/progress.ts";
import type { Json } from "../../core/schema.ts";
import type { SavedCheckpoint } from "../../engine/checkpoints.ts";
import { instantText } from "./durations.ts";

/** A saved state with what was noted beside it. */
export function checkpointFields({ state, sequence, stepIndex, metadata }: SavedCheckpoint) {
  return {
    state,
    sequence,
    ...(stepIndex !== undefined && { step_index: stepIndex }),
    ...(metadata !== undefined && { metadata }),
  };
}

interface NoteFields {
  readonly message: Json;
  readonly data: Json;
  readonly updated_at: string | null;
}

/**
 * What was noted with a progress report. Over the wire a note is a message and data; a processor in an engine notes
 * whatever it likes, which is the message if it is a text, and data otherwise.
 */
export function noteFields(note: ProgressNote["note"]): NoteFields {
  if (typeof note === "string") return { message: note, data: null, updated_at: null };
  const { at, message = null, data = null } = (note ?? {}) as { at?: Json; message?: Json; data?: Json };
  if (typeof at !== "number") return { message: null, data: note ?? null, updated_at: null };
  return { message, data, updated_at: instantText(at) };
}
