import type { Explanation, Job } from "../../ojs/replies/wire-replies.ts";

/** How many attempts a job has. Undefined where nothing says so: a definition that the server does not know may say anything. */
export const mostAttempts = (job: Job): number | undefined =>
  job.max_attempts_assumed ? undefined : job.max_attempts;

/** "1 of 3", or only "1". */
export function attemptText(job: Job, between = " of "): string {
  const most = mostAttempts(job);
  return most === undefined ? String(job.attempt) : `${job.attempt}${between}${most}`;
}

export const isLastAttempt = (job: Job): boolean =>
  job.attempt >= (mostAttempts(job) ?? Number.POSITIVE_INFINITY);

/** The job with the attempts that its definition, its queue or the engine gives it, where the server knows them. */
export function withAttempts(job: Job, explanation: Explanation | undefined): Job {
  if (!job.max_attempts_assumed) return job;
  const said = explanation?.fields.find(({ field }) => field === "attempts");
  if (said === undefined || said.source === "built-in") return job;
  const { max_attempts_assumed: _, ...known } = job;
  return { ...known, max_attempts: Number(said.value) };
}
