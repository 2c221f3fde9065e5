import { checkCount, refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import { type Duration, parseDuration } from "../time.ts";

/** What a tenant may use, as it is stored. A field that is left out bounds nothing. */
export interface TenantLimits {
  /** The most jobs that are enqueued in any period of `per` milliseconds, by one process. */
  readonly rate?: { readonly limit: number; readonly per: number };
  /** The most active jobs, over all queues of the tenant. */
  readonly active?: number;
  /** The most waiting jobs, over all queues of the tenant: available, pending, scheduled and retryable ones. */
  readonly waiting?: number;
  /** The most bytes of a job's payload. */
  readonly payloadBytes?: number;
}

/** Limits as a caller writes them. */
export interface TenantLimitOptions extends Omit<TenantLimits, "rate"> {
  readonly rate?: { readonly limit: number; readonly per: Duration };
}

const MOST = 1_000_000_000;
const KEYS = keysOf<TenantLimitOptions>({ rate: true, active: true, waiting: true, payloadBytes: true });

export function parseTenantLimits(options: TenantLimitOptions, field: string): TenantLimits {
  refuseUnknownKeys(options, field, KEYS);
  const { rate, active, waiting, payloadBytes } = options;
  return {
    ...(rate !== undefined && { rate: parseRate(rate, `${field}.rate`) }),
    ...(active !== undefined && { active: checkCount(active, `${field}.active`, MOST) }),
    ...(waiting !== undefined && { waiting: checkCount(waiting, `${field}.waiting`, MOST) }),
    ...(payloadBytes !== undefined && {
      payloadBytes: checkCount(payloadBytes, `${field}.payloadBytes`, MOST),
    }),
  };
}

function parseRate(rate: NonNullable<TenantLimitOptions["rate"]>, field: string) {
  if (typeof rate !== "object" || rate === null)
    throw refuse("invalid_option", field, rate, 'write { limit: 100, per: "1m" }');
  refuseUnknownKeys(rate, field, ["limit", "per"]);
  return {
    limit: checkCount(rate.limit, `${field}.limit`, MOST),
    per: parseDuration(rate.per, `${field}.per`),
  };
}
