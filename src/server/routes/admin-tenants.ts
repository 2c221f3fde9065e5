import { sumDepths } from "../../core/job/job.ts";
import { noisySignals } from "../../core/tenant/noisy.ts";
import { checkTenantName } from "../../core/tenant/tenant-name.ts";
import type { Engine } from "../../engine/engine.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, type RouteContext, routesOf } from "../route.ts";
import { adminJobsReply } from "../wire/admin-replies.ts";
import { adminJobsQuery, adminPageQuery } from "../wire/admin-schemas.ts";
import { listedPage } from "../wire/pages.ts";
import * as wire from "../wire/tenants.ts";
import { listJobs } from "./admin-jobs.ts";

/* Across tenants: for callers that are bound to none and may operate. */

const route = routesOf({ tag: "tenants", scope: "server" });
const PATH = "/ojs/v1/admin/tenants";

async function knownTenant({ engine }: RouteContext, name: string | undefined) {
  const tenant = checkTenantName(name, "id");
  const view = await engine.tenants.get(tenant);
  if (!view) throw notFound("tenant", tenant);
  return view;
}

const list = route("GET", PATH, "operate", {
  summary: "List the tenants, with what they use and may use, and which of the page are noisy neighbours",
  reply: wire.tenantsReply,
  query: adminPageQuery,
  replies: { 200: "A page of tenants, by name" },
  async run({ query }, { engine }) {
    const page = await listedPage(query, {
      list: (after, limit) => engine.tenants.list({ ...(after !== null && { after }), limit }),
      cursorOf: ({ name }) => name,
    });
    const uses = await Promise.all(page.items.map(({ name }) => engine.tenants.use(name)));
    const signals = noisySignals(uses);
    const items = page.items.map((view, index) => ({
      ...wire.tenantFields(view),
      jobs: uses[index],
      noisy: signals[index],
    }));
    return json(200, { items, tenants: items, pagination: page.pagination });
  },
});

const get = route("GET", `${PATH}/:id`, "operate", {
  summary: "Look at a tenant",
  reply: wire.tenantReply,
  replies: { 200: "The tenant", 404: "Nothing was ever written within it" },
  async run({ params }, context) {
    const view = await knownTenant(context, params.id);
    return json(200, { ...wire.tenantFields(view), jobs: await context.engine.tenants.use(view.name) });
  },
});

const put = route("PUT", `${PATH}/:id`, "operate", {
  summary: "Create a tenant, or replace its limits",
  reply: wire.tenantReply,
  body: wire.tenantSchema,
  replies: { 200: "The tenant" },
  async run({ params, body, identity }, { engine }) {
    const limits = wire.readTenantLimits(body.limits ?? {});
    const view = await engine.tenants.put(params.id as string, { limits }, byKey(identity));
    return json(200, wire.tenantFields(view));
  },
});

const putLimits = route("PUT", `${PATH}/:id/limits`, "operate", {
  summary: "Replace the limits of a tenant, for every process within five seconds",
  reply: wire.tenantReply,
  body: wire.tenantLimitsSchema,
  replies: { 200: "The tenant" },
  async run({ params, body, identity }, { engine }) {
    const { reason: _reason, ...limits } = body;
    const options = { limits: wire.readTenantLimits(limits) };
    return json(
      200,
      wire.tenantFields(await engine.tenants.put(params.id as string, options, byKey(identity))),
    );
  },
});

const remove = route("DELETE", `${PATH}/:id`, "operate", {
  summary: "Remove a tenant that has no jobs from the list, with its limits",
  replies: { 200: "Removed", 404: "There is no such tenant", 409: "It has jobs" },
  async run({ params, identity }, context) {
    const { name } = await knownTenant(context, params.id);
    await context.engine.tenants.remove(name, byKey(identity));
    return json(200, { deleted: true, tenant_id: name });
  },
});

const DAY = "1d";

async function statsOf(engine: Engine) {
  const [depths, { total, since, until }] = await Promise.all([
    engine.store.inspect.depths(),
    engine.stats({ since: DAY }),
  ]);
  const minutes = Math.max(1, (until - since) / 60_000);
  const perMinute = (count: number) => Math.round((count / minutes) * 100) / 100;
  const jobs = sumDepths(depths.values());
  return {
    total_jobs: Object.values(jobs).reduce((sum, count) => sum + count, 0),
    jobs: { ...jobs, completed_24h: total.completed, failed_24h: total.failed },
    throughput: {
      processed_per_minute: perMinute(total.completed + total.failed),
      enqueued_per_minute: perMinute(total.enqueued),
    },
  };
}

const stats = route("GET", `${PATH}/:id/stats`, "operate", {
  summary: "What a tenant has stored, does now and did in the last day",
  reply: wire.tenantStatsReply,
  replies: { 200: "Its counts", 404: "There is no such tenant" },
  async run({ params }, context) {
    const { name, limits } = await knownTenant(context, params.id);
    const counts = await statsOf(await context.engine.tenant(name));
    return json(200, { tenant_id: name, ...counts, limits: wire.tenantLimitFields(limits) });
  },
});

const jobs = route("GET", `${PATH}/:id/jobs`, "operate", {
  summary: "Look for jobs of a tenant, the newest first",
  reply: adminJobsReply,
  query: adminJobsQuery,
  replies: { 200: "A page of jobs", 404: "There is no such tenant" },
  async run(call, context) {
    const { name } = await knownTenant(context, call.params.id);
    const engine = await context.engine.tenant(name);
    return listJobs.run(call as never, { ...context, engine, service: engine.service });
  },
});

export const adminTenantRoutes: readonly Route[] = [list, get, put, putLimits, remove, stats, jobs];
