import type { Json } from "../../schema.ts";
import type { JobRow } from "../job.ts";

/** A saved state, how often it was saved over the wire, and the notes saved with it. */
export interface SavedCheckpoint {
  readonly state: Json;
  /** How often it was saved over the wire since it was last cleared; 1 if a local processor saved it. */
  readonly sequence: number;
  readonly stepIndex?: number;
  readonly metadata?: Json;
}

/** What may be saved with a state. */
export type CheckpointNote = Pick<SavedCheckpoint, "stepIndex" | "metadata">;

/** The count is stored in the wire fields, because only the wire shows it. */
export function checkpointOf(row: JobRow): SavedCheckpoint | null {
  if (row.checkpoint === null) return null;
  const { sequence, stepIndex, metadata } = row.options?.wire ?? {};
  return {
    state: JSON.parse(row.checkpoint) as Json,
    sequence: typeof sequence === "number" ? sequence : 1,
    ...(typeof stepIndex === "number" && { stepIndex }),
    ...(metadata !== undefined && { metadata }),
  };
}
