import { z } from "zod";
import { CurfewError, ERRORS, type ErrorCode } from "../../core/errors.ts";
import type { Json } from "../../core/schema.ts";
import { ConcurrencyError } from "../../core/timeout/timeout.ts";
import { JobFailedError } from "../../engine/operations/job-failed-error.ts";
import { WorkflowFailedError } from "../../engine/workflows/workflow-failed-error.ts";
import { CALLS, type CallName, callPath } from "../../ojs/call-names.ts";
import { BASE } from "../../ojs/paths.ts";
import { bulkCalls } from "../calls/bulk-calls.ts";
import { calendarCalls } from "../calls/calendar-calls.ts";
import { type Call, JsonText } from "../calls/call.ts";
import { cronCalls } from "../calls/cron-calls.ts";
import { eventCalls } from "../calls/event-calls.ts";
import { jobCalls } from "../calls/job-calls.ts";
import { queueCalls } from "../calls/queue-calls.ts";
import { MOST_TEXT, tooLarge } from "../calls/read-in-steps.ts";
import { sagaCalls } from "../calls/saga-calls.ts";
import { timeoutCalls } from "../calls/timeout-calls.ts";
import { webhookCalls } from "../calls/webhook-calls.ts";
import { workflowCalls } from "../calls/workflow-calls.ts";
import { asHttpError } from "../http/failures.ts";
import { HttpError } from "../http/http-error.ts";
import { byKey, type Reply, type Route, reply, route } from "../route.ts";

const TAG = "calls";

const SERVED: Readonly<Record<CallName, Call>> = {
  ...jobCalls,
  ...queueCalls,
  ...cronCalls,
  ...workflowCalls,
  ...bulkCalls,
  ...timeoutCalls,
  ...sagaCalls,
  ...eventCalls,
  ...webhookCalls,
  ...calendarCalls,
};

const callReply = z.looseObject({ result: z.unknown().optional() });

/** How a job, a workflow or a lease ended. It is an answer, not a failure of the server. */
const OUTCOMES: readonly string[] = [
  "job_failed",
  "workflow_failed",
  "result_gone",
  "known_id",
  "concurrency",
];

/** The error in the engine's own words. The client makes the same error of it, so the message names the engine's options. */
function asCallError(thrown: unknown, args: readonly unknown[]): HttpError {
  if (isUnstorable(thrown) && JSON.stringify(args).includes("\\u0000"))
    return new HttpError(400, "invalid_request", "args: a text has a NUL character; leave it out");
  if (!isOurs(thrown)) return asHttpError(thrown);
  const { message } = thrown;
  if (OUTCOMES.includes(thrown.code))
    return new HttpError(409, "conflict", message, { details: detailsOf(thrown) });
  const { status, code, more } = asHttpError(new CurfewError(thrown.code, message));
  // The message of a failure may name hosts and tables, so only the log has it.
  if (status >= 500) return asHttpError(thrown);
  return new HttpError(status, code, message, { ...more, details: detailsOf(thrown) });
}

/** PostgreSQL has no NUL in its texts. It says so of the whole statement, which other callers may share. */
function isUnstorable(thrown: unknown): boolean {
  const cause = thrown instanceof CurfewError ? thrown.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "22021";
}

interface OurError extends Error {
  readonly code: ErrorCode;
  readonly field?: string | undefined;
}

/** A CurfewError, or a RangeError or TypeError with one of our codes. */
function isOurs(thrown: unknown): thrown is OurError {
  return thrown instanceof Error && "code" in thrown && Object.hasOwn(ERRORS, String(thrown.code));
}

function detailsOf(thrown: OurError): Json {
  const { code, field } = thrown;
  return JSON.parse(
    JSON.stringify({
      curfew_code: code,
      ...(field !== undefined && { field }),
      ...(thrown instanceof JobFailedError && { state: thrown.state, record: thrown.record ?? null }),
      ...(thrown instanceof WorkflowFailedError && { state: thrown.state, failure: thrown.failure }),
      ...(thrown instanceof ConcurrencyError && { owner: thrown.owner, reason: thrown.reason }),
    }),
  ) as Json;
}

function resultOf(result: unknown): Reply {
  if (result instanceof JsonText) return bounded(`{"result":${result.text}}`);
  if (!Array.isArray(result)) return bounded(JSON.stringify({ result }));
  // Item by item: a thousand timeouts of a megabyte must not become one text before anybody counts it.
  const items: string[] = [];
  let length = 0;
  for (const item of result) {
    const text = JSON.stringify(item) ?? "null";
    length += text.length + 1;
    if (length > MOST_TEXT) throw tooLarge();
    items.push(text);
  }
  return bounded(`{"result":[${items.join(",")}]}`);
}

function bounded(text: string): Reply {
  if (text.length > MOST_TEXT) throw tooLarge();
  return reply(200, text);
}

function callRoute(name: CallName): Route {
  const { summary, args, run } = SERVED[name];
  return route("POST", `${BASE}${callPath(name)}`, CALLS[name].right, {
    scope: "tenant",
    tag: TAG,
    summary,
    body: z.looseObject({ args, reason: z.string().max(500).nullish() }),
    reply: callReply,
    replies: { 200: "Its result", 404: "It does not exist", 409: "Its state does not allow it" },
    async run(call, { engine, service }) {
      const { identity, isGone } = call;
      const body = call.body as { readonly args: readonly never[] };
      try {
        return resultOf(await run({ engine, service, by: byKey(identity), isGone }, ...body.args));
      } catch (error) {
        const shown = asCallError(error, body.args);
        // The log must have what failed, not the reply.
        throw shown.status >= 500 ? error : shown;
      }
    },
  });
}

/** The methods of the engine under their own names, for our client. */
export const callRoutes: readonly Route[] = (Object.keys(SERVED) as CallName[]).map(callRoute);
