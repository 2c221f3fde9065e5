import { describe, expect, it } from "vitest";
import { constant, type PolicyOptions } from "../../src/index.ts";
import { createSimSystem } from "../../src/testing/index.ts";
import { deaf, jobOf, jobWith, obedient, openPair, openStage, START, shared, storeOn } from "./stage.ts";

const WRITTEN = ["enqueue", "definition", "queue", "engine"] as const;

type Source = (typeof WRITTEN)[number];

/** Each source says a limit of its own, so that the limit tells who won. */
const SAYS: Record<Source, number> = { enqueue: 11, definition: 12, queue: 13, engine: 14 };

function said(source: Source, sources: readonly Source[]): PolicyOptions {
  if (!sources.includes(source)) return {};
  const seconds = SAYS[source];
  return {
    timeouts: {
      attempt: `${seconds}s`,
      grace: `${seconds}s`,
      heartbeat: `${seconds}m`,
      total: `${seconds}h`,
    },
    retry: { attempts: seconds, backoff: constant({ first: `${seconds}s` }) },
    retention: `${seconds}d`,
  };
}

describe("2 which setting wins, per field", () => {
  it.each(WRITTEN.map((name, index) => [name, WRITTEN.slice(index)] as const))(
    "%s goes before all that are less specific",
    async (winner, sources) => {
      const stage = await openStage(said("engine", sources));
      await stage.engine.queues.configure("default", said("queue", sources));
      const { definition, processors } = jobWith(deaf, said("definition", sources));
      stage.work(processors);
      const job = await stage.engine.enqueue(definition, null, said("enqueue", sources));
      await stage.advance("1s");
      const row = await stage.load(job);
      const seconds = SAYS[winner];
      expect(row.policy).toMatchObject({
        attempt: seconds * 1_000,
        grace: seconds * 1_000,
        heartbeat: seconds * 60_000,
        retry: { attempts: seconds, backoff: { first: seconds * 1_000 } },
        retention: { completed: seconds * 86_400_000 },
      });
      expect(row.totalAt).toBe(START + seconds * 3_600_000);
      expect(new Set(Object.values(row.policy?.sources ?? {}))).toContain(winner);
      const explained = await stage.engine.explain(job.id, definition);
      expect(explained.fields.find(({ field }) => field === "attempt")).toMatchObject({ source: winner });
    },
  );

  it("a field left out falls through: naming a duration at enqueue never resets the mode", async () => {
    const stage = await openStage({ timeouts: { grace: "7s" } });
    await stage.engine.queues.configure("default", { timeouts: { heartbeat: "8m" } });
    const { definition, processors } = jobWith(deaf, { timeouts: { mode: "discard", attempt: "5s" } });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition, null, { timeouts: { attempt: "3s" } });
    await stage.advance("1s");
    expect((await stage.load(job)).policy).toMatchObject({
      attempt: 3_000,
      mode: "discard",
      heartbeat: 480_000,
      grace: 7_000,
      sources: {
        attempt: "enqueue",
        mode: "definition",
        heartbeat: "queue",
        grace: "engine",
        backoff: "built-in",
      },
    });
  });

  it("settings of a queue are rows: a second engine on the same store sees them", async () => {
    const pair = await openPair();
    const { definition, processors } = jobWith(deaf);
    await pair.first.engine.queues.configure("default", { timeouts: { attempt: "42s", wait: "2m" } });
    await pair.advance(5_000);
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(1_000);
    const row = await pair.second.load(job);
    expect(row.policy).toMatchObject({ attempt: 42_000, sources: { attempt: "queue" } });
    expect(row.options).toMatchObject({ wait: 120_000, waitFrom: "queue" });
  });

  it("a changed queue setting holds for jobs that start after it", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf);
    stage.work(processors);
    const before = await stage.engine.enqueue(definition);
    await stage.advance("1s");
    await stage.engine.queues.configure("default", { timeouts: { attempt: "42s" } });
    const after = await stage.engine.enqueue(definition);
    await stage.advance("1s");
    expect((await stage.load(before)).policy?.attempt).toBe(1_800_000);
    expect((await stage.load(after)).policy?.attempt).toBe(42_000);
  });
});

describe("2 what is fixed when", () => {
  it("a redeploy does not reshape a job that has begun", async () => {
    const pair = await openPair();
    const settings: PolicyOptions = {
      timeouts: { attempt: "10s", grace: "1s" },
      retry: { attempts: 3, backoff: constant({ first: "20s", jitter: false }) },
    };
    const old = jobWith(obedient, settings);
    const worker = pair.first.work(old.processors);
    const job = await pair.first.engine.enqueue(old.definition);
    await pair.advance(11_000);
    expect((await pair.first.load(job)).state).toBe("retryable");
    await worker.close();
    const redeployed = jobWith(obedient, {
      timeouts: { attempt: "5m", grace: "5m" },
      retry: { attempts: 1 },
    });
    pair.second.work(redeployed.processors);
    await pair.advance(21_000);
    const row = await pair.first.load(job);
    expect(row).toMatchObject({ state: "active", attempt: 2, policy: { attempt: 10_000, grace: 1_000 } });
    expect(row.softAt).toBe((row.startedAt ?? 0) + 10_000);
    await pair.advance(11_000);
    expect(await pair.first.load(job)).toMatchObject({ state: "retryable", attempt: 2 });
  });

  it("total and wait are fixed to the millisecond at enqueue, whatever the worker's definition says", async () => {
    const stage = await openStage();
    const producer = jobOf({ timeouts: { wait: "5m", total: "7m" } });
    const { processors } = jobWith(deaf, { timeouts: { wait: "1m", total: "2m" } });
    const job = await stage.engine.enqueue(producer);
    await stage.advance("90s");
    stage.work(processors);
    await stage.advance("10s");
    expect(await stage.load(job)).toMatchObject({ state: "active", totalAt: START + 420_000 });
  });

  it("they survive a restart of everything but the store", async () => {
    const system = createSimSystem({ seed: 3, startAt: START });
    const store = storeOn(system);
    const before = await openStage({ store: shared(store) });
    const job = await before.engine.enqueue(jobOf({ timeouts: { total: "1h" } }));
    await before.close();
    system.pause(1_800_000);
    const after = await openStage({ store: shared(store) });
    expect((await after.load(job)).totalAt).toBe(START + 3_600_000);
    expect(after.engine.now()).toBe(START + 1_800_000);
  });
});

describe("2 explain", () => {
  it("before the first start explain shows what a start now would give", async () => {
    const stage = await openStage({ timeouts: { attempt: "1h" } });
    await stage.engine.queues.configure("default", { timeouts: { total: "10s" } });
    const definition = jobOf({ timeouts: { attempt: "2m" }, retry: { attempts: 5 } });
    const job = await stage.engine.enqueue(definition, null, { timeouts: { attempt: "30s" } });
    const explained = await stage.engine.explain(job.id, definition);
    expect(explained.fixed).toBe(false);
    expect(explained.fields.find(({ field }) => field === "attempt")).toEqual({
      field: "attempt",
      value: "30s",
      source: "enqueue",
      lost: [
        { source: "definition", value: "2m" },
        { source: "engine", value: "1h" },
        { source: "built-in", value: "30m" },
      ],
    });
    expect(explained.instants).toMatchObject({ soft: START + 10_000, total: START + 10_000, due: START });
    expect(explained.warnings.join("\n")).toMatch(/backoffs of 5 attempts/);
    expect(explained.warnings.join("\n")).toMatch(/attempt \(30s\) is longer than total \(10s\)/);
    expect(explained.toString()).toContain("Policies are what a first start now would fix.");
  });

  it("after the first start explain shows what the start fixed, and later settings that do not count", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, { timeouts: { attempt: "2m" } });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1s");
    const redeployed = jobOf({ timeouts: { attempt: "9m" } });
    const explained = await stage.engine.explain(job.id, redeployed);
    expect(explained.fixed).toBe(true);
    expect(explained.instants).toMatchObject({ soft: START + 120_000, hard: START + 150_000 });
    expect(explained.fields.find(({ field }) => field === "attempt")).toMatchObject({
      value: "2m",
      source: "definition",
    });
  });
});
