import type { FiredTimeouts, NearMiss } from "../../ojs/replies/timeout-replies.ts";
import type {
  BulkResult,
  BulkTarget,
  Events,
  Explanation,
  Job,
  Logs,
  Progress,
  Scanned,
} from "../../ojs/replies/wire-replies.ts";
import { api, part, type Query, type Result } from "./client.ts";

/** What pages ask about jobs, and do to them. */

const path = (id: string) => `/jobs/${part(id)}`;

async function unwrapped<Key extends string, Value>(
  name: Key,
  asked: Promise<Result<Readonly<Record<Key, Value>>>>,
): Promise<Result<Value>> {
  const result = await asked;
  return result.ok ? { ok: true, data: result.data[name] } : result;
}

export const readJob = (id: string, signal?: AbortSignal) =>
  unwrapped<"job", Job>("job", api.get(path(id), {}, signal));
export const readExplanation = (id: string, signal?: AbortSignal) =>
  unwrapped<"explanation", Explanation>("explanation", api.get(`${path(id)}/explain`, {}, signal));
export const readHistory = (id: string, signal?: AbortSignal) =>
  api.get<Events>(`/events/${part(id)}/history`, {}, signal);
export const readLogs = (id: string, signal?: AbortSignal) => api.get<Logs>(`${path(id)}/logs`, {}, signal);
export const readProgress = (id: string, signal?: AbortSignal) =>
  api.get<Progress>(`${path(id)}/progress`, {}, signal);
export const findJobs = (query: Query, signal?: AbortSignal) =>
  api.get<Scanned<Job>>("/admin/jobs", query, signal);
export const findFiredTimeouts = (query: Query, signal?: AbortSignal) =>
  api.get<FiredTimeouts>("/admin/timeouts-fired", query, signal);
export const findNearMisses = (query: Query, signal?: AbortSignal) =>
  api.get<Scanned<NearMiss>>("/admin/jobs/near-misses", query, signal);

export const retryJob = (id: string, keepsDeadline: boolean, reason: string) =>
  api.post(`/admin${path(id)}/retry`, { keep_deadline: keepsDeadline }, reason);
export const cancelJob = (id: string, reason: string) => api.post(`/admin${path(id)}/cancel`, {}, reason);
export const prioritiseJob = (id: string, priority: number, reason: string) =>
  api.patch(`/admin${path(id)}`, { priority }, reason);
/** What is left of a delay or a backoff is dropped. */
export const runJobNow = (id: string, reason: string) => api.post(`/admin${path(id)}/run`, {}, reason);
export const activateJob = (id: string, reason: string) => api.post(`${path(id)}/activate`, {}, reason);
export const extendJob = (
  id: string,
  limits: { readonly attempt?: number | undefined; readonly total?: number | undefined },
  reason: string,
) =>
  api.patch(
    path(id),
    {
      ...(limits.attempt !== undefined && { timeout_ms: limits.attempt }),
      ...(limits.total !== undefined && { total_timeout_ms: limits.total }),
    },
    reason,
  );
/** The server fills in what is redacted in `body` from the job. */
export const enqueueCopy = (id: string, body: unknown) =>
  unwrapped<"job", Job>("job", api.post(`/admin${path(id)}/copy`, body));
/** The job with what is redacted. The audit records it. */
export const revealJob = (id: string, reason: string) =>
  unwrapped<"job", Job>("job", api.post(`/admin${path(id)}/reveal`, {}, reason));

export type BulkAction = "retry" | "cancel" | "delete";

export const previewBulk = (action: BulkAction, target: BulkTarget) =>
  api.post<BulkResult>(`/admin/jobs/bulk/${action}`, { ...target, dry_run: true });
export const runBulk = (action: BulkAction, target: BulkTarget, reason: string, cursor?: string | null) =>
  api.post<BulkResult>(
    `/admin/jobs/bulk/${action}`,
    { ...target, confirm: true, limit: 1_000, ...(cursor && { cursor }) },
    reason,
  );
