import type { JobImage } from "../job.ts";
import { checkImage } from "./check-image.ts";

type Unstarted = Pick<
  JobImage,
  "state" | "rank" | "attempt" | "returns" | "expiredClaims" | "waitAt" | "totalAt" | "heartbeat"
>;

/** The image of a live job that no attempt runs: it has no instants of an attempt and none of an end. */
export function unstartedImage(
  job: Unstarted,
  { wake, wakeAt }: Pick<JobImage, "wake" | "wakeAt">,
): JobImage {
  const image: JobImage = {
    state: job.state,
    wake,
    wakeAt,
    rank: job.rank,
    attempt: job.attempt,
    returns: job.returns,
    expiredClaims: job.expiredClaims,
    waitAt: job.waitAt,
    totalAt: job.totalAt,
    startedAt: null,
    softAt: null,
    hardAt: null,
    stallAt: null,
    heartbeat: job.heartbeat,
    finishedAt: null,
    pruneAt: null,
    deadLetter: false,
  };
  checkImage(image);
  return image;
}
