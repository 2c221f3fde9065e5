import { z } from "zod";
import type { TenantLimitOptions, TenantLimits } from "../../core/tenant/tenant-limits.ts";
import type { TenantView } from "../../engine/tenants/tenants.ts";
import { isoDuration } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { rateOf, rateSchema } from "./limit.ts";

/** The limits of a tenant by their names on the wire. */
export const TENANT_LIMITS = {
  rate: "max_enqueue_rate",
  active: "max_concurrency",
  waiting: "max_queue_depth",
  payloadBytes: "max_payload_bytes",
} as const satisfies Record<keyof TenantLimits, string>;

const most = z.int().min(1).max(1_000_000_000).nullish();

const limitFields = {
  max_concurrency: most.meta({ description: "The most active jobs of the tenant, over all its queues." }),
  max_enqueue_rate: rateSchema.nullish(),
  max_queue_depth: most.meta({ description: "The most waiting jobs of the tenant, over all its queues." }),
  max_payload_bytes: most.meta({ description: "The most bytes of a job's arguments." }),
};

const limitsSchema = z.strictObject(limitFields);

const reason = z.string().max(500).optional();

export const tenantSchema = z
  .strictObject({ limits: limitsSchema.optional(), reason })
  .meta({ id: "TenantRequest", description: "Limits that are left out or null bound nothing." });

export const tenantLimitsSchema = z
  .strictObject({ ...limitFields, reason })
  .meta({ id: "TenantLimits", description: "Replaces all limits of the tenant." });

const count = z.int().min(0);

export const tenantReply = z
  .looseObject({ tenant_id: z.string(), created_at: z.string(), limits: z.looseObject({}) })
  .meta({ id: "Tenant" });

export const tenantsReply = z.looseObject({
  items: z.array(tenantReply),
  tenants: z.array(tenantReply),
  pagination: z.looseObject({}),
});

export const tenantStatsReply = z
  .looseObject({
    tenant_id: z.string(),
    total_jobs: count,
    jobs: z.looseObject({ available: count, active: count, scheduled: count }),
    limits: z.looseObject({}),
  })
  .meta({ id: "TenantStats" });

export function readTenantLimits(body: z.output<typeof limitsSchema>): TenantLimitOptions {
  const { max_concurrency, max_enqueue_rate, max_queue_depth, max_payload_bytes } = body;
  return {
    ...(max_concurrency != null && { active: max_concurrency }),
    ...(max_enqueue_rate != null && { rate: rateOf(max_enqueue_rate) }),
    ...(max_queue_depth != null && { waiting: max_queue_depth }),
    ...(max_payload_bytes != null && { payloadBytes: max_payload_bytes }),
  };
}

export function tenantLimitFields({ rate, active, waiting, payloadBytes }: TenantLimits) {
  return {
    max_concurrency: active ?? null,
    max_enqueue_rate: rate ? { limit: rate.limit, period: isoDuration(rate.per) } : null,
    max_queue_depth: waiting ?? null,
    max_payload_bytes: payloadBytes ?? null,
  };
}

/** `id` and `name` are for the public admin page. */
export function tenantFields({ name, createdAt, limits }: TenantView) {
  return {
    id: name,
    tenant_id: name,
    name,
    created_at: instantText(createdAt),
    limits: tenantLimitFields(limits),
  };
}
