import type { Saga } from "../../ojs/replies/saga-replies.ts";
import type { Events, Timeout } from "../../ojs/replies/wire-replies.ts";
import { api, part } from "./client.ts";

/**
 * Sagas and leased timeouts. Older servers serve neither: they answer 404, and the pages say so. Every path and name of
 * these calls stands in this file, and their types in `wire.ts`.
 */

export interface Listed<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins; null on the last one. */
  readonly pagination?: { readonly next_cursor: string | null };
}

interface SagaQuery {
  readonly type: string | null;
  readonly order: "asc" | "desc";
  readonly cursor: string | null;
}

export const readSagas = (asked: SagaQuery, signal?: AbortSignal) =>
  api.get<Listed<Saga>>("/admin/sagas", { ...asked, per_page: 50 }, signal);
export const readSaga = (type: string, id: string, signal?: AbortSignal) =>
  api.get<{ readonly saga: Saga }>(`/admin/sagas/${part(type)}/${part(id)}`, {}, signal);

/** The newest events of a saga; with `before`, older ones. A request reads a bounded number of events. */
export const readSagaEvents = (
  { type, id }: Pick<Saga, "type" | "id">,
  before: string | null,
  signal?: AbortSignal,
) =>
  api.get<Events>("/events", { types: "saga.*", saga_type: type, saga_id: id, limit: 1_000, before }, signal);

export interface TimeoutQuery {
  readonly destination?: string | null;
  /** Instants in milliseconds. */
  readonly from?: number;
  readonly to?: number;
  readonly isDead?: boolean;
  readonly cursor?: string | null;
}

export const readTimeouts = ({ destination, from, to, isDead, cursor }: TimeoutQuery, signal?: AbortSignal) =>
  api.get<Listed<Timeout>>(
    "/admin/timeouts",
    {
      destination,
      from: from === undefined ? null : new Date(from).toISOString(),
      to: to === undefined ? null : new Date(to).toISOString(),
      dead: isDead,
      cursor,
      per_page: 100,
    },
    signal,
  );

export const compensateSaga = (type: string, id: string, reason: string) =>
  api.post(`/admin/sagas/${part(type)}/${part(id)}/compensate`, {}, reason);

const timeoutPath = (id: string) => `/admin/timeouts/${part(id)}`;
export const revokeTimeout = (id: string, reason: string) =>
  api.post(`${timeoutPath(id)}/revoke`, {}, reason);
export const rescheduleTimeout = (id: string, dueAt: number, reason: string) =>
  api.post(`${timeoutPath(id)}/reschedule`, { due_at: new Date(dueAt).toISOString() }, reason);
export const requeueTimeout = (id: string, reason: string) =>
  api.post(`${timeoutPath(id)}/requeue`, {}, reason);
