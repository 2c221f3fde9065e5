import { describe, expect, it } from "vitest";
import { chain, defineJob, group, processor, step, unchecked } from "../../src/index.ts";
import { openStage, START } from "./stage.ts";

/** Limited jobs by payload and second of their start, with what the steps before them gave. */
async function openLimited(more: object = {}) {
  const stage = await openStage();
  const limited = defineJob({
    type: "test.limited",
    payload: unchecked<string>(),
    result: unchecked<string>(),
    limit: { key: "k", concurrency: 1 },
    ...more,
  });
  const plain = defineJob({
    type: "test.plain",
    payload: unchecked<number>(),
    result: unchecked<string>(),
  });
  const starts: string[] = [];
  const parents: unknown[] = [];
  const counts = { running: 0, most: 0 };
  const processors = [
    processor(plain, async ({ payload }) => {
      await stage.sleep(payload);
      return `after ${payload}`;
    }),
    processor(limited, async ({ payload, parentResults }) => {
      starts.push(`${payload}${(stage.now() - START) / 1_000}`);
      parents.push(parentResults);
      counts.running += 1;
      counts.most = Math.max(counts.most, counts.running);
      await stage.sleep(1_000);
      counts.running -= 1;
      return `${payload}!`;
    }),
  ];
  const queues = { default: { concurrency: 10 }, narrow: { concurrency: 10 } };
  const work = () => stage.work(processors, { queues });
  return { stage, limited, plain, starts, parents, counts, work };
}

describe("a limited step of a workflow", () => {
  it("waits until it is ready, then for its limit, and gets its results", async () => {
    const { stage, limited, plain, starts, parents, counts, work } = await openLimited();
    work();
    const { workflows } = stage.engine;
    const two = chain([
      group([step(plain, 500), step(plain, 1_500)]),
      step(limited, "x"),
      step(limited, "y"),
    ]);
    const workflow = await workflows.start(two);
    // These end one after the other while the step waits: none of the places that they free is for it yet.
    await stage.engine.enqueueMany(limited, [..."abc"]);
    await stage.advance("10s");
    expect(counts).toEqual({ running: 0, most: 1 });
    expect(starts).toEqual(["a0", "b1", "c2", "x3", "y4"]);
    expect(parents.slice(3)).toEqual([["after 500", "after 1500"], ["x!"]]);
    expect(await workflow.result()).toBe("y!");
    expect((await stage.engine.limits.get("k")).inUse).toBe(0);
  });

  it("a limited step that is first or delayed waits for its limit too", async () => {
    const { stage, limited, starts, counts, work } = await openLimited();
    work();
    const delayed = () => chain([step(limited, "a"), step(limited, "b", { delay: "5s" })]);
    await stage.engine.workflows.start(delayed());
    await stage.engine.workflows.start(delayed());
    await stage.advance("20s");
    expect(counts).toEqual({ running: 0, most: 1 });
    expect(starts).toEqual(["a0", "a1", "b6", "b7"]);
  });

  it("frees its slot when its workflow is cancelled", async () => {
    const { stage, limited, starts, work } = await openLimited();
    const workflow = await stage.engine.workflows.start(chain([step(limited, "x"), step(limited, "y")]));
    await stage.advance("1s");
    await stage.engine.enqueue(limited, "a");
    expect(await stage.engine.limits.get("k")).toMatchObject({ inUse: 1, waiting: 1 });
    await workflow.cancel();
    expect(await stage.engine.limits.get("k")).toMatchObject({ inUse: 1, waiting: 0 });
    work();
    await stage.advance("5s");
    expect(starts).toEqual(["a1"]);
    expect(await stage.engine.limits.get("k")).toMatchObject({ inUse: 0, waiting: 0 });
  });

  it("is neither dropped by a full queue nor purged before it is ready", async () => {
    const { stage, limited, plain, starts, work } = await openLimited({ queue: "narrow" });
    await stage.engine.queues.configure("narrow", { depth: { most: 1, onFull: "drop-oldest" } });
    const workflow = await stage.engine.workflows.start(chain([step(plain, 2_000), step(limited, "x")]));
    expect(await stage.engine.queues.purge("narrow")).toBe(0);
    await expect(stage.engine.enqueue(limited, "a")).rejects.toThrow("narrow");
    work();
    await stage.advance("5s");
    expect(await workflow.view()).toMatchObject({ state: "completed" });
    expect(starts).toEqual(["x2"]);
  });
});

describe("a limited job that is unique", () => {
  it("is a duplicate while another one lives, even if that one waits for its limit", async () => {
    const { stage, limited, starts, counts, work } = await openLimited({ unique: {} });
    const handles = await stage.engine.enqueueMany(limited, [..."aabbc"]);
    expect(handles.map(({ duplicate }) => duplicate)).toEqual([false, true, false, true, false]);
    expect((await stage.engine.enqueue(limited, "c")).duplicate).toBe(true);
    work();
    await stage.advance("5s");
    expect(counts).toEqual({ running: 0, most: 1 });
    expect(starts).toEqual(["a0", "b1", "c2"]);
  });

  it.each(["replace", "replace-except-schedule"] as const)(
    "a unique job with %s takes the slot of the one it replaces",
    async (onConflict) => {
      for (const period of [{}, { period: "1h" }]) {
        const unique = { key: "u", onConflict, ...period };
        const { stage, limited, starts, counts, work } = await openLimited();
        const enqueue = (payload: string) => stage.engine.enqueue(limited, payload, { unique } as object);
        await stage.engine.enqueue(limited, "x");
        const [first, second] = [await enqueue("a"), await enqueue("b")];
        expect((await stage.load(first)).state).toBe("cancelled");
        expect(await stage.load(second)).toMatchObject({ state: "pending", limitKey: "k" });
        work();
        await stage.advance("5s");
        expect(counts).toEqual({ running: 0, most: 1 });
        expect(starts).toEqual(["x0", "b1"]);
      }
    },
  );
});

describe("a limited job of a cron", () => {
  it("keeps the key that its payload gives", async () => {
    const limit = { key: (payload: string) => `user ${payload}`, concurrency: 1 };
    const { stage, limited } = await openLimited({ limit });
    await stage.engine.crons.put("c", { cron: "@hourly", job: limited, payload: "7" });
    await stage.advance("125m");
    expect(await stage.engine.limits.get("user 7")).toMatchObject({ inUse: 1, waiting: 1 });
  });
});

describe("what operators do with limits and queues", () => {
  it("is in the audit with their name, and in the journal", async () => {
    const stage = await openStage({ events: "durable" } as object);
    const by = { actor: "eva", reason: "quiet hours" };
    await stage.engine.limits.put("k", { concurrency: 2 }, by);
    await stage.engine.limits.delete("k", by);
    await stage.engine.queues.configure("q", { concurrency: 3 }, by);
    await stage.engine.queues.reset("q", by);
    const { entries } = await stage.engine.audit.read();
    expect(entries.map(({ action }) => action).reverse()).toEqual([
      "limit.put",
      "limit.delete",
      "queue.configure",
      "queue.reset",
    ]);
    expect(entries.at(-1)).toMatchObject({ ...by, details: { key: "k", concurrency: 2 } });
    const { events } = await stage.engine.journal.read();
    expect(events.map(({ name }) => name)).toEqual([
      "limit.changed",
      "limit.changed",
      "queue.configured",
      "queue.reset",
    ]);
  });
});

describe("a pending job with a limit that is to start later", () => {
  it("waits for its limit once it is activated and due", async () => {
    const { stage, limited, starts, work } = await openLimited();
    work();
    const options = { delay: "5s" } as const;
    const job = { definition: limited, payload: '"a"', options, isPending: true };
    const [waiting] = await stage.engine.service.enqueue([job as never], stage.now());
    await stage.engine.activate((waiting as { row: { id: string } }).row.id);
    await stage.advance("10s");
    expect(starts).toEqual(["a5"]);
  });
});
