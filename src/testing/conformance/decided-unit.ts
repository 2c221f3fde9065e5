import type { Decision } from "../../core/job/decide/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Guard, Unit } from "../../ports/store.ts";

export interface Decided {
  readonly now?: Instant;
  /** Names the revision too, as every writer except the holder does. */
  readonly outsider?: boolean;
  readonly when?: readonly Guard[];
  readonly effects?: readonly Effect[];
}

/** The unit that writes a decision. */
export function decidedUnit(
  row: JobRow,
  { image, documents, fence, drop }: Extract<Decision, { ok: true }>,
  { outsider, when, effects }: Decided = {},
): Unit {
  return {
    job: {
      id: row.id,
      fence: row.fence,
      image,
      ...(outsider && { rev: row.rev }),
      ...(documents && { documents }),
      ...(fence !== undefined && { nextFence: fence }),
      ...(drop && { drop }),
    },
    ...(when && { when }),
    ...(effects && { effects }),
  };
}
