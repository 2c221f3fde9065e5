import type { Service } from "../../engine/remote/service.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { poolFields, poolReply, poolSchema, poolsReply, readPool } from "../wire/pools.ts";

const route = routesOf({ tag: "queues", scope: "tenant" });
const PATH = "/ojs/v1/admin/pools";
const MISSING = { 404: "There is no pool of this name" };

async function found(service: Service, name: string) {
  const view = await service.pools.get(name);
  if (!view) throw notFound("pool", name);
  return poolFields(view);
}

const list = route("GET", PATH, "read", {
  summary: "List the pools of workers, in the order of their names",
  reply: poolsReply,
  replies: { 200: "All pools; workers and running jobs are those of this server" },
  async run(_call, { service }) {
    const items = (await service.pools.list()).map(poolFields);
    return json(200, { items, pools: items });
  },
});

const get = route("GET", `${PATH}/:name`, "read", {
  summary: "Look at a pool of workers",
  reply: poolReply,
  replies: { 200: "The pool", ...MISSING },
  run: async ({ params }, { service }) => json(200, { pool: await found(service, params.name as string) }),
});

const put = route("PUT", `${PATH}/:name`, "operate", {
  summary: "Store a pool: which queues its workers take from, and how a fetch chooses among them",
  reply: poolReply,
  body: poolSchema,
  replies: { 200: "The pool", 201: "The pool, which is new" },
  async run({ params, body, identity }, { service }) {
    const name = params.name as string;
    const isNew = await service.pools.put(name, readPool(body), byKey(identity));
    const pool = await found(service, name);
    return json(isNew ? 201 : 200, { ...pool, pool });
  },
});

const remove = route("DELETE", `${PATH}/:name`, "operate", {
  summary: "Delete a pool; its queues and jobs stay",
  reply: poolReply,
  replies: { 200: "It is gone", ...MISSING },
  async run({ params, identity }, { service }) {
    const name = params.name as string;
    const pool = await found(service, name);
    if (!(await service.pools.delete(name, byKey(identity)))) throw notFound("pool", name);
    return json(200, { deleted: true, pool });
  },
});

export const poolRoutes: readonly Route[] = [list, get, put, remove];
