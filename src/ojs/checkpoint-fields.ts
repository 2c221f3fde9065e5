import type { SavedCheckpoint } from "../core/job/documents/checkpoint.ts";

/** A saved state with what was noted beside it. */
export function checkpointFields({ state, sequence, stepIndex, metadata }: SavedCheckpoint) {
  return {
    state,
    sequence,
    ...(stepIndex !== undefined && { step_index: stepIndex }),
    ...(metadata !== undefined && { metadata }),
  };
}
