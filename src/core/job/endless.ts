import type { JobRow, Policy } from "./job.ts";

/** Whether nothing ends an attempt whose process dies: no sign of life is awaited of it, and no deadline kept for it. */
export function isEndless(
  { heartbeat, attempt, grace }: Pick<Policy, "heartbeat" | "attempt" | "grace">,
  total: number | null,
): boolean {
  return heartbeat === null && (attempt === null || grace === null) && total === null;
}

/** Whether a job runs, and nobody will ever look at it again but its own worker. */
export function runsEndlessly({ state, startedAt, wakeAt }: JobRow): boolean {
  return state === "active" && startedAt !== null && wakeAt === null;
}

/** What an endless attempt does to the others of its key, in words; undefined where it holds no place of one. */
export function holdWarning(row: Pick<JobRow, "gate" | "options">): string | undefined {
  const { concurrency, strict } = row.options?.limit ?? {};
  if (concurrency === undefined) return undefined;
  const key = row.gate === null ? "its limit" : `the limit "${row.gate}"`;
  const rest =
    concurrency === 1
      ? `nothing else of that key runs meanwhile${strict ? ", retries and successors included" : ""}`
      : `${concurrency} of them stop all of that key`;
  return `it holds a place of ${key} for as long as it is active, and ${rest}: name timeouts.heartbeat, or attempt with grace, or total`;
}
