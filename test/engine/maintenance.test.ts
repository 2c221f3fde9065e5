import { describe, expect, it, onTestFinished } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { jobWith, openOver, openStage, shared } from "./stage.ts";

describe("maintenance", () => {
  it("hands out no job of any queue, accepts enqueues, and resumes afterwards", async () => {
    const { engine, work, advance, load } = await openStage();
    const { definition, processors } = jobWith(() => "done");
    work(processors, { queues: { default: { concurrency: 5 }, other: { concurrency: 5 } } });
    await engine.maintenance.begin({ reason: "moving house" });
    const first = await engine.enqueue(definition);
    const second = await engine.enqueue(definition, null, { queue: "other" });
    await advance("60s");
    expect([(await load(first)).state, (await load(second)).state]).toEqual(["available", "available"]);
    await engine.maintenance.end();
    await advance("10ms");
    expect([(await load(first)).state, (await load(second)).state]).toEqual(["completed", "completed"]);
  });

  it("lets running jobs go on, and keeps their deadlines", async () => {
    const { engine, work, advance, load, sleep } = await openStage();
    const { definition, processors } = jobWith(({ payload }) => sleep(payload as number), {
      timeouts: { attempt: "10s", grace: "0s" },
      retry: { attempts: 1 },
    });
    work(processors, { queues: { default: { concurrency: 5 } } });
    const short = await engine.enqueue(definition, 5_000);
    const long = await engine.enqueue(definition, 50_000);
    await advance("1s");
    await engine.maintenance.begin();
    await advance("15s");
    expect([(await load(short)).state, (await load(long)).state]).toEqual(["completed", "discarded"]);
    expect((await load(long)).errors?.[0]?.type).toBe("timeout");
  });

  it("ends by itself after its time, and deletes its record", async () => {
    const { engine, work, advance, load } = await openOver((store) => store);
    const { definition, processors } = jobWith(() => "done");
    work(processors);
    const { endsAt } = await engine.maintenance.begin({ for: "30s" });
    expect(endsAt).toBe(engine.now() + 30_000);
    const job = await engine.enqueue(definition);
    await advance("29s");
    expect((await load(job)).state).toBe("available");
    expect(await engine.maintenance.status()).toMatchObject({ endsAt });
    await advance("10s");
    expect((await load(job)).state).toBe("completed");
    expect(await engine.maintenance.status()).toBeNull();
    expect(await engine.store.records.list("maintenance", null, 10)).toEqual([]);
  });

  it("holds for other engines on the same store within five seconds", async () => {
    const { engine, work, advance, load, system } = await openOver((store) => store);
    const other = await Engine.open({ system, store: shared(engine.store), logger: silentLogger });
    onTestFinished(() => other.close());
    const { definition, processors } = jobWith(() => "done");
    work(processors);
    await other.maintenance.begin();
    await advance("6s");
    const job = await engine.enqueue(definition);
    await advance("5s");
    expect((await load(job)).state).toBe("available");
    await other.maintenance.end();
    await advance("7s");
    expect((await load(job)).state).toBe("completed");
  });

  it("stops crons, whose missed setting decides what fires afterwards", async () => {
    const { engine, advance } = await openStage();
    const { definition } = jobWith(() => null);
    await engine.crons.put("once", { cron: "0 * * * *", missed: "once", job: definition });
    await engine.crons.put("skip", { cron: "0 * * * *", missed: "skip", job: definition });
    await engine.maintenance.begin();
    await advance("90m");
    expect(await jobsOf(engine.store)).toEqual([]);
    await engine.maintenance.end();
    await advance("20s");
    const jobs = await jobsOf(engine.store);
    expect(jobs.map(({ options }) => options?.meta?.cron)).toEqual(["once"]);
  });

  it("reports since when it lasts, and the audit has who began and ended it", async () => {
    const { engine, advance } = await openStage();
    const startedAt = engine.now();
    await engine.maintenance.begin({ reason: "a" }, { actor: "mia" });
    await advance("5s");
    const view = await engine.maintenance.begin({ reason: "b", estimate: "1h" }, { actor: "mia" });
    expect(view).toEqual({
      reason: "b",
      startedAt,
      endsAt: null,
      estimatedEnd: engine.now() + 3_600_000,
      by: { actor: "mia", reason: null, host: null },
    });
    await engine.maintenance.end({ actor: "tom", reason: "done" });
    const { entries } = await engine.audit.read();
    expect(entries.map(({ actor, action, reason }) => [actor, action, reason])).toEqual([
      ["tom", "maintenance.end", "done"],
      ["mia", "maintenance.begin", null],
      ["mia", "maintenance.begin", null],
    ]);
  });

  it("begin() rejects a long reason, an invalid duration and an unknown option", async () => {
    const { engine } = await openStage();
    await expect(engine.maintenance.begin({ reason: "x".repeat(501) })).rejects.toThrow("maintenance.reason");
    await expect(engine.maintenance.begin({ for: "soon" as never })).rejects.toThrow("maintenance.for");
    await expect(engine.maintenance.begin({ until: 3 } as never)).rejects.toThrow("until");
  });
});
