import type { JobId, JobRow } from "../../core/job/job.ts";
import type { ScannedCount, ScannedJobs } from "../../ports/store.ts";
import { cursorOf, type ScanPath, scanCursorOf } from "../scan-cursor.ts";
import { decodeJob, JOB_COLUMNS, STATE_CODES } from "../sql/row-codec.ts";
import {
  BACKWARDS,
  FORWARDS,
  type ScanSource,
  TENANT_BACKWARDS,
  TENANT_FORWARDS,
} from "./inspect-statements.ts";
import type { Runner } from "./session.ts";

/** The columns of a listed row that say whether it is a job, and when it ended. */
const QUEUE = JOB_COLUMNS.indexOf("queue");
const FINISHED_AT = JOB_COLUMNS.length;

/** One step of a scan, in one round trip. */
export async function scanJobs(runner: Runner, path: ScanPath, limit: number): Promise<ScannedJobs> {
  const source = sourceOf(path);
  if (source === null) return { jobs: [], cursor: null };
  const { byEnd, newestFirst } = path;
  const { list, listBrief } = statementsOf(path)[source];
  const values = [...valuesOf(path), limit, ...tenantIn(path)];
  const jobs: JobRow[] = [];
  let cursor: string | null = null;
  for (const row of await runner.run(path.isBrief ? listBrief : list, values)) {
    if (row[QUEUE] !== null) jobs.push(decodeJob(row));
    else cursor = positionText(path, row[FINISHED_AT], row[0]);
  }
  // The server returns them in this order, but does not promise it.
  const sign = newestFirst ? -1 : 1;
  jobs.sort((a, b) => sign * (byEnd ? compareEnds(a, b) : compareIds(a, b)));
  if (jobs.length >= limit) cursor = cursorOf(scanCursorOf(jobs.at(-1) as JobRow, byEnd));
  return { jobs, cursor };
}

/** One step of a scan that only counts, in one round trip. */
export async function countJobs(runner: Runner, path: ScanPath): Promise<ScannedCount> {
  const source = sourceOf(path);
  if (source === null) return { count: 0, cursor: null };
  const { count } = statementsOf(path)[source];
  const [row] = await runner.run(count, [...valuesOf(path), ...tenantIn(path)]);
  const [counted, at, id] = row as [number, number | null, JobId | null];
  return { count: counted, cursor: id === null ? null : positionText(path, at, id) };
}

function statementsOf({ newestFirst, filter }: ScanPath) {
  if (filter.tenant !== undefined) return newestFirst ? TENANT_BACKWARDS : TENANT_FORWARDS;
  return newestFirst ? BACKWARDS : FORWARDS;
}

function tenantIn({ filter: { tenant } }: ScanPath): string[] {
  return tenant === undefined ? [] : [tenant];
}

/** Null if no job can match. */
function sourceOf({ byEnd, live, finished }: ScanPath): ScanSource | null {
  if (byEnd) return "dead";
  if (live) return finished ? "both" : "live";
  return finished ? "finished" : null;
}

function positionText({ byEnd }: ScanPath, at: unknown, id: unknown): string {
  return cursorOf({ id: id as JobId, at: byEnd ? (at as number) : null });
}

function valuesOf({ after, filter }: ScanPath): unknown[] {
  const { queue = null, type = null, state, createdFrom = null, createdBefore = null, text = null } = filter;
  const { deadLetter, finishedFrom = null, finishedBefore = null } = filter;
  const code = state === undefined ? null : STATE_CODES[state];
  const dead = deadLetter === undefined ? null : Number(deadLetter);
  const matching = [queue, type, code, createdFrom, createdBefore, text, dead, finishedFrom, finishedBefore];
  return [after?.at ?? null, after?.id ?? null, ...matching];
}

function compareEnds(a: JobRow, b: JobRow): number {
  return (a.finishedAt ?? 0) - (b.finishedAt ?? 0) || compareIds(a, b);
}

function compareIds(a: JobRow, b: JobRow): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
