import { CurfewError } from "../../errors.ts";
import { checkInstant, type Instant } from "../../time.ts";
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

/**
 * Refuses an image with a fraction of a millisecond in it, and names the field. Every job passes here four times, and
 * reading fields by variable names costs ten times as much, so the first look names them.
 */
export function checkImage(image: JobImage): void {
  if (
    isWhole(image.wakeAt) &&
    isWhole(image.waitAt) &&
    isWhole(image.totalAt) &&
    isWhole(image.startedAt) &&
    isWhole(image.softAt) &&
    isWhole(image.hardAt) &&
    isWhole(image.stallAt) &&
    isWhole(image.finishedAt) &&
    isWhole(image.pruneAt) &&
    isWhole(image.rank)
  )
    return;
  for (const name of IMAGE_INSTANTS) {
    const value = image[name];
    if (!isWhole(value)) checkInstant(value as Instant, `image.${name}`);
  }
}

function isWhole(value: Instant | null): boolean {
  return value === null || Number.isInteger(value);
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
