import type { JobId, JobRow } from "../../core/job/job.ts";
import { SCAN_STEP, type ScannedCount, type ScannedJobs } from "../../ports/store.ts";
import { cursorOf, type ScanCursor, type ScanPath, scanCursorOf } from "../scan-cursor.ts";
import { decodeJob, STATE_CODES } from "../sql/row-codec.ts";
import { BACKWARDS, FORWARDS } from "./inspect-statements.ts";
import type { Runner } from "./session.ts";
import type { Statement } from "./statements.ts";

/** The last position of the range that a step reads; null: the range has no end. */
type End = ScanCursor | null;

/** One step of a scan. */
export async function scanJobs(runner: Runner, path: ScanPath, limit: number): Promise<ScannedJobs> {
  const { byEnd, newestFirst } = path;
  const end = await endOf(runner, path);
  const found = new Map<JobId, JobRow>();
  const list = async (statement: Statement, values: readonly unknown[]) => {
    for (const row of await runner.run(statement, [...values, limit]))
      found.set(row[0] as JobId, decodeJob(row));
  };
  const { listDead, listJobs, listDone } = newestFirst ? BACKWARDS : FORWARDS;
  if (byEnd) await list(listDead, deadArguments(path, end));
  else {
    // Finished jobs are read second. A job that ends in between is found twice, and the later row is returned.
    if (path.live) await list(listJobs, [...idsOf(path, end), ...matching(path)]);
    if (path.finished) await list(listDone, [...idsOf(path, end), ...matchingDone(path)]);
  }
  const rows = [...found.values()];
  if (path.live && path.finished) rows.sort((a, b) => compareIds(a, b) * (newestFirst ? -1 : 1));
  const jobs = rows.slice(0, limit);
  if (rows.length >= limit) return { jobs, cursor: cursorOf(scanCursorOf(jobs.at(-1) as JobRow, byEnd)) };
  return { jobs, cursor: end && cursorOf(end) };
}

/** One step of a scan that only counts. A job that ends in between may be counted twice. */
export async function countJobs(runner: Runner, path: ScanPath): Promise<ScannedCount> {
  const end = await endOf(runner, path);
  let count = 0;
  const add = async (statement: Statement, values: unknown[]) => {
    const [row] = await runner.run(statement, values);
    count += row?.[0] as number;
  };
  const statements = path.newestFirst ? BACKWARDS : FORWARDS;
  if (path.byEnd) await add(statements.countDead, deadArguments(path, end));
  else {
    if (path.live) await add(statements.countJobs, [...idsOf(path, end), ...matching(path)]);
    if (path.finished) await add(statements.countDone, [...idsOf(path, end), ...matchingDone(path)]);
  }
  return { count, cursor: end && cursorOf(end) };
}

async function endOf(runner: Runner, path: ScanPath): Promise<End> {
  const { after, newestFirst, filter } = path;
  const { endOfDead, endOfJobs, endOfDone } = newestFirst ? BACKWARDS : FORWARDS;
  if (path.byEnd) {
    const { finishedFrom = null, finishedBefore = null } = filter;
    const position = [after?.at ?? null, after?.id ?? null];
    const [end] = await runner.run(endOfDead, [...position, finishedFrom, finishedBefore, SCAN_STEP - 1]);
    return end ? { at: end[0] as number, id: end[1] as JobId } : null;
  }
  const ends: JobId[] = [];
  for (const statement of [path.live ? endOfJobs : null, path.finished ? endOfDone : null]) {
    if (!statement) continue;
    const [end] = await runner.run(statement, [after?.id ?? null, SCAN_STEP - 1]);
    if (end) ends.push(end[0] as JobId);
  }
  ends.sort();
  const id = newestFirst ? ends.at(-1) : ends[0];
  return id === undefined ? null : { id, at: null };
}

function idsOf({ after }: ScanPath, end: End): unknown[] {
  return [after?.id ?? null, end?.id ?? null];
}

function matching({ filter }: ScanPath): unknown[] {
  const { queue = null, type = null, state, createdFrom = null, createdBefore = null, text = null } = filter;
  return [queue, type, state === undefined ? null : STATE_CODES[state], createdFrom, createdBefore, text];
}

function matchingDone(path: ScanPath): unknown[] {
  const { deadLetter, finishedFrom = null, finishedBefore = null } = path.filter;
  const dead = deadLetter === undefined ? null : Number(deadLetter);
  return [...matching(path), dead, finishedFrom, finishedBefore];
}

function deadArguments(path: ScanPath, end: End): unknown[] {
  const { after } = path;
  return [after?.at ?? null, after?.id ?? null, end?.at ?? null, end?.id ?? null, ...matchingDone(path)];
}

function compareIds(a: JobRow, b: JobRow): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
