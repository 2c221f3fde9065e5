import type { Fields } from "../target/target.ts";

/** The most characters of a reply: a model reads all of it, and pays for it. */
const LONGEST_REPLY = 40_000;
const LONGEST_TEXT = 2_000;
const LONGEST_ERROR = 300;

/** What a list shows of a job. */
const BRIEF = [
  "id",
  "state",
  "type",
  "queue",
  "priority",
  "attempt",
  "max_attempts",
  "max_attempts_assumed",
  "created_at",
  "scheduled_at",
  "started_at",
  "completed_at",
  "cancelled_at",
  "discarded_at",
  "next_attempt_at",
  "dead_letter",
  "workflow_id",
] as const;

export function briefJob(job: Fields): Fields {
  const { error } = job;
  const brief = Object.fromEntries(
    BRIEF.flatMap((name) => (job[name] === undefined ? [] : [[name, job[name]]])),
  );
  if (typeof error !== "object" || error === null) return brief;
  const { code, message } = error as Fields;
  return { ...brief, error: { code, message: cut(String(message ?? ""), LONGEST_ERROR) } };
}

/** What is shown of a job whose payload is hidden. A list of what may be shown: a job may have fields of any name. */
const PUBLIC = [
  ...BRIEF,
  "expires_at",
  "timeout_ms",
  "total_timeout_ms",
  "enqueue_ttl_ms",
  "grace_period_ms",
  "heartbeat_timeout_ms",
  "progress",
  "error",
  "errors",
] as const;

export function wholeJob(job: Fields, hidePayloads: boolean): Fields {
  if (!hidePayloads) return job;
  const shown = PUBLIC.flatMap((name) => (job[name] === undefined ? [] : [[name, job[name]]]));
  return { ...Object.fromEntries(shown), payload: "hidden" };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} characters more)`;
}

/** JSON with long texts cut, and as a whole at most as long as a reply may be. */
export function boundedText(value: unknown): string {
  const text = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === "string" ? cut(each, LONGEST_TEXT) : each,
  );
  return cut(text ?? "null", LONGEST_REPLY);
}
