import { CurfewError } from "../../errors.ts";
import { checkInstant } from "../../time.ts";
import type { JobImage, JobRow } from "../job.ts";
import { ALLOWED, type JobEventName } from "../lifecycle.ts";

/** The columns of an image that are instants, or contain one. */
export const IMAGE_INSTANTS = [
  "wakeAt",
  "waitAt",
  "totalAt",
  "startedAt",
  "softAt",
  "hardAt",
  "stallAt",
  "finishedAt",
  "pruneAt",
  // The low part of a rank is the instant at which the job may start.
  "rank",
] as const satisfies readonly (keyof JobImage)[];

/** Refuses an image with a fraction of a millisecond in it, and names the field. */
export function checkImage(image: JobImage): void {
  for (const name of IMAGE_INSTANTS) {
    const value = image[name];
    // The whole image of almost every write passes here.
    if (value !== null && !Number.isInteger(value)) checkInstant(value, `image.${name}`);
  }
}

/** Refuses what no rule may decide: a state that is not in the lifecycle table, and a fraction of a millisecond. */
export function checkDecided(job: JobRow, event: JobEventName, image: JobImage): void {
  if (!ALLOWED[job.state][event].includes(image.state)) {
    throw new CurfewError(
      "invalid_state",
      `decide: ${event} took job ${job.id} from ${job.state} to ${image.state}, which is not in the lifecycle table`,
    );
  }
  checkImage(image);
}
