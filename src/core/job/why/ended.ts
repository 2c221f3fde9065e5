import { describeLearned } from "../../stats/adaptive-limit.ts";
import { formatDuration } from "../../time.ts";
import type { ErrorRecord, JobRow, PolicyField, SettingSource } from "../job.ts";
import { isExcepted } from "../policy/retry.ts";
import type { WhyCode } from "./codes.ts";
import type { WhyFacts } from "./facts.ts";
import { act, reason, roughly, WAIT, type WhyReason } from "./reason.ts";

/** Which limit of which source ended a job, what the cause was, and whether a retry would fit. */
export function whyEnded(facts: WhyFacts): WhyReason[] {
  const { row } = facts;
  if (row.state === "completed") return [completed(row)];
  if (row.state === "cancelled") return [cancelled(facts)];
  return [discarded(row), ...notRetried(row), byHand(row)];
}

function completed(row: JobRow): WhyReason {
  const { finishedAt: since, softAt, startedAt } = row;
  const took = since === null || startedAt === null ? "" : ` after ${roughly(since - startedAt)}`;
  if (softAt === null || since === null || since < softAt) {
    return reason("completed", `It completed in attempt ${row.attempt}${took}.`, { since, action: WAIT });
  }
  const sentence = `It completed in attempt ${row.attempt}${took}, ${roughly(since - softAt)} after the signal to stop.`;
  const text =
    "Give it a longer attempt timeout, or make it faster: engine.advise() says what its runs need.";
  return reason("completed_late", sentence, { since, action: act("change-code", text, row.type) });
}

function cancelled({ row, workflow }: WhyFacts): WhyReason {
  const { finishedAt: since, options } = row;
  if (options?.replacedBy !== undefined) {
    const sentence = `Job ${options.replacedBy} has the same unique key and took its place.`;
    const who = { kind: "job", id: options.replacedBy } as const;
    const action = act("look-at-job", `Look at job ${options.replacedBy}.`, options.replacedBy);
    return reason("replaced", sentence, { since, who, action });
  }
  const record = workflow?.record ?? null;
  if (workflow !== null && row.attempt === 0 && record !== null && record.state !== "completed") {
    const failed = record.failure?.job;
    const because = record.failure?.message === undefined ? "" : `: ${record.failure.message}`;
    const sentence = `A step before it did not succeed, or workflow ${workflow.id} was cancelled (it is ${record.state}${because}).`;
    const who =
      failed === undefined
        ? ({ kind: "workflow", id: workflow.id } as const)
        : ({ kind: "job", id: failed } as const);
    const action =
      failed === undefined
        ? act("look-at-workflow", `Look at workflow ${workflow.id}.`, workflow.id)
        : act("look-at-job", `Ask why job ${failed} ended.`, failed);
    return reason("workflow_halted", sentence, { since, who, action });
  }
  const sentence = "Somebody cancelled it; engine.audit says who, if they gave a name.";
  const action = act(
    "change-code",
    "Enqueue it again if it must still run: a cancelled job cannot be retried.",
    row.type,
  );
  return reason("cancelled", sentence, { since, action });
}

const CODES: { readonly [type: string]: WhyCode } = {
  enqueue_ttl_expired: "wait_expired",
  total_timeout: "total_expired",
  timeout: "attempt_timed_out",
  stalled: "stalled",
  visibility_timeout: "visibility_expired",
  killed: "sandbox_killed",
  queue_full: "queue_full",
  rate_limited: "limit_dropped",
  too_many_returns: "too_many_returns",
  parent_results_too_large: "parent_results_too_large",
};

/** The last stored error says what ended the job. */
function discarded(row: JobRow): WhyReason {
  const error = row.errors?.at(-1);
  const since = row.finishedAt;
  if (!error) {
    const action = act("retry", `Call engine.retry("${row.id}").`, row.id);
    return reason("handler_failed", "It was discarded, and no error was kept.", { since, action });
  }
  const isOurs = error.type === error.code;
  const code = error.predicted ? "retry_refused" : (isOurs && CODES[error.type]) || "handler_failed";
  const cause = error.cause ? ` Its handler said: ${error.cause.message}.` : "";
  const kept = row.deadLetter ? " It is kept as a dead letter." : "";
  return reason(code, `${sentenceOf(code, row, error)}${cause}${kept}`, {
    since,
    action: actionOf(code, row),
  });
}

function sentenceOf(code: WhyCode, row: JobRow, error: ErrorRecord): string {
  const limit = error.limit === undefined ? "" : formatDuration(error.limit);
  const attempt = `Attempt ${error.attempt}`;
  const inherited = row.options?.inheritedFrom;
  switch (code) {
    case "wait_expired":
      return `It was not started within ${limit} (wait${by(row.options?.waitFrom)}).`;
    case "total_expired":
      return inherited === undefined
        ? `It did not end within ${limit} (total${by(row.options?.totalFrom)}).`
        : `It did not end before the deadline that it inherited from ${inherited}.`;
    case "retry_refused": {
      const before = row.errors?.at(-2);
      const failed = before ? `${attempt} failed (${before.message}), and no` : "No";
      return `${failed} further attempt would have fitted into what was left of its total of ${limit}${by(row.options?.totalFrom)}.`;
    }
    case "attempt_timed_out":
      return `${attempt} ran longer than ${limit} (attempt${byField(row, "attempt")})${error.forced ? " and was ended by force" : ""}.${learnedText(row)}`;
    case "stalled":
      return `${attempt} gave no sign of life for ${limit} (heartbeat${byField(row, "heartbeat")}): its process died, its event loop was blocked, or its handler did not beat.`;
    case "visibility_expired":
      return `Its worker did not report within the visibility timeout of ${limit}.`;
    case "handler_failed":
      return `${attempt} failed with ${error.type}: ${error.message}.`;
    default:
      return `${error.message.replace(/\.$/, "")}.`;
  }
}

/** A limit that nobody wrote down must say where it comes from. */
function learnedText({ policy }: JobRow): string {
  if (!policy?.adaptive) return "";
  return ` The limit is ${describeLearned(policy.adaptive.rule, policy.adaptive.learned ?? undefined)}.`;
}

function by(settings: SettingSource | undefined): string {
  return settings === undefined ? "" : `, set by ${settings}`;
}

function byField(row: JobRow, field: PolicyField): string {
  return by(row.policy?.sources[field]);
}

function actionOf(code: WhyCode, row: JobRow): WhyReason["action"] {
  if (row.options?.step)
    return act("look-at-workflow", "Start the workflow again: its steps cannot be retried.", row.workflow);
  const retry = `Call engine.retry("${row.id}")`;
  switch (code) {
    case "wait_expired":
      return act("retry", `Add workers or a longer wait; ${lower(retry)} to run it after all.`, row.id);
    case "attempt_timed_out":
    case "total_expired":
    case "retry_refused":
      return act("retry", `Give it more time (engine.advise() says how much); then ${lower(retry)}.`, row.id);
    case "queue_full":
    case "limit_dropped":
      return act("retry", `Make room, then ${lower(retry)}.`, row.id);
    default:
      return act("retry", `Mend the cause, then ${lower(retry)}.`, row.id);
  }
}

function lower(text: string): string {
  return `${text[0]?.toLowerCase()}${text.slice(1)}`;
}

/** Why a failed attempt was the last one. */
function notRetried(row: JobRow): WhyReason[] {
  const { policy, errors } = row;
  const error = errors?.at(-1);
  if (!policy || !error || error.kind === "total" || error.kind === "enqueue_ttl") return [];
  const { attempts, except, onStall } = policy.retry;
  const said = (field: PolicyField) => byField(row, field);
  const why =
    row.attempt >= attempts
      ? `${attempts === 1 ? "Its only attempt was" : `All ${attempts} attempts were`} used (attempts${said("attempts")}).`
      : error.type === "timeout" && policy.mode === "discard"
        ? `Its mode is discard${said("mode")}, so a timeout is not retried.`
        : error.kind === "stalled" && onStall === "discard"
          ? `onStall is discard${said("onStall")}, so a stall is not retried.`
          : isExcepted(except, error.type)
            ? `retry.except names ${error.type}${said("except")}.`
            : "Its handler or worker said that no retry can help.";
  return [
    reason("not_retried", why, {
      action: act("change-code", "Change its retry policy if more attempts would help.", row.type),
    }),
  ];
}

function byHand(row: JobRow): WhyReason {
  if (row.options?.step) {
    const sentence = "It cannot be retried by hand: it is a step of a workflow, which has counted its end.";
    const action = act("look-at-workflow", "Start the workflow again.", row.workflow);
    return reason("retry_by_hand", sentence, { action });
  }
  const total = row.options?.total;
  const budget = total === undefined ? "without a total" : `with its whole total of ${formatDuration(total)}`;
  const sentence = `A retry by hand would fit: it starts anew ${budget} and with all of its attempts.`;
  const until = row.pruneAt;
  const action = act("retry", `Call engine.retry("${row.id}").`, row.id);
  return reason("retry_by_hand", sentence, { until, action });
}
