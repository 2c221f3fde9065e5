/** Where the HTTP interface of Open Job Spec begins. */
export const BASE = "/ojs/v1";

/** Paths below BASE that our own client calls; the server declares its routes with the same ones. */
export const PATHS = {
  jobs: "/jobs",
  batch: "/jobs/batch",
  fetch: "/workers/fetch",
  beat: "/workers/heartbeat",
  ack: "/workers/ack",
  nack: "/workers/nack",
} as const;

/** The path of one job, or of what belongs to it: `jobPath(id, "progress")`. */
export function jobPath(id: string, part?: string): string {
  return `${PATHS.jobs}/${id}${part === undefined ? "" : `/${part}`}`;
}

/** Many reports of one kind in one request. */
export function reportBatchPath(what: "ack" | "nack"): string {
  return `${PATHS[what]}/batch`;
}
