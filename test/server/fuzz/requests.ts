import { type Random, randomInt } from "../../../src/core/random.ts";
import type { CallName } from "../../../src/ojs/call-names.ts";
import { queryNames } from "../../../src/server/http/query-names.ts";
import { ROUTES as ALL, STREAM_ROUTES } from "../../../src/server/routes/all.ts";
import { CALL_ARGS } from "../call-args.ts";
import {
  brokenText,
  mutated,
  pick,
  strangeHeaders,
  strangeId,
  strangePath,
  strangeQuery,
  strangeValue,
} from "./strange.ts";

const ROUTES = ALL.filter((route) => !STREAM_ROUTES.includes(route));
/** The share of requests that open a stream: if the server never forgot readers, it would soon refuse new ones. */
const STREAMS = 0.2;

/** Jobs that really exist, so that strange reports meet real ones. */
export class Known {
  readonly ids: string[] = [];
  readonly fences = new Map<string, number>();

  add(id: string, fence?: number): void {
    if (this.ids.length < 200) this.ids.push(id);
    else this.ids[this.fences.size % 200] = id;
    if (this.fences.size > 1_000) this.fences.clear();
    if (fence !== undefined) this.fences.set(id, fence);
  }

  clear(): void {
    this.ids.length = 0;
    this.fences.clear();
  }
}

export interface StrangeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array | null;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const PATHS = [
  "/",
  "//",
  "/ojs",
  "/ojs/v1",
  "/ojs/v1/",
  "/ojs/v1/jobs/",
  "/ojs/v1/jobs/batch/x",
  "/.env",
  "/ojs/v1/../metrics",
  "/%",
];

type Sound = (random: Random, id: string, fence: number) => object;

const job: Sound = (random) => ({
  type: "fuzz.timed",
  args: [1, { a: [true] }],
  meta: { traceparent: "00-1" },
  options: {
    queue: pick(random, ["default", "fuzz", "fuzz-2"]),
    priority: 5,
    timeout_ms: 500,
    total_timeout: 60,
    enqueue_ttl: 30,
    grace_period: 0,
    heartbeat_timeout_ms: 900,
    visibility_timeout_ms: 700,
    ...(random() < 0.2 && { scheduled_at: "+PT1S" }),
    expires_at: "2099-12-31T23:59:59Z",
    retry: {
      max_attempts: 2,
      initial_interval: "PT1S",
      backoff_coefficient: 2,
      on_exhaustion: "dead_letter",
    },
    tags: ["a"],
    ...(random() < 0.2 && {
      rate_limit: { key: "fuzz", concurrency: 2, rate: { limit: 9, period: "second" } },
    }),
  },
});
const worker = (random: Random) => `w${randomInt(random, 10_000)}`;

/** A sound body by the end of the path it belongs to. */
const SOUNDS: readonly (readonly [RegExp, Sound])[] = [
  [/\/jobs$/, job],
  [
    /\/n?ack\/batch$/,
    (random, id, fence) => ({
      worker_id: worker(random),
      jobs: [{ job_id: id, fence, result: { ok: true }, error: { code: "x" } }, { job_id: id }],
    }),
  ],
  [/\/batch$/, (random, id, fence) => ({ jobs: [job(random, id, fence), { type: "fuzz.batch", args: [] }] })],
  [
    /\/fetch$/,
    (random) => ({
      queues: ["default", "fuzz"],
      count: 1 + randomInt(random, 3),
      worker_id: worker(random),
      soft_timeout: random() < 0.5,
    }),
  ],
  [/\/ack$/, (_random, id, fence) => ({ job_id: id, fence, result: { ok: true } })],
  [
    /\/nack$/,
    (random, id, fence) => ({
      job_id: id,
      fence,
      error: { code: "x", type: "X", message: "no", retryable: true, details: { a: 1 } },
      requeue: random() < 0.2,
    }),
  ],
  [
    /\/(heartbeat|beat)$/,
    (random, id, fence) => ({
      worker_id: worker(random),
      active_jobs: [id, { id, fence }],
      state: pick(random, ["running", "quiet", "drain", "terminate"]),
      visibility_timeout_ms: 1_000,
    }),
  ],
  [
    /\/(progress|checkpoint)$/,
    (_random, id, fence) => ({
      job_id: id,
      fence,
      progress: 0.5,
      percentage: 50,
      data: { a: 1 },
      state: { step: 1 },
    }),
  ],
  [/\/logs$/, (_random, _id, fence) => ({ lines: [{ message: "line", fields: { a: 1 } }], fence })],
  [
    /\/bulk\/|\/dead-letter/,
    (random, id) => ({
      filter: { queue: "fuzz", state: "discarded", since: "2020-01-01T00:00:00Z", error_type: "X" },
      ...(random() < 0.3 && { job_ids: [id] }),
      confirm: random() < 0.8,
      dry_run: random() < 0.3,
      limit: 5,
    }),
  ],
  [
    /\/config$/,
    (random) => ({
      concurrency: 3,
      backpressure: {
        max_depth: 5,
        strategy: pick(random, ["reject", "drop_oldest"]),
        warning_threshold: 0.5,
      },
      timeouts: { timeout: 5 },
      retry: { max_attempts: 3 },
      retention: { completed: "PT1H" },
    }),
  ],
  [/rate-limits/, () => ({ concurrency: 2, rate: { limit: 5, period: "PT1S" } })],
  [/queues\/:queue\/(jobs|purge)$/, () => ({ states: ["available", "completed"], confirm: true })],
  [/admin\/jobs\/:id$/, (random) => ({ priority: randomInt(random, 200) - 100 })],
  [/\/:id$/, () => ({ timeout_ms: 1_000, total_timeout_ms: 2_000, heartbeat_timeout_ms: 500 })],
];

/** The body of a call of the library, or undefined for another path. */
function callBody(path: string, id: string): object | undefined {
  const [, name] = /\/calls\/(.+)$/.exec(path) ?? [];
  const make = CALL_ARGS[name as CallName] as (typeof CALL_ARGS)[CallName] | undefined;
  if (!make) return undefined;
  const kinds = ["waiting", "running", "dead", "workflow", "webhook", "delivery", "timeout", "saga"] as const;
  const things = Object.fromEntries(kinds.map((kind) => [kind, id])) as Record<
    (typeof kinds)[number],
    string
  >;
  return { args: make(things) };
}

function bodyOf(random: Random, path: string, id: string, fence: number): string | Uint8Array {
  const own = SOUNDS.find(([pattern]) => pattern.test(path));
  const [, make] = own && random() < 0.9 ? own : pick(random, SOUNDS);
  const sound = callBody(path, id) ?? make(random, id, fence);
  const kind = random();
  const value = kind < 0.5 ? mutated(random, sound) : kind < 0.95 ? sound : strangeValue(random);
  const text = JSON.stringify(value) ?? "";
  const roll = random();
  if (roll < 0.12) return brokenText(random, text);
  if (roll < 0.15) return Uint8Array.from({ length: randomInt(random, 300) }, () => randomInt(random, 256));
  return text;
}

const ENQUEUE = ROUTES.find(
  ({ method, path }) => method === "POST" && path === "/ojs/v1/jobs",
) as (typeof ROUTES)[number];

/** One request, more or less like a sound one of a route. */
export function strangeRequest(random: Random, known: Known): StrangeRequest {
  // Without jobs there is nothing to be strange about, so they are enqueued more often than all else.
  const roll = random();
  const route =
    roll < 0.1 ? ENQUEUE : roll < 0.1 + STREAMS ? pick(random, STREAM_ROUTES) : pick(random, ROUTES);
  const id = strangeId(random, known.ids);
  const fence = known.fences.get(id) ?? pick(random, [0, 1, 2 ** 21, 2 ** 53]);
  const path =
    random() < 0.04 ? pick(random, PATHS) : route.path.replace(/:\w+/g, () => strangePath(random, id));
  const method = random() < 0.05 ? pick(random, METHODS) : route.method;
  const hasBody = method !== "GET" && method !== "HEAD" && random() < 0.95;
  return {
    method,
    path: path + strangeQuery(random, [...queryNames(route)]),
    headers: strangeHeaders(random),
    body: hasBody ? bodyOf(random, route.path, id, fence) : null,
  };
}
