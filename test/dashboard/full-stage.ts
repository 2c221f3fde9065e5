import type { Browser, BrowserContext, Route } from "playwright-core";
import type { Instant } from "../../src/core/time.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { nameOf, SAGAS } from "../../src/engine/sagas/saga-addresses.ts";
import { viewOf } from "../../src/engine/sagas/saga-handle.ts";
import { orderSaga, type SeededPages, seedPages } from "./seed-pages.ts";
import { type DashboardStage, openDashboard, type StageOptions } from "./stage.ts";

export interface FullStage extends DashboardStage {
  readonly pages: SeededPages;
}

/** A stage with something on every page. A worker works over HTTP and is heard of. */
export async function openFullDashboard(browser: Browser, options: StageOptions = {}): Promise<FullStage> {
  const stage = await openDashboard(browser, options);
  stage.clock.stop();
  const pages = await seedPages(stage.test, options.hostile);
  stage.clock.go();
  if (!options.keys) await beat(stage.url, "http-worker-1");
  const prepare = (context: BrowserContext) => serveMissing(context, stage.test.engine);
  return {
    ...stage,
    pages,
    open: (path, page = {}) => stage.open(path, { prepare, ...page }),
  };
}

export async function beat(url: string, worker: string): Promise<unknown> {
  const response = await fetch(`${url}/ojs/v1/workers/heartbeat`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ worker_id: worker, queues: ["crm"], active_jobs: [] }),
  });
  if (!response.ok) throw new Error(`the beat was refused: ${await response.text()}`);
  return response.json();
}

/**
 * Sagas and timeouts are not served over HTTP by this version of the server. Pages for them are tested against the real
 * engine under the paths they are going to have. When the server has these routes, this goes.
 */
async function serveMissing(context: BrowserContext, engine: Engine): Promise<void> {
  await context.route(/\/ojs\/v1\/admin\/(?:sagas|timeouts)/, (route) => answer(route, engine));
}

const iso = (at: Instant | null) => (at === null ? null : new Date(at).toISOString());

async function answer(route: Route, engine: Engine): Promise<void> {
  const request = route.request();
  const url = new URL(request.url());
  const path = url.pathname.split("/admin/")[1] ?? "";
  const [kind, first, second] = path.split("/").map((part) => decodeURIComponent(part));
  if (kind === "sagas")
    return route.fulfill({
      json: first ? await saga(engine, second ?? "") : await sagas(engine, url.searchParams),
    });
  if (request.method() === "POST") {
    await act(engine, first ?? "", second ?? "", (request.postDataJSON() ?? {}) as { due_at?: string });
    return route.fulfill({ json: {} });
  }
  return route.fulfill({ json: await timeouts(engine, url.searchParams) });
}

async function timeouts({ store }: Engine, query: URLSearchParams) {
  const from = Date.parse(query.get("from") ?? "") || 0;
  const to = Date.parse(query.get("to") ?? "") || Number.POSITIVE_INFINITY;
  const destination = query.get("destination");
  const rows = await store.timeouts.list(
    { isDead: query.get("dead") === "true", ...(destination && { destination }) },
    null,
    1_000,
  );
  const items = rows
    .filter(({ dueAt }) => dueAt >= from && dueAt < to)
    .map(({ dueAt, payload, saga: key, leaseUntil, deadAt, headers, owner: _owner, ...row }) => ({
      ...row,
      due_at: iso(dueAt),
      payload: payload === null ? null : JSON.parse(payload),
      name: (headers as { timeout?: string } | null)?.timeout ?? null,
      saga: key === null ? null : nameOf(key),
      lease_until: iso(leaseUntil),
      dead_at: iso(deadAt),
    }));
  return { items, pagination: { next_cursor: null } };
}

const fieldsOf = (view: ReturnType<typeof viewOf>, due: ReadonlyMap<string, Instant>) => ({
  type: view.type,
  id: view.id,
  state: view.state,
  version: view.version,
  started_at: iso(view.startedAt),
  changed_at: iso(view.changedAt),
  completed_at: iso(view.completedAt),
  pending: view.pending.map((one) => ({ ...one, due_at: iso(due.get(one.id) ?? null) })),
});

async function sagas({ store }: Engine, query: URLSearchParams) {
  const rows = await store.records.list("saga", null, 100);
  const items = rows.map((row) => fieldsOf(viewOf(SAGAS.read(row)), new Map()));
  const type = query.get("type");
  return {
    items: items.filter((one) => type === null || one.type === type),
    pagination: { next_cursor: null },
  };
}

async function saga(engine: Engine, id: string) {
  const handle = engine.saga(orderSaga, id);
  const view = await handle.load();
  const rows = await handle.timeouts();
  return { saga: view && fieldsOf(view, new Map(rows.map((row) => [row.id, row.dueAt]))) };
}

async function act(engine: Engine, id: string, action: string, body: { due_at?: string }): Promise<void> {
  const now = engine.now();
  const { timeouts } = engine.store;
  const row = (await timeouts.list({}, null, 1_000)).find((one) => one.id === id);
  if (action === "requeue") await timeouts.requeue([id], { now });
  else if (action === "reschedule")
    await timeouts.reschedule([{ id, from: row?.dueAt ?? 0, to: Date.parse(body.due_at ?? "") }], { now });
  else if (row?.saga) await engine.saga(orderSaga, nameOf(row.saga).id).revoke(id);
  else await timeouts.cancel({ id }, { now });
}
