import { z } from "zod";
import type { Json } from "../../core/schema.ts";
import type { RetryByHandOptions } from "../../engine/operations/retry-by-hand.ts";
import { HttpError } from "../http/http-error.ts";
import { readPolicy } from "./enqueue.ts";
import { emptySchema, optional, retrySchema } from "./schemas.ts";

export const overrideSchema = z
  .looseObject({
    retry: optional(retrySchema).meta({ description: "Replaces the fields that are named." }),
    meta: optional(z.record(z.string(), z.any())).meta({
      description: "Replaces the fields that are named, and keeps the others. At most 4 kB.",
    }),
    priority: optional(z.int().min(-100).max(100)),
  })
  .meta({
    id: "RetryOverride",
    description: "What changes with the retry. The type, the queue and the arguments of a job never change.",
  });

export const retryJobSchema = z
  .looseObject({
    keep_deadline: optional(z.boolean()),
    override: optional(overrideSchema),
    reason: emptySchema.unwrap().unwrap().shape.reason,
  })
  .nullish()
  .meta({ id: "RetryRequest" });

const KNOWN = ["retry", "meta", "priority"];

/** The options of a manual retry. A change that cannot be made is refused: dropped, it would look as if it was made. */
export function readRetryByHand(
  body:
    | {
        readonly keep_deadline?: boolean | null | undefined;
        readonly override?: z.output<typeof overrideSchema> | null | undefined;
      }
    | null
    | undefined,
): RetryByHandOptions {
  const { keep_deadline: keepDeadline, override } = body ?? {};
  const said = Object.entries(override ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const unknown = said.find(([name]) => !KNOWN.includes(name));
  if (unknown) throw fixed(unknown[0]);
  const { retry } = readPolicy({ ...(override?.retry && { retry: override.retry }) });
  return {
    ...(keepDeadline && { keepDeadline }),
    ...(said.length > 0 && {
      override: {
        ...(retry && { retry, wireRetry: override?.retry as { readonly [key: string]: Json } }),
        ...(override?.meta && { meta: override.meta }),
        ...(override?.priority != null && { priority: override.priority }),
      },
    }),
  };
}

function fixed(name: string): HttpError {
  const field = `override.${name}`;
  const fix = ["type", "queue", "args"].includes(name)
    ? "it never changes; enqueue a copy with POST /ojs/v1/admin/jobs/{id}/copy, and delete this job"
    : "only retry, meta and priority change with a retry";
  return new HttpError(422, "unsupported", `${field}: ${fix}`, { details: { field } });
}
