import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { chain, defineJob, openEngine, processor, step } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createDatabase } from "../postgres.ts";

const job = defineJob({ type: "test.job", queue: "work" });
const single = defineJob({ type: "test.single", queue: "work", unique: { payload: true } });
const failing = defineJob({
  type: "test.failing",
  queue: "fail",
  retry: { attempts: 1, onExhausted: "dead-letter" },
});

/** Two tenants and the engine of all on each store, in real time. */
const STORES = {
  async memory(run: (engine: Engine) => Promise<void>) {
    await using engine = await openEngine({ store: "memory:", logger: silentLogger, events: "durable" });
    await run(engine);
  },
  async sqlite(run: (engine: Engine) => Promise<void>) {
    const folder = mkdtempSync(join(tmpdir(), "curfew-tenants-"));
    try {
      const store = `sqlite:${join(folder, "jobs.db")}`;
      await using engine = await openEngine({ store, logger: silentLogger, events: "durable" });
      await run(engine);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  async postgres(run: (engine: Engine) => Promise<void>) {
    await using database = await createDatabase(inject("postgresUrl"));
    await using engine = await openEngine({ store: database.url, logger: silentLogger, events: "durable" });
    await run(engine);
  },
};

async function idsOf(engine: Engine, query: Parameters<Engine["find"]>[0] = {}): Promise<string[]> {
  return (await engine.find(query, { newestFirst: true, limit: 100 })).jobs.map(({ id }) => id);
}

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])("tenants on %s", (name) => {
  it("see and change nothing of each other", () =>
    STORES[name](async (engine) => {
      const [a, b] = [await engine.tenant("a"), await engine.tenant("b")];
      const id = "018f0000-0000-7000-8000-00000000abcd";
      // The same id, unique key and limit key in all three spaces.
      for (const one of [a, b, engine]) {
        const handle = await one.enqueue(job, undefined, { id, limit: { key: "k", concurrency: 1 } });
        expect(handle.duplicate).toBe(false);
        expect((await one.enqueue(single, { n: 1 } as never)).duplicate).toBe(false);
        expect((await one.enqueue(single, { n: 1 } as never)).duplicate).toBe(true);
      }
      const again = await a.enqueue(job, undefined, { id });
      expect([again.duplicate, again.id]).toEqual([true, id]);
      const only = await a.enqueue(job, undefined, { meta: { x: 1 } });
      expect((await a.load(only.id))?.meta).toEqual({ x: 1, tenant_id: "a" });
      expect([await b.load(only.id), await engine.load(only.id)]).toEqual([null, null]);
      await expect(b.cancel(only.id)).rejects.toMatchObject({ code: "not_found" });
      await expect(engine.cancel(only.id)).rejects.toMatchObject({ code: "not_found" });
      expect((await idsOf(a)).length).toBe(3);
      expect((await idsOf(b)).length).toBe(2);
      expect((await idsOf(engine)).length).toBe(2);
      expect(await idsOf(a, { queue: "work", type: "test.job" })).toHaveLength(2);
      expect((await a.queues.depth()).available + (await a.queues.depth()).pending).toBe(3);
      expect((await b.queues.list()).map((queue) => queue.name)).toEqual(["work"]);
      expect((await a.limits.list()).map(({ key }) => key)).toEqual(["k"]);
      expect((await engine.limits.list()).map(({ key }) => key)).toEqual(["k"]);
      // Each limit is used by one job of its own tenant.
      for (const one of [a, b, engine]) expect((await one.limits.get("k")).inUse).toBe(1);
      expect(await engine.tenants.use("a")).toEqual({ active: 0, waiting: 3 });
    }));

  it("work on their own jobs, and the sweep of the engine acts within each", () =>
    STORES[name](async (engine) => {
      const [a, b] = [await engine.tenant("a"), await engine.tenant("b")];
      const ran: string[] = [];
      const worker = a.work({
        processors: [
          processor(job, async ({ meta }) => {
            ran.push(String(meta?.tenant_id));
          }),
          processor(failing, async () => {
            throw new Error("no");
          }),
        ],
      });
      const others = await b.enqueue(job);
      const done = await a.enqueue(job);
      const later = await a.enqueue(job, undefined, { delay: "30ms" });
      await Promise.all([done.result({ within: "1m" }), later.result({ within: "1m" })]);
      expect(ran).toEqual(["a", "a"]);
      expect((await b.load(others.id))?.state).toBe("available");
      const dead = await a.enqueue(failing);
      await expect(dead.result({ within: "1m" })).rejects.toThrow();
      expect((await a.deadLetters.list()).jobs.map(({ id }) => id)).toEqual([dead.id]);
      expect((await b.deadLetters.list()).jobs).toEqual([]);
      expect((await engine.deadLetters.list()).jobs).toEqual([]);
      // A chain ends: its steps are counted down, and its record closed, within the tenant.
      const flow = await a.workflows.start(chain([step(job), step(job)]));
      await flow.result({ within: "1m" });
      expect((await a.workflows.list()).map(({ id }) => id)).toEqual([flow.id]);
      expect((await a.workflows.list({ order: "desc" })).map(({ id }) => id)).toEqual([flow.id]);
      expect(await engine.workflows.list({ order: "desc" })).toEqual([]);
      expect([await b.workflows.list(), await engine.workflows.list()]).toEqual([[], []]);
      const events = (await a.journal.read({ limit: 1_000 })).events;
      expect(events.some(({ name }) => name === "workflow.completed")).toBe(true);
      expect(events.every(({ tenant }) => tenant === "a")).toBe(true);
      // From the newest to the oldest, one event at a time.
      const backwards: string[] = [];
      let page = await a.journal.latest({ limit: 1 });
      for (; page.events.length > 0 && backwards.length <= events.length; ) {
        backwards.unshift(...page.events.map(({ cursor }) => cursor));
        if (page.before === null) break;
        page = await a.journal.latest({ limit: 1, before: page.before });
      }
      expect(backwards).toEqual(events.map(({ cursor }) => cursor));
      expect((await b.journal.read({ limit: 1_000 })).events.map(({ job: of }) => of)).toEqual([others.id]);
      expect((await engine.journal.read()).events.filter(({ job: of }) => of !== undefined)).toEqual([]);
      await worker.close();
    }));

  it("have crons and timeouts of their own", () =>
    STORES[name](async (engine) => {
      const [a, b] = [await engine.tenant("a"), await engine.tenant("b")];
      for (const one of [a, b])
        await one.crons.put("c", { cron: "0 0 1 1 *", job, options: { queue: "crons" } });
      expect((await a.crons.list()).map((cron) => cron.name)).toEqual(["c"]);
      expect(await engine.crons.list()).toEqual([]);
      await b.crons.delete("c");
      await a.crons.trigger("c");
      expect((await idsOf(a, { queue: "crons" })).length).toBe(1);
      expect(await idsOf(b)).toEqual([]);
      const due = await a.timeouts.enqueue(job, undefined as never, { dueAt: "1h", queue: "due" });
      expect(await b.timeouts.get(due)).toBeNull();
      expect((await a.timeouts.list()).map(({ id }) => id)).toEqual([due]);
      expect(await engine.timeouts.list()).toEqual([]);
      expect((await a.timeouts.calendar()).timeouts.map(({ id }) => id)).toEqual([due]);
      expect((await b.timeouts.calendar()).timeouts).toEqual([]);
      expect((await engine.timeouts.calendar()).timeouts).toEqual([]);
      expect([(await a.timeouts.count()).pending, (await b.timeouts.count()).pending]).toEqual([1, 0]);
      // Long enough to be answered before it is due.
      await a.timeouts.reschedule(due, "500ms");
      await expect.poll(async () => (await idsOf(a, { queue: "due" })).length).toBe(1);
    }));
});
