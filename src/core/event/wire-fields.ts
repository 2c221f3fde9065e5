import type { ErrorRecord } from "../job/job.ts";
import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";

/** A job is written several times in its life, and many jobs in one millisecond, so texts are kept for a while. */
const SLOTS = 1_024;
const instants = new Float64Array(SLOTS).fill(-1);
const texts: string[] = new Array(SLOTS).fill("");

/** An instant as it is written on the wire. */
export function instantText(at: Instant): string {
  const slot = at % SLOTS;
  if (instants[slot] === at) return texts[slot] as string;
  const text = new Date(at).toISOString();
  instants[slot] = at;
  texts[slot] = text;
  return text;
}

/** An error as it is written on the wire. */
export function errorFields(record: ErrorRecord): { readonly [key: string]: unknown } {
  const { type, code, message, attempt, at, kind, limit, elapsed, details, stack, cause } = record;
  return {
    type,
    code,
    message,
    attempt,
    occurred_at: instantText(at),
    ...(kind && { timeout_kind: kind }),
    ...(limit !== undefined && { limit_seconds: limit / 1_000 }),
    ...(elapsed !== undefined && { elapsed_seconds: elapsed / 1_000 }),
    ...(record.predicted && { predicted: true }),
    ...(record.forced && { forced: true }),
    ...(details !== undefined && { details }),
    ...(cause && { cause: { type: cause.type, code: cause.code, message: cause.message } }),
    ...(stack !== undefined && { backtrace: stack.split("\n") }),
  };
}

interface NoteFields {
  readonly message: Json;
  readonly data: Json;
  readonly updated_at: string | null;
}

/**
 * What was noted with a progress report. Over the wire a note is a message and data; a processor in an engine notes
 * whatever it likes, which is the message if it is a text, and data otherwise.
 */
export function noteFields(note: Json | undefined): NoteFields {
  if (typeof note === "string") return { message: note, data: null, updated_at: null };
  const { at, message = null, data = null } = (note ?? {}) as { at?: Json; message?: Json; data?: Json };
  if (typeof at !== "number") return { message: null, data: note ?? null, updated_at: null };
  return { message, data, updated_at: instantText(at) };
}
