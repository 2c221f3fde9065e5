import { QUEUES } from "../../engine/queues/queue-settings-cache.ts";
import { bounded } from "../http/bounded.ts";
import { refusedField } from "../http/http-error.ts";
import {
  byKey,
  json,
  type Reply,
  type Route,
  type RouteCall,
  type RouteContext,
  routesOf,
} from "../route.ts";
import { purgeReply, queueConfigReply } from "../wire/admin-replies.ts";
import { type PurgeBody, purgeSchema, purgeWaitingSchema } from "../wire/admin-schemas.ts";
import { readEnded } from "../wire/filter.ts";
import { changedConfig, queueConfigChangeSchema } from "../wire/queue-config.ts";
import { describeQueue, queueOf } from "../wire/queues.ts";

const route = routesOf({ tag: "queues", scope: "tenant" });
const PATH = "/ojs/v1/admin/queues/:queue";
const WAITING = ["available", "pending", "scheduled", "retryable"] as const;
const ENDED = ["completed", "discarded", "cancelled"] as const;
/** The longest a purge works before it replies. The next call continues. */
const LONGEST = 20_000;

type Waiting = (typeof WAITING)[number];
type Ended = (typeof ENDED)[number];

async function purged(
  call: Pick<RouteCall<PurgeBody>, "body" | "params" | "identity" | "isGone">,
  context: RouteContext,
): Promise<Reply> {
  const { body, identity, isGone } = call;
  const { engine, service } = context;
  const queue = queueOf(call.params);
  const { older_than } = body;
  const states: readonly string[] = body.states ?? WAITING;
  const waiting = WAITING.filter((state) => states.includes(state));
  const ended = ENDED.filter((state) => states.includes(state));
  if (older_than && waiting.length > 0)
    throw refusedField("older_than", "it counts from the end of a job; name only ended states");
  const bounds = bounded(service.system, isGone, LONGEST);
  const by = byKey(identity);
  let count = 0;
  if (waiting.length > 0)
    count += await engine.queues.purge(queue, { states: waiting as Waiting[], ...bounds }, by);
  for (const state of ended as readonly Ended[]) {
    const before = older_than && readEnded(older_than, engine.now());
    const query = { queue, state, ...(before && { finishedBefore: before }) };
    const { done } = await engine.bulk.delete(query, { ...bounds, by });
    count += done;
  }
  return json(200, {
    queue,
    states: [...waiting, ...ended],
    purged_count: count,
    purged: count,
    deleted: count,
    is_complete: !bounds.signal.aborted,
  });
}

const purge = route("DELETE", `${PATH}/jobs`, "operate", {
  summary: "Delete jobs of a queue for good",
  reply: purgeReply,
  body: purgeSchema,
  replies: { 200: "The number of deleted jobs; not complete if it took too long" },
  run(call, context) {
    if (call.body.confirm !== true) throw refusedField("confirm", "send true: a deletion cannot be undone");
    return purged(call, context);
  },
});

const purgeWaiting = route("POST", "/ojs/v1/queues/:queue/purge", "operate", {
  summary: "Delete the jobs that wait in a queue for good",
  reply: purgeReply,
  body: purgeWaitingSchema,
  replies: { 200: "The number of deleted jobs; not complete if it took too long" },
  run: (call, context) => purged({ ...call, body: call.body ?? {} }, context),
});

const getConfig = route("GET", `${PATH}/config`, "read", {
  summary: "The settings of a queue",
  reply: queueConfigReply,
  replies: { 200: "The settings" },
  run: async ({ params }, { engine }) => {
    const fields = await describeQueue(engine, queueOf(params));
    return json(200, { ...fields, ...fields.configuration, config: fields.configuration });
  },
});

const putConfig = route("PUT", `${PATH}/config`, "operate", {
  summary: "Change settings of a queue, for every process",
  reply: queueConfigReply,
  body: queueConfigChangeSchema,
  replies: { 200: "The settings" },
  async run({ params, body, identity }, { engine }) {
    const queue = queueOf(params);
    const options = changedConfig((await QUEUES.load(engine.store, queue))?.body ?? {}, body);
    await engine.queues.configure(queue, options, byKey(identity));
    const fields = await describeQueue(engine, queue);
    return json(200, { ...fields, ...fields.configuration, config: fields.configuration });
  },
});

export const adminQueueRoutes: readonly Route[] = [purge, purgeWaiting, getConfig, putConfig];
