import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import {
  chain,
  defineJob,
  type Engine,
  type JournalEvent,
  openEngine,
  processor,
  QueueFullError,
  silentLogger,
  step,
  unchecked,
} from "../../src/index.ts";
import { diary } from "../engine/saga-stage.ts";
import { createDatabase } from "../postgres.ts";
import { testFolder } from "../support/folders.ts";

/** What happens around jobs, recorded in real databases: each event once, in the write that it reports. */

async function openSqlite(): Promise<string> {
  const folder = testFolder();
  return `sqlite:${join(folder, "jobs.db")}`;
}

async function openPostgres(): Promise<string> {
  const database = await createDatabase(inject("postgresUrl"));
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database.url;
}

/** An engine that is closed before its store is taken away. */
async function open(address: () => Promise<string>): Promise<Engine> {
  const engine = await openEngine({ store: await address(), logger: silentLogger, events: "durable" });
  onTestFinished(() => engine.close({ drain: "0s" }));
  return engine;
}

/** All that is recorded until one fits. */
async function until(engine: Engine, fits: (event: JournalEvent) => boolean): Promise<JournalEvent[]> {
  const events: JournalEvent[] = [];
  for await (const event of engine.journal.follow({ after: null })) {
    events.push(event);
    if (fits(event)) return events;
  }
  return events;
}

const job = defineJob({ type: "any", payload: unchecked<string>() });
const named = (events: readonly JournalEvent[], ...names: string[]) =>
  events.filter(({ name }) => names.includes(name));

describe.each([
  ["SQLite", openSqlite],
  ["PostgreSQL", openPostgres],
] as const)("%s", (_, address) => {
  it("signs of life come in the beats that move the deadline, and workers from start to end", async () => {
    const engine = await open(address);
    const beating = defineJob({ type: "beating", timeouts: { heartbeat: "8s" } });
    let calls = 0;
    let isEnough = false;
    const worker = engine.work({
      processors: [
        processor(beating, async ({ beat, signal }) => {
          while (!isEnough && !signal.aborted) {
            // Real time: a heartbeat is written when some of it has passed.
            await new Promise((resolve) => setTimeout(resolve, 200));
            beat();
            calls += 1;
          }
        }),
      ],
    });
    const { id } = await engine.enqueue(beating);
    await until(engine, ({ name }) => name === "job.heartbeat");
    isEnough = true;
    const events = await until(engine, ({ name }) => name === "job.completed");
    const beats = named(events, "job.heartbeat");
    expect(beats.length).toBeGreaterThanOrEqual(1);
    expect(beats.length).toBeLessThanOrEqual(calls);
    for (const { job: of, attempt, at, visibleUntil = 0 } of beats) {
      expect([of, attempt]).toEqual([id, 1]);
      expect(visibleUntil - at).toBeGreaterThan(0);
      // The heartbeat, counted from the latest instant that it can be: a slow reply of the store widens that.
      expect(visibleUntil - at).toBeLessThan(16_000);
    }
    await worker.close();
    const life = await until(engine, ({ name }) => name === "worker.stopped");
    // On a busy machine this process may stand still, and then the worker says so, too.
    const names = life.filter(({ subject, name }) => subject === worker.id && name !== "worker.blocked");
    expect(names.map(({ name }) => name)).toEqual(["worker.started", "worker.quiet", "worker.stopped"]);
  });

  it("steps of sagas come in their commits, each once", async () => {
    const engine = await open(address);
    const { saga } = diary((context, text, state) => (text === "end" ? context.complete(state) : undefined));
    engine.host([saga]);
    await engine.send(saga, "begun", { id: "a" });
    await engine.send(saga, "told", { id: "a", text: "end" });
    const events = await until(engine, ({ name }) => name === "saga.completed");
    expect(named(events, "saga.started", "saga.handled", "saga.completed").map(({ name }) => name)).toEqual([
      ...["saga.started", "saga.handled"],
      ...["saga.handled", "saga.completed"],
    ]);
    expect(events.at(-1)).toMatchObject({ subject: "a", data: { type: "diary" } });
    expect(named(events, "timeout.sent")).toEqual([]);
  });

  it("a full queue counts all that waits, and records its refusals once a second", async () => {
    const engine = await open(address);
    await engine.queues.configure("default", { depth: { most: 2, warnAt: 2 } });
    await engine.enqueue(job, "a", { delay: "1h" });
    await engine.enqueue(job, "b");
    const startedAt = performance.now();
    for (let nth = 0; nth < 20; nth++)
      await expect(engine.enqueue(job, "c", { delay: "1h" })).rejects.toThrow(QueueFullError);
    let told = 0;
    const events = await until(engine, ({ name, data }) => {
      if (name === "queue.full") told += Number(data?.count ?? 1);
      return told === 20;
    });
    const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
    expect(named(events, "queue.full").length).toBeLessThanOrEqual(1 + seconds);
    expect(named(events, "queue.pressure").length).toBe(1);
  });

  it("a key that a job holds without an end is named, and books of workflows are not counted", async () => {
    const engine = await open(address);
    const endless = defineJob({
      type: "endless",
      timeouts: { attempt: "none", heartbeat: "none" },
      limit: { key: "k", concurrency: 1, strict: true },
    });
    const handle = await engine.enqueue(endless);
    const started = until(engine, ({ name }) => name === "job.started");
    engine.work({ processors: [processor(endless, ({ signal }) => aborted(signal))] });
    await started;
    const [advice] = await engine.advise();
    expect(advice?.holds).toMatchObject([{ key: "k", job: handle.id, isWorkerGone: false }]);
    await handle.cancel();
    await engine.workflows.start(
      chain([step(job, "a", { queue: "nobody" }), step(job, "b", { queue: "nobody" })]),
    );
    expect(await engine.queues.depth()).toMatchObject({ available: 1, pending: 1, cancelled: 1 });
    expect((await engine.queues.list()).map(({ name }) => name)).toEqual(["default", "nobody"]);
  });
});

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}
