import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { EventOf, RetryChanges } from "../../core/job/decide/job-events.ts";
import { copyMeta, metaOf } from "../../core/job/enqueue/job-meta.ts";
import { checkPriority } from "../../core/job/job-definition.ts";
import { parseRetry, type RetryOptions } from "../../core/job/policy/retry.ts";
import { type Json, toJsonText } from "../../core/schema.ts";

/** What else a manual retry changes. The type, the queue and the payload of a job never change. */
export interface RetryOverride {
  /** Replaces the fields of the retry policy that are named. */
  readonly retry?: RetryOptions;
  /** Replaces the fields of meta that are named, and keeps the others. At most 4 kB. */
  readonly meta?: { readonly [key: string]: unknown };
  readonly priority?: number;
  /** For servers: the retry policy in the words of their protocol. */
  readonly wireRetry?: { readonly [key: string]: Json };
}

export interface RetryByHandOptions {
  /** Keeps the old `total` and `wait` deadlines; otherwise both count from now. */
  readonly keepDeadline?: boolean;
  /** Changes the job with the same commit. */
  readonly override?: RetryOverride;
}

export const RETRY_BY_HAND_KEYS = ["keepDeadline", "override"] as const;

const META_LIMIT = 4_096;

/** The event of a manual retry by an engine of this tenant, or of none. */
export function parseRetryByHand(
  { keepDeadline = false, override }: RetryByHandOptions,
  tenant: string | null,
  field: string,
): EventOf<"retry"> {
  if (typeof keepDeadline !== "boolean")
    throw refuse("invalid_option", `${field}.keepDeadline`, keepDeadline, "use true or false");
  const changes = override && parseOverride(override, tenant, `${field}.override`);
  return { type: "retry", ...(keepDeadline && { keepDeadline }), ...(changes && { changes }) };
}

function parseOverride(override: RetryOverride, tenant: string | null, field: string): RetryChanges {
  refuseUnknownKeys(override, field, ["retry", "meta", "priority", "wireRetry"]);
  const { retry, meta, priority, wireRetry } = override;
  if (meta !== undefined) {
    toJsonText(meta, `${field}.meta`, META_LIMIT);
    if (tenant !== null) metaOf(tenant, copyMeta(meta));
  }
  return {
    ...(retry !== undefined && { retry: parseRetry(retry, `${field}.retry`) }),
    ...(meta !== undefined && { meta: copyMeta(meta) }),
    ...(priority !== undefined && { priority: checkPriority(priority, `${field}.priority`) }),
    ...(wireRetry && { wireRetry }),
  };
}
