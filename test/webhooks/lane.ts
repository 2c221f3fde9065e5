import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Taken } from "./receivers-main.ts";

export interface LaneOptions {
  /** A store for the server with webhooks, and one for the server without. */
  readonly stores: readonly [withHooks: string, without: string];
  readonly deliveries: number;
  /** Jobs that are enqueued per second. */
  readonly rate: number;
  readonly rounds: number;
}

export interface LaneResult {
  readonly jobs: number;
  readonly deliveries: number;
  /** Events that an endpoint should have got and did not. */
  readonly lost: number;
  readonly outOfOrder: number;
  /** What an endpoint took of jobs whose events were out of order: event, delivery and number of the call. */
  readonly disorder: readonly string[];
  /** Of the endpoints that answer: deliveries that the server still has, by their state, and circuits that are open. */
  readonly left: Readonly<Record<string, number>>;
  /** Deliveries of the endpoints that never answer which are neither waiting nor dead. */
  readonly forgotten: number;
  readonly repeated: number;
  readonly spoiled: Readonly<Record<string, number>>;
  readonly p99: { readonly withHooks: number; readonly without: number; readonly ratio: number };
  readonly p50: { readonly withHooks: number; readonly without: number };
  /** Milliseconds of the server process for a job, with and without its five deliveries. */
  readonly cpuPerJob: { readonly withHooks: number; readonly without: number };
  readonly seconds: number;
}

/** Deliveries that a job causes: three in order, and two that are not. */
const PER_JOB = 5;
/** One job in this many is of the type whose other endpoints never answer. */
const RARE = 50;
const WARM_UP = 200;
const MOST_TRIES = 5;
const RETRY = { max_attempts: 20, delays: ["PT0.2S", "PT0.5S", "PT1S"] };

const start = (file: string, ...args: string[]): ChildProcess => fork(join(import.meta.dirname, file), args);

async function said<Value>(child: ChildProcess, asked?: string): Promise<Value> {
  if (asked !== undefined) child.send(asked);
  const [value] = await once(child, "message");
  return value as Value;
}

const usages = (servers: readonly ChildProcess[]) =>
  Promise.all(servers.map(async (child) => (await said<{ cpu: number }>(child, "usage")).cpu));

async function call(url: string, method: string, path: string, body?: object) {
  const init = {
    method,
    headers: { "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  };
  for (let tries = 1; ; tries++) {
    // The server may close a connection just as it is used again, and a starved machine is too slow for its limits.
    const response = await fetch(`${url}/ojs/v1${path}`, init).catch((error: unknown) => {
      if (tries === MOST_TRIES) throw error;
    });
    const text = await response?.text();
    if (response?.ok && text !== undefined) return JSON.parse(text);
    const mayRepeat = !response || response.status === 408 || response.status === 503;
    if (!mayRepeat || tries === MOST_TRIES) throw new Error(`${method} ${path}: ${response?.status} ${text}`);
  }
}

/** Enqueues at a steady rate, whether replies come or not. Returns the ids and the milliseconds of each enqueue. */
async function load(url: string, count: number, rate: number, from: number) {
  const took: number[] = [];
  const ids: { id: string; isRare: boolean }[] = [];
  const pending: Promise<void>[] = [];
  const begun = performance.now();
  for (let index = 0; index < count; index++) {
    const due = begun + (index * 1_000) / rate;
    const wait = due - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const isRare = (from + index) % RARE === 0;
    const sentAt = performance.now();
    pending.push(
      call(url, "POST", "/jobs", { type: isRare ? "lane.rare" : "lane.job", args: [index] }).then(
        ({ job }) => {
          took.push(performance.now() - sentAt);
          ids.push({ id: job.id, isRare });
        },
      ),
    );
  }
  await Promise.all(pending);
  return { took, ids };
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

interface Subscribed {
  /** Endpoints that answer in the end. */
  readonly served: readonly string[];
  /** Endpoints that never do. */
  readonly never: readonly string[];
}

async function subscribe(url: string, port: number): Promise<Subscribed> {
  const add = async (endpoint: string, more: object) => {
    const base = { url: `http://127.0.0.1:${port}/${endpoint}`, timeout: 2, retry: RETRY };
    return (await call(url, "POST", "/webhooks/subscriptions", { ...base, ...more })).id as string;
  };
  const filter = { job_types: ["lane.rare"] };
  const served = [
    await add("ordered", { events: ["job.enqueued", "job.started", "job.completed"], ordered: true }),
    await add("plain", { events: ["job.completed"] }),
    await add("batched", { events: ["job.completed"], batch: { max_events: 20, max_wait: "PT0.5S" } }),
  ];
  const never = [
    await add("dead", { events: ["job.completed"], filter }),
    await add("stuck", { events: ["job.completed"], filter }),
  ];
  return { served, never };
}

/** Enqueues the same load on both servers in turn, and compares what the endpoints took with what there was. */
export async function runLane({ stores, deliveries, rate, rounds }: LaneOptions): Promise<LaneResult> {
  const begun = performance.now();
  const receivers = start("receivers-main.ts");
  const servers = stores.map((store) => start("server-main.ts", store)) as [ChildProcess, ChildProcess];
  try {
    const { port } = await said<{ port: number }>(receivers);
    const [{ url }, { url: plainUrl }] = (await Promise.all(
      servers.map((child) => said<{ url: string }>(child)),
    )) as [{ url: string }, { url: string }];
    const { served, never } = await subscribe(url, port);
    const drain = (count: number) => drained(receivers, count, () => leftOf(url, served));
    const ids: { id: string; isRare: boolean }[] = [];
    const perRound = Math.ceil(deliveries / PER_JOB / rounds);
    // Both servers are warm before anything is measured.
    ids.push(...(await load(url, WARM_UP, rate, 1)).ids);
    await drain(ids.length * PER_JOB);
    await load(plainUrl, WARM_UP, rate, 1);
    const before = await usages(servers);
    const [hooked, plain]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      plain.push(...(await load(plainUrl, perRound, rate, ids.length)).took);
      const made = await load(url, perRound, rate, ids.length);
      hooked.push(...made.took);
      ids.push(...made.ids);
      await drain(ids.length * PER_JOB);
    }
    const after = await usages(servers);
    const cpu = after.map((usage, index) => usage - (before[index] as number)) as [number, number];
    const measured = perRound * rounds;
    const { taken, spoiled } = await said<{ taken: Taken[]; spoiled: Record<string, number> }>(
      receivers,
      "taken",
    );
    const [a, b] = [hooked, plain].map((list) => list.toSorted((x, y) => x - y)) as [number[], number[]];
    const rare = ids.filter(({ isRare }) => isRare).length;
    const kept = await Promise.all(never.map((id) => countDeliveries(url, id)));
    return {
      jobs: ids.length,
      deliveries: ids.length * PER_JOB,
      ...compare(
        ids.map(({ id }) => id),
        taken,
      ),
      left: await leftOf(url, served),
      forgotten: kept.reduce((sum, count) => sum + Math.abs(rare - count), 0),
      spoiled,
      p99: {
        withHooks: quantile(a, 0.99),
        without: quantile(b, 0.99),
        ratio: quantile(a, 0.99) / quantile(b, 0.99),
      },
      p50: { withHooks: quantile(a, 0.5), without: quantile(b, 0.5) },
      cpuPerJob: { withHooks: cpu[0] / measured, without: cpu[1] / measured },
      seconds: (performance.now() - begun) / 1_000,
    };
  } finally {
    for (const child of [receivers, ...servers]) child.kill("SIGKILL");
  }
}

const LOOK_AFTER = 60_000;
const GIVE_UP_AFTER = 1_200_000;

/**
 * Resolves when the endpoints have taken everything, or nothing more for a minute and the server has nothing left for
 * them. A circuit that opened on a starved machine may hold deliveries back for up to 15 minutes.
 */
async function drained(
  receivers: ChildProcess,
  expected: number,
  left: () => Promise<Record<string, number>>,
): Promise<void> {
  let [last, changedAt, lookedAt] = [0, performance.now(), performance.now()];
  for (;;) {
    const { count } = await said<{ count: number }>(receivers, "count");
    const now = performance.now();
    if (count >= expected || now - changedAt > GIVE_UP_AFTER) return;
    if (count !== last) [last, changedAt, lookedAt] = [count, now, now];
    if (now - lookedAt > LOOK_AFTER) {
      lookedAt = now;
      const found = await left();
      console.error(`${expected - count} not taken for a minute; the server has ${JSON.stringify(found)}`);
      if (Object.keys(found).every((state) => state === "dead")) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function deliveriesOf(url: string, id: string): Promise<{ status: string }[]> {
  const found: { status: string }[] = [];
  for (let cursor: string | null = null; ; ) {
    const after = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await call(url, "GET", `/webhooks/deliveries?limit=200&subscription_id=${id}${after}`);
    found.push(...page.deliveries);
    cursor = page.pagination.next_cursor;
    if (cursor === null) return found.filter(({ status }) => status !== "delivered");
  }
}

async function countDeliveries(url: string, id: string): Promise<number> {
  return (await deliveriesOf(url, id)).length;
}

/** What the server has not delivered to these subscriptions, by state, and how many of their circuits are open. */
async function leftOf(url: string, ids: readonly string[]): Promise<Record<string, number>> {
  const left: Record<string, number> = {};
  for (const id of ids) {
    for (const { status } of await deliveriesOf(url, id)) left[status] = (left[status] ?? 0) + 1;
    const { circuit } = await call(url, "GET", `/webhooks/subscriptions/${id}`);
    if (circuit?.state === "open") left.circuits = (left.circuits ?? 0) + 1;
  }
  return left;
}

const MOST_SHOWN = 5;
const EVENTS = ["job.enqueued", "job.started", "job.completed"];

function compare(jobs: readonly string[], taken: readonly Taken[]) {
  const byKey = Map.groupBy(taken, ({ endpoint, job }) => `${endpoint} ${job}`);
  let [lost, outOfOrder, repeated] = [0, 0, 0];
  const disorder: string[] = [];
  for (const job of jobs)
    for (const endpoint of ["ordered", "plain", "batched"]) {
      const wanted = endpoint === "ordered" ? EVENTS : ["job.completed"];
      const calls = byKey.get(`${endpoint} ${job}`) ?? [];
      const got = calls.map(({ event }) => event);
      const first = [...new Set(got)];
      repeated += got.length - first.length;
      lost += wanted.filter((event) => !first.includes(event)).length;
      if (endpoint !== "ordered" || first.join() === EVENTS.filter((event) => first.includes(event)).join())
        continue;
      outOfOrder += 1;
      disorder.push(calls.map(({ event, delivery, nth }) => `${event} ${delivery} ${nth}`).join("; "));
    }
  return { lost, outOfOrder, disorder: disorder.slice(0, MOST_SHOWN), repeated };
}
