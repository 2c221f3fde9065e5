import type {
  Calendar,
  Delivery,
  ExplainedTime,
  JobSchema,
  SchemaCheck,
  SchemaSummary,
  Shares,
  Tenant,
  Version,
  Webhook,
  WebhookTest,
} from "../../ojs/replies/settings-replies.ts";
import type { Page } from "../../ojs/replies/wire-replies.ts";
import { api, type Cursor, listAt, PER_PAGE, part } from "./client.ts";

/** Webhooks, schemas, calendars, tenants and fair shares: what is set up once and looked at when something is odd. */

// Webhooks

const HOOKS = "/webhooks/subscriptions";
const hookPath = (id: string) => `${HOOKS}/${part(id)}`;
export const readWebhooks = listAt<Webhook>(HOOKS);
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
const schemaPath = (type: string) => `/admin/schemas/${part(type)}`;
export const readSchemas = listAt<SchemaSummary>("/admin/schemas");
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
const calendarPath = (name: string) => `/admin/calendars/${part(name)}`;
export const readCalendars = listAt<Calendar>("/admin/calendars");
export const readCalendar = (name: string, signal?: AbortSignal) =>
  api.get<{ readonly calendar: Calendar }>(calendarPath(name), {}, signal);
export const putCalendar = (name: string, calendar: object, reason: string) =>
  api.put<{ readonly moved: number }>(calendarPath(name), calendar, reason);
export const deleteCalendar = (name: string, reason: string) =>
  api.delete(calendarPath(name), undefined, reason);
export const explainTime = (when: object) => api.post<ExplainedTime>("/admin/when", { when });

// Tenants
const tenantPath = (id: string) => `/admin/tenants/${part(id)}`;
export const readTenants = listAt<Tenant>("/admin/tenants");
export const putTenantLimits = (id: string, limits: object, reason: string) =>
  api.put(`${tenantPath(id)}/limits`, limits, reason);
export const removeTenant = (id: string, reason: string) => api.delete(tenantPath(id), undefined, reason);

// Fair queues
export const readShares = (queue: string, signal?: AbortSignal) =>
  api.get<Shares>(`/admin/queues/${part(queue)}/shares`, {}, signal);
