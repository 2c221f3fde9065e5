import type { EventOf } from "../core/job/events.ts";
import type { JobRow } from "../core/job/job.ts";
import type { ErrorInput } from "../core/job/verdict.ts";
import type { Verdict } from "../engine/running-attempt.ts";
import { instantText } from "./enqueue-wire.ts";
import type { Request } from "./transport.ts";

/** A verdict as a request: under the fence of the attempt, so that a late one changes nothing. */
export function reportRequest(row: JobRow, worker: string, verdict: Verdict): Request {
  const sender = { job_id: row.id, fence: row.fence, worker_id: worker };
  if (verdict.type === "succeed") {
    const head = JSON.stringify({ ...sender, signalled: verdict.signalled });
    const result = verdict.result === undefined ? "" : `,"result":${verdict.result}`;
    return { method: "POST", path: "/workers/ack", what: "ack", body: `${head.slice(0, -1)}${result}}` };
  }
  const body = JSON.stringify({ ...sender, ...failureFields(verdict) });
  return { method: "POST", path: "/workers/nack", what: "nack", body };
}

function failureFields(verdict: Exclude<Verdict, EventOf<"succeed">>): Record<string, unknown> {
  switch (verdict.type) {
    case "snooze":
      return { snooze_until: instantText(verdict.dueAt) };
    case "release":
      // An error that is null, and not left out, says that nothing went wrong with the job.
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
        error: errorFields(verdict.error),
        ...(verdict.discard && { discard: true }),
      };
  }
}

/** Codes by which a report over HTTP overrides the retry policy; an error that happens to have one must not. */
const ORDERS: ReadonlySet<string> = new Set(["RETRY", "DISCARD", "DEAD_LETTER", "FAIL"]);

function errorFields(error: ErrorInput): ErrorInput {
  if (!ORDERS.has(error.code)) return error;
  return { ...error, code: "handler_error", details: error.details ?? { code: error.code } };
}

function hung(code: string, message: string, stack: string | undefined): Record<string, string> {
  return { type: code, code, message, ...(stack !== undefined && { stack }) };
}
