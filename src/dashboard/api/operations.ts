import type { Cron, CronRun } from "../../ojs/replies/cron-replies.ts";
import type { History } from "../../ojs/replies/history-replies.ts";
import type {
  AdaptiveRule,
  Advice,
  AuditEntry,
  DeadLetterStats,
  Doctor,
  Events,
  Health,
  Job,
  Limit,
  Maintenance,
  Page,
  PriorityStats,
  Queue,
  Queues,
  ServerConfig,
  UniqueKey,
  Workers,
  Workflow,
} from "../../ojs/replies/wire-replies.ts";
import { api, type Cursor, listAt, PER_PAGE, part } from "./client.ts";
import { findJobs } from "./jobs.ts";

/** What pages ask about everything but single jobs, and do to it. Lists are read a page at a time. */

// Queues
const queuePath = (name: string) => `/admin/queues/${part(name)}`;
export const readQueues = (signal?: AbortSignal) =>
  api.get<Queues>("/admin/queues", { per_page: 200 }, signal);
export const readQueue = (name: string, signal?: AbortSignal) => api.get<Queue>(queuePath(name), {}, signal);
export const readPriorities = (name: string, signal?: AbortSignal) =>
  api.get<PriorityStats>(`/queues/${part(name)}/priority-stats`, {}, signal);
export const readQueueHistory = (queue: string, since: number, period: string, signal?: AbortSignal) =>
  api.get<History>("/admin/stats/history", { queue, period, since: new Date(since).toISOString() }, signal);
/** What the doctor of the command line finds. Only operators may ask. */
export const readDoctor = (signal?: AbortSignal) => api.get<Doctor>("/admin/doctor", {}, signal);
export const readOldestWaiting = (queue: string, signal?: AbortSignal) =>
  findJobs({ queue, state: "available", order: "asc", per_page: 1 }, signal);
export const pauseQueue = (name: string, reason: string) => api.post(`${queuePath(name)}/pause`, {}, reason);
export const resumeQueue = (name: string, reason: string) =>
  api.post(`${queuePath(name)}/resume`, {}, reason);
export const configureQueue = (name: string, settings: object, reason: string) =>
  api.put(`${queuePath(name)}/config`, settings, reason);
export const purgeQueue = (name: string, states: readonly string[], reason: string) =>
  api.delete<{ readonly purged_count: number; readonly is_complete: boolean }>(
    `${queuePath(name)}/jobs`,
    { states, confirm: true },
    reason,
  );

// Workers
export const readWorkers = (signal?: AbortSignal) =>
  api.get<Workers>("/admin/workers", { per_page: 200 }, signal);
export type Directive = "quiet" | "terminate" | "resume";
export const directWorker = (id: string, directive: Directive, reason: string) =>
  api.post(`/admin/workers/${part(id)}/${directive}`, {}, reason);
export const forgetWorker = (id: string, reason: string) =>
  api.delete(`/admin/workers/${part(id)}`, {}, reason);
export const readEvents = (types: string, limit: number, signal?: AbortSignal) =>
  api.get<Events>("/events", { types, limit }, signal);

// Crons
const cronPath = (name: string) => `/cron/${part(name)}`;
export const readCrons = (cursor: Cursor, enabled: string | null, signal?: AbortSignal) =>
  api.get<Page<Cron>>("/cron", { cursor, enabled, per_page: PER_PAGE }, signal);
export const readCron = (name: string, signal?: AbortSignal) =>
  api.get<{ readonly cron: Cron }>(`/crons/${part(name)}`, {}, signal);
export const readCronRuns = (name: string, signal?: AbortSignal) =>
  api.get<{ readonly runs: readonly CronRun[] }>(`${cronPath(name)}/history`, {}, signal);
export const triggerCron = (name: string, reason: string) =>
  api.post<{ readonly job_id: string }>(`${cronPath(name)}/trigger`, {}, reason);
export const setCronEnabled = (name: string, isEnabled: boolean, reason: string) =>
  api.post(`${cronPath(name)}/${isEnabled ? "resume" : "pause"}`, {}, reason);
export const changeCron = (name: string, change: object, reason: string) =>
  api.patch(cronPath(name), change, reason);
export const deleteCron = (name: string, reason: string) => api.delete(cronPath(name), {}, reason);

// Workflows
interface WorkflowQuery {
  readonly state: string | null;
  readonly order: "asc" | "desc";
  readonly cursor: Cursor;
}

export const readWorkflows = (asked: WorkflowQuery, signal?: AbortSignal) =>
  api.get<Page<Workflow>>("/workflows", { ...asked, per_page: PER_PAGE }, signal);
export const readWorkflow = (id: string, signal?: AbortSignal) =>
  api.get<{ readonly workflow: Workflow }>(`/workflows/${part(id)}`, {}, signal);
export const cancelWorkflow = (id: string, reason: string) =>
  api.post(`/workflows/${part(id)}/cancel`, {}, reason);

// Dead letters
export interface LetterFilter {
  readonly queue: string | null;
  readonly type: string | null;
}
export const readDeadLetters = (filter: LetterFilter, cursor: Cursor, signal?: AbortSignal) =>
  api.get<Page<Job>>("/admin/dead-letter", { ...filter, cursor, per_page: PER_PAGE }, signal);
export const readDeadLetterStats = (signal?: AbortSignal) =>
  api.get<DeadLetterStats & { readonly by_queue: Readonly<Record<string, number>> }>(
    "/admin/dead-letter/stats",
    {},
    signal,
  );

// Rules
export const readLimits = listAt<Limit>("/rate-limits");
export const overrideLimit = (key: string, change: object, reason: string) =>
  api.put(`/rate-limits/${part(key)}`, change, reason);
export const liftOverride = (key: string, reason: string) =>
  api.delete(`/rate-limits/${part(key)}`, {}, reason);
export const readUniqueKeys = listAt<UniqueKey>("/unique-jobs");

// What happened
export interface AuditFilter {
  readonly actor?: string | null;
  readonly action?: string | null;
  readonly queue?: string | null;
  readonly job?: string | null;
}
export const readAudit = (
  { job, ...filter }: AuditFilter,
  cursor: Cursor,
  limit: number,
  signal?: AbortSignal,
) => api.get<Page<AuditEntry>>("/admin/audit", { ...filter, job_id: job, cursor, per_page: limit }, signal);
export const readAdvice = (
  { type, timeout }: { readonly type?: string | null; readonly timeout?: number | undefined },
  signal?: AbortSignal,
) => api.get<{ readonly items: readonly Advice[] }>("/admin/advise", { type, timeout_ms: timeout }, signal);

/** Replays a limit that follows the runs on the history of a type. */
export const replayAdvice = (
  type: string,
  rule: Pick<AdaptiveRule, "from" | "times" | "floor_ms" | "ceiling_ms">,
) =>
  api.get<{ readonly items: readonly Advice[] }>("/admin/advise", {
    type,
    adaptive_from: rule.from,
    adaptive_times: rule.times,
    adaptive_floor_ms: rule.floor_ms,
    adaptive_ceiling_ms: rule.ceiling_ms,
  });

// The server
export const readConfig = (signal?: AbortSignal) => api.get<ServerConfig>("/admin/system/config", {}, signal);
export const readHealth = (signal?: AbortSignal) => api.get<Health>("/health", {}, signal);
export const readMetrics = (signal?: AbortSignal) =>
  api.get<Readonly<Record<string, number>>>("/metrics", {}, signal);
export const readPauseOfAll = (signal?: AbortSignal) =>
  api.get<Maintenance>("/admin/system/maintenance", {}, signal);
export const setPauseOfAll = (isOn: boolean, duration: string | null, reason: string) =>
  api.post<Maintenance>(
    "/admin/system/maintenance",
    { enabled: isOn, ...(duration && { duration }) },
    reason,
  );
