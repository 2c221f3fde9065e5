import { api, part } from "./client.ts";
import type { Page, Rate } from "./wire.ts";

/** Webhooks, schemas, calendars, tenants and fair shares: what is set up once and looked at when something is odd. */

type Cursor = string | null | undefined;
const PER_PAGE = 50;

// Webhooks
export interface Webhook {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly filter?: { readonly queues?: readonly string[]; readonly job_types?: readonly string[] };
  readonly active: boolean;
  readonly ordered: boolean;
  readonly batch: { readonly max_events: number; readonly max_wait: string } | null;
  readonly timeout: string;
  readonly retry: { readonly max_attempts: number; readonly delays: readonly string[] };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly created_at: string;
  readonly updated_at: string;
  readonly circuit: { readonly state: "closed" | "open" | "half-open"; readonly until: string | null };
  readonly success_count: number;
  readonly failure_count: number;
  readonly dead_count: number;
  readonly last_delivery_at: string | null;
  readonly last_failure_at: string | null;
  readonly last_error: string | null;
}

export const DELIVERY_STATES = ["waiting", "calling", "retrying", "delivered", "dead", "cancelled"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export interface Delivery {
  readonly id: string;
  readonly subscription_id: string;
  readonly status: DeliveryState;
  readonly events: readonly { readonly id: string; readonly type: string; readonly job_id: string | null }[];
  readonly event_types: readonly string[];
  readonly attempts: number;
  readonly created_at: string;
  readonly completed_at: string | null;
  readonly next_attempt_at: string | null;
  readonly response: {
    readonly status_code: number;
    readonly response_time_ms: number;
    readonly response_body: string;
  } | null;
  readonly errors: readonly {
    readonly occurred_at: string;
    readonly attempt: number;
    readonly code: string;
    readonly message: string;
  }[];
  readonly redelivery_of: string | null;
}

export interface WebhookTest {
  readonly success: boolean;
  readonly status_code: number | null;
  readonly response_time_ms: number;
  readonly response_body: string;
  readonly error: string | null;
}

const HOOKS = "/webhooks/subscriptions";
const hookPath = (id: string) => `${HOOKS}/${part(id)}`;
export const readWebhooks = (cursor: Cursor, signal?: AbortSignal) =>
  api.get<Page<Webhook>>(HOOKS, { cursor, per_page: PER_PAGE }, signal);
export const readWebhook = (id: string, signal?: AbortSignal) =>
  api.get<{ readonly subscription: Webhook }>(hookPath(id), {}, signal);
export const createWebhook = (options: object, reason: string) =>
  api.post<{ readonly id: string; readonly secret?: string }>(HOOKS, options, reason);
export const changeWebhook = (id: string, change: object, reason: string) =>
  api.patch(hookPath(id), change, reason);
export const deleteWebhook = (id: string, reason: string) => api.delete(hookPath(id), undefined, reason);
export const testWebhook = (id: string) => api.post<WebhookTest>(`${hookPath(id)}/test`);
export const rotateSecret = (id: string, overlap: string, reason: string) =>
  api.post<{ readonly secret?: string }>(`${hookPath(id)}/rotate-secret`, { overlap }, reason);
export const readDeliveries = (
  filter: { readonly webhook?: string | null; readonly status?: string | null },
  cursor: Cursor,
  signal?: AbortSignal,
) =>
  api.get<Page<Delivery>>(
    "/webhooks/deliveries",
    { subscription_id: filter.webhook, status: filter.status, cursor, per_page: PER_PAGE },
    signal,
  );
export const redeliver = (id: string, reason: string) =>
  api.post(`/webhooks/deliveries/${part(id)}/redeliver`, {}, reason);

// Schemas
export type Version = number | string;
export interface SchemaSummary {
  readonly type: string;
  readonly version: Version;
  readonly versions: readonly Version[];
  readonly validation: "named" | "always";
  readonly compatibility: "none" | "backward" | "forward" | "full";
}
export interface JobSchema extends Omit<SchemaSummary, "versions"> {
  readonly uri: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly created_at: string;
}
export interface SchemaCheck {
  readonly compatible: boolean;
  readonly valid: boolean;
  readonly reasons: readonly string[];
}
const schemaPath = (type: string) => `/admin/schemas/${part(type)}`;
export const readSchemas = (cursor: Cursor, signal?: AbortSignal) =>
  api.get<Page<SchemaSummary>>("/admin/schemas", { cursor, per_page: PER_PAGE }, signal);
export const readVersions = (type: string, signal?: AbortSignal) =>
  api.get<SchemaSummary>(`${schemaPath(type)}/versions`, {}, signal);
export const readSchema = (type: string, version: string, signal?: AbortSignal) =>
  api.get<JobSchema>(`${schemaPath(type)}/${part(version)}`, {}, signal);
export const checkArgs = (type: string, version: Version, args: readonly unknown[]) =>
  api.post<SchemaCheck>(`${schemaPath(type)}/check`, { args, version });
export const checkSchema = (type: string, schema: object) =>
  api.post<SchemaCheck>(`${schemaPath(type)}/check`, { schema });
export const publishSchema = (type: string, schema: object, reason: string) =>
  api.put<JobSchema>(schemaPath(type), { schema }, reason);
export const configureSchema = (type: string, rules: object, reason: string) =>
  api.patch(schemaPath(type), rules, reason);
export const deleteSchema = (type: string, version: Version, reason: string) =>
  api.delete(`${schemaPath(type)}/${part(String(version))}`, undefined, reason);

// Calendars
export const WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEK)[number];
export interface CalendarDay {
  readonly date: string;
  /** Left out: closed all day. */
  readonly hours?: string;
  readonly name?: string;
}
export interface Calendar {
  readonly name: string;
  readonly zone: string;
  readonly week: Readonly<Partial<Record<Weekday, string>>>;
  readonly days: readonly CalendarDay[];
  /** The last day for which the days are complete. */
  readonly until?: string | null;
}
export interface ExplainedTime {
  readonly at: string;
  readonly local: string;
  readonly zone: string;
  readonly text: string;
}
const calendarPath = (name: string) => `/admin/calendars/${part(name)}`;
export const readCalendars = (cursor: Cursor, signal?: AbortSignal) =>
  api.get<Page<Calendar>>("/admin/calendars", { cursor, per_page: PER_PAGE }, signal);
export const readCalendar = (name: string, signal?: AbortSignal) =>
  api.get<{ readonly calendar: Calendar }>(calendarPath(name), {}, signal);
export const putCalendar = (name: string, calendar: object, reason: string) =>
  api.put<{ readonly moved: number }>(calendarPath(name), calendar, reason);
export const deleteCalendar = (name: string, reason: string) =>
  api.delete(calendarPath(name), undefined, reason);
export const explainTime = (when: object) => api.post<ExplainedTime>("/admin/when", { when });

// Tenants
export interface Tenant {
  readonly tenant_id: string;
  readonly created_at: string;
  readonly limits: {
    readonly max_concurrency: number | null;
    readonly max_enqueue_rate: Rate | null;
    readonly max_queue_depth: number | null;
    readonly max_payload_bytes: number | null;
  };
  readonly jobs?: { readonly active: number; readonly waiting: number };
}
const tenantPath = (id: string) => `/admin/tenants/${part(id)}`;
export const readTenants = (cursor: Cursor, signal?: AbortSignal) =>
  api.get<Page<Tenant>>("/admin/tenants", { cursor, per_page: PER_PAGE }, signal);
export const putTenantLimits = (id: string, limits: object, reason: string) =>
  api.put(`${tenantPath(id)}/limits`, limits, reason);
export const removeTenant = (id: string, reason: string) => api.delete(tenantPath(id), undefined, reason);

// Fair queues
export interface Shares {
  readonly fair: boolean;
  readonly items: readonly {
    /** Empty: the jobs without a key. */
    readonly key: string;
    readonly weight: number;
    readonly share: number;
    readonly waiting: number;
    readonly next_due_at: string;
  }[];
  readonly has_more: boolean;
}
export const readShares = (queue: string, signal?: AbortSignal) =>
  api.get<Shares>(`/admin/queues/${part(queue)}/shares`, {}, signal);
