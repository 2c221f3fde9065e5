import type { JobRow } from "../job/job.ts";
import { versionOf } from "./registered-schema.ts";

/** The version that a job carries; undefined if it says none. */
export function versionOfJob({ options }: Pick<JobRow, "options">): string | undefined {
  const fields = options?.wire?.fields as { readonly version?: unknown } | undefined;
  return versionOf(fields?.version);
}

/** A list of versions, or a range of them. */
export interface VersionSet {
  includes(version: string): boolean;
}

/** Whether a worker that takes these versions of the job's type runs it. A job without a version runs anywhere. */
export function takesVersion(versions: VersionSet | undefined, job: Pick<JobRow, "options">): boolean {
  if (versions === undefined) return true;
  const version = versionOfJob(job);
  return version === undefined || versions.includes(version);
}
