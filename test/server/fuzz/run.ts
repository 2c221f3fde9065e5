import { setTimeout as wait } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Random, seededRandom } from "../../../src/core/random.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { openEngine } from "../../../src/open.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import { createKey, type KeyOptions } from "../../../src/server/access/auth.ts";
import { createServer } from "../../../src/server/app.ts";
import { processFacts } from "../../../src/server/metrics/process-facts.ts";
import { openTestEngine, type TestEngine } from "../../../src/testing/index.ts";
import { jobsOf } from "../../../src/testing/read-store.ts";
import { Known, type StrangeRequest, strangeRequest } from "./requests.ts";
import { pick } from "./strange.ts";

/** What is put to the test. */
export interface Target {
  fetch(request: Request): Response | Promise<Response>;
  close(): Promise<void>;
}

export interface FuzzOptions {
  readonly seed: number;
  readonly requests: number;
  /** Makes the server; another one shows that its faults are found. */
  readonly make?: (engine: Engine) => Target;
  readonly onEpoch?: (sent: number, heap: number) => void;
}

export interface FuzzReport {
  readonly sent: number;
  /** How many of them opened a stream. */
  readonly streams: number;
  /** How many got which status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Bytes of live heap after each epoch, with the store emptied. */
  readonly heaps: readonly number[];
  readonly findings: readonly string[];
}

const BATCH = 50;
const EPOCH = 5_000;
const MOST_FINDINGS = 20;
/** A request that is not answered after this many turns of virtual time hangs. */
const PATIENCE = 2_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/**
 * Sends strange requests to a server on virtual time, many at once, and lets time pass, so that deadlines fire in
 * between. Every request must be answered, in JSON, and never with a failure of ours; and when the store is emptied,
 * nothing of all that may be left.
 */
export async function fuzz({
  seed,
  requests,
  onEpoch,
  make = createServer,
}: FuzzOptions): Promise<FuzzReport> {
  const random = seededRandom(seed);
  // The doctor's first look at the disk takes real time, and requests here wait for turns of the event loop only.
  await processFacts(process.cwd());
  await using test = await openTestEngine({
    seed,
    retention: { completed: "60s", discarded: "60s", cancelled: "60s" },
    // Three months of entries would only look like a leak.
    keepAudit: "60s",
  });
  const server = make(test.engine);
  const run = new Run(server, random, () => test.system.advance(5));
  const heaps: number[] = [];
  while (run.sent < requests && run.findings.length < MOST_FINDINGS) {
    await run.batch(Math.min(BATCH, requests - run.sent));
    if (run.sent % EPOCH !== 0 && run.sent < requests) continue;
    await empty(test, server, run);
    collect();
    heaps.push(process.memoryUsage().heapUsed);
    onEpoch?.(run.sent, heaps.at(-1) as number);
  }
  await server.close();
  return { sent: run.sent, streams: run.streams, statuses: run.statuses, heaps, findings: run.findings };
}

/** Callers of a server with tenants: one for each tenant, one that may choose between two, one without a tenant. */
const CALLERS: readonly Omit<KeyOptions, "hash">[] = [
  { name: "a", role: "admin", tenant: "a" },
  { name: "b", role: "admin", tenant: "b" },
  { name: "both", role: "admin", tenant: ["a", "b"] },
  { name: "nobodys", role: "admin" },
];
const RATE = 100_000;
/** A database answers at its own pace, so more requests are under way at once. */
const BATCH_ON_A_STORE = 150;

export interface StoreFuzzOptions extends Pick<FuzzOptions, "seed" | "requests" | "onEpoch"> {
  readonly store: string;
  /** Stop after this many milliseconds. */
  readonly within?: number;
  /** Whether callers belong to tenants. A reply that names the other tenant is a finding. */
  readonly hasTenants?: boolean;
}

/** The same on a store of its own and in real time: what a database refuses, the server must have refused before. */
export async function fuzzStore(options: StoreFuzzOptions): Promise<Omit<FuzzReport, "streams">> {
  const { seed, requests, store, within = Number.POSITIVE_INFINITY, hasTenants = false } = options;
  const retention = { completed: "1s", discarded: "1s", cancelled: "1s" } as const;
  await using engine = await openEngine({ store, retention, logger: silentLogger });
  const keys = CALLERS.map((caller) => ({ ...caller, ...createKey() }));
  const server = hasTenants
    ? createServer(engine, { keys: keys.map(({ key: _key, ...options }) => ({ ...options, rate: RATE })) })
    : createServer(engine);
  // A real pause: a database answers in its own time.
  const run = new Run(server, seededRandom(seed), () => wait(5), hasTenants ? keys : undefined);
  const heaps: number[] = [];
  const startedAt = performance.now();
  while (
    run.sent < requests &&
    run.findings.length < MOST_FINDINGS &&
    performance.now() - startedAt < within
  ) {
    await run.batch(Math.min(BATCH_ON_A_STORE, requests - run.sent));
    if (run.sent % EPOCH >= BATCH_ON_A_STORE) continue;
    await emptyStore(engine, hasTenants ? ["a", "b"] : []);
    run.forget();
    collect();
    heaps.push(process.memoryUsage().heapUsed);
    options.onEpoch?.(run.sent, heaps.at(-1) as number);
  }
  await server.close();
  return { sent: run.sent, statuses: run.statuses, heaps, findings: run.findings };
}

/** Ends every job, so that they are pruned soon. */
async function emptyStore(engine: Engine, tenants: readonly string[]): Promise<void> {
  for (const each of [engine, ...(await Promise.all(tenants.map((name) => engine.tenant(name))))]) {
    await each.bulk.cancel({ all: true });
    await each.deadLetters.deleteAll({ all: true });
    for (const { name, pausedAt } of await each.queues.list())
      if (pausedAt !== null) await each.queues.resume(name);
  }
  await engine.pruneOnce();
}

/** Ends every job and lets the time of its keeping pass. */
async function empty({ engine, system }: TestEngine, server: Target, run: Run): Promise<void> {
  for (;;) {
    const rows = await jobsOf(engine.store);
    if (rows.length === 0) break;
    const live = rows.filter(({ state }) => !["completed", "cancelled", "discarded"].includes(state));
    await Promise.all(live.map(({ id }) => engine.cancel(id).catch(() => {})));
    for (const { id, deadLetter } of rows) {
      if (!deadLetter) continue;
      const url = `http://localhost/ojs/v1/dead-letter/${id}`;
      await run.within(server.fetch(new Request(url, { method: "DELETE" })));
    }
    await system.advance(400_000);
    await run.within(engine.pruneOnce());
  }
  // Events are kept for days, on purpose; here they would only look like a leak.
  const now = engine.now();
  while ((await engine.store.jobs.prune({ now, eventsBefore: now, limit: 1_000 })) > 0);
  run.forget();
}

/** A caller and its key. */
type Caller = Omit<KeyOptions, "hash"> & { readonly key: string };

class Run {
  sent = 0;
  streams = 0;
  readonly statuses = new Map<number, number>();
  readonly findings: string[] = [];
  readonly #server: Target;
  readonly #random: Random;
  /** Lets a little time pass. */
  readonly #turn: () => Promise<unknown>;
  readonly #known = new Known();
  readonly #callers: readonly Caller[] | undefined;

  constructor(server: Target, random: Random, turn: () => Promise<unknown>, callers?: readonly Caller[]) {
    this.#server = server;
    this.#random = random;
    this.#turn = turn;
    this.#callers = callers;
  }

  forget(): void {
    this.#known.clear();
  }

  async batch(size: number): Promise<void> {
    const open = new Set<StrangeRequest>();
    for (let index = 0; index < size; index++) {
      const made = strangeRequest(this.#random, this.#known);
      const caller = this.#callers && pick(this.#random, this.#callers);
      this.sent += 1;
      open.add(made);
      void this.#send(made, caller).finally(() => open.delete(made));
    }
    for (let turn = 0; open.size > 0 && turn < PATIENCE; turn++) await this.#turn();
    for (const made of open) this.#find(made, "was not answered");
  }

  async #send(made: StrangeRequest, caller: Caller | undefined): Promise<void> {
    let request: Request;
    try {
      request = new Request(`http://localhost${made.path}`, {
        method: made.method,
        headers: caller ? { Authorization: `Bearer ${caller.key}`, ...made.headers } : made.headers,
        body: made.body as string | null,
      });
    } catch {
      // What the web's own Request refuses is sent over a socket elsewhere.
      return;
    }
    try {
      const response = await this.#server.fetch(request);
      this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1);
      const isStream = response.headers.get("content-type") === "text/event-stream" && response.body !== null;
      const text = isStream ? await this.#readAlong(response.body) : await response.text();
      this.#look(made, response, text);
      this.#lookForOthers(made, caller, text);
    } catch (error) {
      this.#find(made, `threw ${String((error as Error).stack)}`);
    }
  }

  /** Reads the beginning of a stream, at times what follows, and leaves; the server must forget a reader that leaves. */
  async #readAlong(body: ReadableStream<Uint8Array>): Promise<string> {
    this.streams += 1;
    const reader = body.getReader();
    const most = this.#random() < 0.1 ? 3 : 1;
    let text = "";
    for (let chunks = 0; chunks < most; chunks++) {
      // Nobody promises a second chunk; a few turns are enough for those that come.
      const chunk = await Promise.race([reader.read(), this.#turns(20)]);
      if (!chunk || chunk.done) break;
      text += new TextDecoder().decode(chunk.value);
    }
    await reader.cancel();
    return text;
  }

  async #turns(count: number): Promise<undefined> {
    for (let turn = 0; turn < count; turn++) await this.#turn();
    return undefined;
  }

  #look(made: StrangeRequest, response: Response, text: string): void {
    const { status, headers } = response;
    const maySayUnready = /\/(ready|health)/.test(made.path);
    if (status >= 500 && !(status === 503 && maySayUnready)) this.#find(made, `${status} ${text}`);
    if (headers.get("x-request-id") === null) this.#find(made, "a reply without a request id");
    if (/\n\s+at |node:internal|\/src\//.test(text)) this.#find(made, `discloses our insides: ${text}`);
    const isStream = headers.get("content-type") === "text/event-stream";
    if (isStream && made.method !== "HEAD" && !text.startsWith("retry: "))
      this.#find(made, `a stream that begins with ${text.slice(0, 200)}`);
    if (text === "" || headers.get("content-type") !== "application/openjobspec+json") return;
    try {
      this.#learn(JSON.parse(text));
    } catch {
      this.#find(made, `not JSON: ${text.slice(0, 200)}`);
    }
  }

  /** The server writes the tenant into each job. Strange requests never do. */
  #lookForOthers(made: StrangeRequest, caller: Caller | undefined, text: string): void {
    if (typeof caller?.tenant !== "string") return;
    const named = [...text.matchAll(/"tenant(?:_id)?":"([^"]*)"/g)].map(([, tenant]) => tenant);
    const others = named.filter((tenant) => tenant !== caller.tenant);
    if (others.length > 0)
      this.#find(made, `tenant ${caller.tenant} sees ${others[0]}: ${text.slice(0, 500)}`);
  }

  /** Real jobs make the next requests more interesting. */
  #learn(reply: { job?: { id?: string }; jobs?: { id?: string; fence?: number }[] }): void {
    for (const job of [reply?.job, ...(Array.isArray(reply?.jobs) ? reply.jobs : [])]) {
      if (typeof job?.id === "string") this.#known.add(job.id, (job as { fence?: number }).fence);
    }
  }

  async within<Value>(work: Value | Promise<Value>): Promise<Value> {
    let isDone = false;
    const done = Promise.resolve(work).finally(() => (isDone = true));
    while (!isDone) await this.#turn();
    return done;
  }

  #find(made: StrangeRequest, what: string): void {
    const body =
      typeof made.body === "string"
        ? made.body.slice(0, 1_000)
        : made.body && Buffer.from(made.body).toString("hex");
    this.findings.push(`${made.method} ${made.path} ${JSON.stringify(made.headers)} ${body}\n  -> ${what}`);
  }
}
