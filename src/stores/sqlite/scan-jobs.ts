import type { JobId, JobRow } from "../../core/job/job.ts";
import { tenantPrefix } from "../../core/tenant/tenant-name.ts";
import { SCAN_STEP } from "../../ports/store.ts";
import { cursorOf, type ScanCursor, type ScanPath, scanCursorOf } from "../scan-cursor.ts";
import { decodeJob, type SqlRow, STATE_CODES } from "../sql/row-codec.ts";
import { SCANS, TENANT_SCANS } from "./scan-statements.ts";
import type { Session } from "./session.ts";

/** They sort before and after every id. */
const FIRST_ID = "";
const LAST_ID = "\uffff";
const NEVER = Number.MAX_SAFE_INTEGER;

/** A range of a scan: the position before it, its last position, and whether nothing follows. */
interface ScanRange {
  readonly from: ScanCursor;
  readonly to: ScanCursor;
  readonly isLast: boolean;
}

/** One step of a scan, in one read of the file. */
export function scanJobs(session: Session, path: ScanPath, limit: number) {
  const range = rangeOf(session, path);
  const statements = statementsOf(path);
  const rows: SqlRow[] = [];
  if (path.byEnd)
    rows.push(...session.all(statements.listDead, [...ours(path), ...deadArguments(path, range), limit]));
  else {
    const ids = [...ours(path), range.from.id, range.to.id];
    if (path.live) rows.push(...session.all(statements.listJobs, [...ids, ...matching(path), limit]));
    if (path.finished) rows.push(...session.all(statements.listDone, [...ids, ...matchingDone(path), limit]));
  }
  const found = rows.map(decodeJob);
  if (path.live && path.finished) found.sort((a, b) => compareIds(a, b) * (path.newestFirst ? -1 : 1));
  const jobs = found.slice(0, limit);
  if (found.length >= limit)
    return { jobs, cursor: cursorOf(scanCursorOf(jobs.at(-1) as JobRow, path.byEnd)) };
  return { jobs, cursor: range.isLast ? null : cursorOf(range.to) };
}

/** One step of a scan that only counts. */
export function countJobs(session: Session, path: ScanPath) {
  const range = rangeOf(session, path);
  const statements = statementsOf(path);
  const counted = (text: string, values: readonly unknown[]) => session.get(text, values)?.[0] as number;
  let count = 0;
  if (path.byEnd) count = counted(statements.countDead, [...ours(path), ...deadArguments(path, range)]);
  else {
    const ids = [...ours(path), range.from.id, range.to.id];
    if (path.live) count += counted(statements.countJobs, [...ids, ...matching(path)]);
    if (path.finished) count += counted(statements.countDone, [...ids, ...matchingDone(path)]);
  }
  return { count, cursor: range.isLast ? null : cursorOf(range.to) };
}

function statementsOf({ newestFirst, filter, isBrief }: ScanPath) {
  const scans = (filter.tenant === undefined ? SCANS : TENANT_SCANS)[isBrief ? "brief" : "whole"];
  return newestFirst ? scans.backwards : scans.forwards;
}

/** What the statements of a tenant take first. */
function ours({ filter: { tenant } }: ScanPath): string[] {
  return tenant === undefined ? [] : [tenantPrefix(tenant)];
}

function rangeOf(session: Session, path: ScanPath): ScanRange {
  const { newestFirst, byEnd } = path;
  const { endOfDead, endOfJobs, endOfDone } = statementsOf(path);
  const first: ScanCursor = {
    id: newestFirst ? LAST_ID : FIRST_ID,
    at: byEnd ? (newestFirst ? NEVER : -1) : null,
  };
  const last: ScanCursor = {
    id: newestFirst ? FIRST_ID : LAST_ID,
    at: byEnd ? (newestFirst ? -1 : NEVER) : null,
  };
  const from = path.after ?? first;
  if (byEnd) {
    const { finishedFrom = 0, finishedBefore = NEVER } = path.filter;
    const values = [...ours(path), finishedFrom, finishedBefore, from.at, from.id, SCAN_STEP - 1];
    const end = session.get(endOfDead, values) as [number, JobId] | undefined;
    return { from, to: end ? { at: end[0], id: end[1] } : last, isLast: !end };
  }
  const ends: JobId[] = [];
  const look = (text: string) => {
    const end = session.get(text, [...ours(path), from.id, SCAN_STEP - 1])?.[0] as JobId | undefined;
    if (end !== undefined) ends.push(end);
  };
  if (path.live) look(endOfJobs);
  if (path.finished) look(endOfDone);
  if (ends.length === 0) return { from, to: last, isLast: true };
  ends.sort();
  return { from, to: { id: (newestFirst ? ends.at(-1) : ends[0]) as JobId, at: null }, isLast: false };
}

function matching({ filter }: ScanPath): unknown[] {
  const { queue, type, state, createdFrom, createdBefore, text = null } = filter;
  const code = state === undefined ? null : STATE_CODES[state];
  return [queue ?? null, type ?? null, code, createdFrom ?? 0, createdBefore ?? NEVER, text, text];
}

function matchingDone(path: ScanPath): unknown[] {
  const { deadLetter, finishedFrom, finishedBefore } = path.filter;
  const dead = deadLetter === undefined ? null : Number(deadLetter);
  return [...matching(path), dead, finishedFrom ?? 0, finishedBefore ?? NEVER];
}

function deadArguments(path: ScanPath, { from, to }: ScanRange): unknown[] {
  return [from.at, from.id, to.at, to.id, ...matchingDone(path)];
}

function compareIds(a: JobRow, b: JobRow): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
