import type { ErrorRecord } from "../core/job/job.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";

/**
 * Formats of recent seconds, cached: formatting a date costs more than everything else about a small job, and most
 * instants lie within a few seconds.
 */
const SLOTS = 64;
const seconds = new Float64Array(SLOTS).fill(Number.NaN);
const texts: string[] = new Array(SLOTS).fill("");
const MILLISECONDS = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

/** An instant in the format of the wire. */
export function instantText(at: Instant): string {
  const second = Math.floor(at / 1_000);
  const slot = Math.abs(second % SLOTS);
  if (seconds[slot] !== second) {
    texts[slot] = new Date(second * 1_000).toISOString().slice(0, -4);
    seconds[slot] = second;
  }
  return `${texts[slot]}${MILLISECONDS[Math.floor(at - second * 1_000)]}`;
}

/** An error in the format of the wire. */
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
 * The note of a progress report in the format of the wire, where a note has a message and data. A local processor may
 * note any value: a text becomes the message, any other value becomes the data.
 */
export function noteFields(note: Json | undefined): NoteFields {
  if (typeof note === "string") return { message: note, data: null, updated_at: null };
  const { at, message = null, data = null } = (note ?? {}) as { at?: Json; message?: Json; data?: Json };
  if (typeof at !== "number") return { message: null, data: note ?? null, updated_at: null };
  return { message, data, updated_at: instantText(at) };
}
