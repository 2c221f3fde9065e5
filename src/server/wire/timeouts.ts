import { z } from "zod";
import { visibleOptions, visibleText } from "../../core/job/documents/redaction.ts";
import type { JobOptions } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { JOB_DESTINATION } from "../../engine/dispatch/job-destination.ts";
import type { Timeout } from "../../engine/dispatch/timeout-view.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { pagination } from "./admin-replies.ts";
import { instant } from "./replies.ts";

const timeoutFieldSchemas = {
  id: z.string(),
  destination: z.string(),
  state: z.enum(["pending", "leased", "dead"]),
  due_at: instant,
  key: z.string().nullable(),
  saga: z
    .looseObject({ type: z.string(), id: z.string(), kind: z.enum(["timeout", "message", "undo"]) })
    .nullable()
    .meta({
      description: "The saga that it belongs to. A message is stored as a timeout that is due at once.",
    }),
  name: z.string().nullable().meta({ description: "Of a saga: the name of the timeout or message." }),
  lease_until: instant.nullable(),
  tries: z.int().min(0),
  dead_at: instant.nullable(),
  error: z.string().nullable(),
};

export const timeout = z.looseObject(timeoutFieldSchemas).meta({ id: "Timeout" });

export const timeoutsReply = z.looseObject({ items: z.array(timeout), pagination }).meta({ id: "Timeouts" });
export const timeoutReply = z
  .looseObject({ ...timeoutFieldSchemas, payload: z.any(), headers: z.record(z.string(), z.any()) })
  .meta({ id: "TimeoutDetail", description: "Headers that are bytes are shown as {base64}." });
export const revokedReply = z
  .looseObject({ id: z.string(), revoked: z.literal(true), was: z.enum(["pending", "leased", "dead"]) })
  .meta({
    id: "RevokedTimeout",
    description: "A handler may be running for one that was leased; nothing of a saga's handler counts then.",
  });

function atText(at: Instant | null): string | null {
  return at === null ? null : instantText(at);
}

/** The key kind of a saga's messages. */
const MAIL = "mail";

function sagaFields({ saga, headers }: Timeout) {
  if (saga === null || (saga[0] !== "saga" && saga[0] !== MAIL) || !saga[1].startsWith("[")) return null;
  const [type, id] = JSON.parse(saga[1]) as [string, string];
  const kind = saga[0] === MAIL ? "message" : "undo" in headers ? "undo" : "timeout";
  return { type, id, kind };
}

/** A timeout in a list: without its payload and headers, which may be large. */
export function timeoutFields(one: Timeout) {
  const { message = null, undo = message, timeout: name = undo } = one.headers;
  const saga = sagaFields(one);
  return {
    id: one.id,
    destination: one.destination,
    state: one.deadAt !== null ? "dead" : one.owner !== null ? "leased" : "pending",
    due_at: instantText(one.dueAt),
    key: one.key,
    saga,
    name: saga !== null && typeof name === "string" ? name : null,
    lease_until: atText(one.leaseUntil),
    tries: one.tries,
    dead_at: atText(one.deadAt),
    error: one.error,
  };
}

export function timeoutDetail(one: Timeout) {
  return { ...timeoutFields(one), payload: visiblePayload(one), headers: headerFields(one.headers) };
}

/** A delayed job is stored whole. Its payload is a text in it, and its options have its meta. */
export function visiblePayload({
  destination,
  payload,
}: Pick<Timeout, "destination" | "payload">): Timeout["payload"] {
  if (destination !== JOB_DESTINATION || typeof payload !== "object" || payload === null) return payload;
  const job = payload as {
    readonly payload?: unknown;
    readonly options?: JobOptions;
  };
  if (typeof job.payload !== "string" || !job.options?.redact) return payload;
  const { redact } = job.options;
  const options = visibleOptions(job.options, redact) as unknown as Json;
  return { ...payload, payload: visibleText(job.payload, redact, "payload"), options };
}

function headerFields(headers: Timeout["headers"]): { readonly [name: string]: Json } {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value,
    ]),
  );
}
