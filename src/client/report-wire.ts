import type { ErrorInput } from "../core/job/decide/decision.ts";
import type { EventOf } from "../core/job/decide/job-events.ts";
import { scrubError } from "../core/job/documents/redaction.ts";
import type { JobRow } from "../core/job/job.ts";
import type { Verdict } from "../engine/attempt/running-attempt.ts";
import { PATHS, reportBatchPath } from "../ojs/paths.ts";
import { instantText } from "../ojs/wire-fields.ts";
import type { WireAck, WireAttempt, WireFailure, WireNack } from "../ojs/wire-types.ts";
import type { Reply, Request } from "./transport.ts";

/** A verdict on the wire. It has the attempt's fence, so a late one changes nothing. */
export interface SentReport {
  readonly what: "ack" | "nack";
  /** A JSON object. */
  readonly text: string;
}

export function wireReport(row: JobRow, verdict: Verdict): SentReport {
  const attempt: WireAttempt = { job_id: row.id, fence: row.fence };
  if (verdict.type !== "succeed")
    return { what: "nack", text: JSON.stringify({ ...attempt, ...failureFields(row, verdict) }) };
  const ack: WireAck = { ...attempt, signalled: verdict.signalled };
  const head = JSON.stringify(ack);
  const result = verdict.result === undefined ? "" : `,"result":${verdict.result}`;
  return { what: "ack", text: `${head.slice(0, -1)}${result}}` };
}

export function reportRequest(worker: string, { what, text }: SentReport): Request {
  const body = `{"worker_id":${JSON.stringify(worker)},${text.slice(1)}`;
  return { method: "POST", path: PATHS[what], what, body };
}

/** Reports of one kind in one request. */
export function reportsRequest(
  worker: string,
  what: SentReport["what"],
  reports: readonly SentReport[],
): Request {
  const jobs = reports.map(({ text }) => text).join(",");
  const body = `{"worker_id":${JSON.stringify(worker)},"jobs":[${jobs}]}`;
  return { method: "POST", path: reportBatchPath(what), what: `${what}s`, body };
}

/** One reply per report, as if each was sent alone. Null if the reply does not have them. */
export function repliesOf(reply: Reply, count: number): Reply[] | null {
  const { results } = (reply.body ?? {}) as { readonly results?: unknown };
  if (reply.status !== 200 || !Array.isArray(results) || results.length !== count) return null;
  const replies = results.map((body: unknown) => {
    const { status } = (body ?? {}) as { readonly status?: unknown };
    return typeof status === "number" ? { ...reply, status, body } : null;
  });
  return replies.every((each) => each !== null) ? replies : null;
}

function failureFields(
  row: JobRow,
  verdict: Exclude<Verdict, EventOf<"succeed">>,
): Omit<WireNack, keyof WireAttempt> {
  switch (verdict.type) {
    case "snooze":
      return { snooze_until: instantText(verdict.dueAt), ...(verdict.signalled && { signalled: true }) };
    case "release":
      // `error: null` means that nothing failed; a missing error does not.
      return {
        requeue: true,
        ...(verdict.delay !== undefined && { delay_ms: verdict.delay }),
        ...(verdict.error === undefined && { error: null }),
      };
    case "expire":
      return { forced: true, signalled: true, error: hung("timeout", "Ended by force", verdict.stack) };
    case "stall":
      return { stalled: true, error: hung("stalled", "Stalled", verdict.stack) };
    case "fail":
      return {
        signalled: verdict.signalled,
        error: errorFields(scrubError(verdict.error, row)),
        ...(verdict.discard && { discard: true }),
      };
  }
}

/** These codes override the retry policy over HTTP. A handler's own error with such a code must not. */
const ORDERS: ReadonlySet<string> = new Set(["RETRY", "DISCARD", "DEAD_LETTER", "FAIL"]);

function errorFields(error: ErrorInput): WireFailure {
  if (!ORDERS.has(error.code)) return error;
  return { ...error, code: "handler_error", details: error.details ?? { code: error.code } };
}

function hung(code: string, message: string, stack: string | undefined): WireFailure {
  return { type: code, code, message, ...(stack !== undefined && { stack }) };
}
