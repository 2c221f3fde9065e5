import { describe, expect, it } from "vitest";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { faultyStore, type StoreCall } from "../../src/testing/faulty-store.ts";
import { jobWith, openOver, openStage, START, shared, silent } from "./stage.ts";

async function openCounted(wrap: (store: Store) => Store = (store) => store) {
  const calls: StoreCall[] = [];
  const stage = await openStage({
    store: (clock) =>
      wrap(
        faultyStore(createMemoryStore({ clock }), (call) => {
          calls.push(call);
          return undefined;
        }),
      ),
  });
  return { stage, calls };
}

describe("an engine at rest", () => {
  it("makes at most one call a second to its store, with a worker, sagas and timeouts", async () => {
    const { stage, calls } = await openCounted();
    const { processors } = jobWith(() => undefined);
    stage.work(processors);
    stage.engine.timeouts.serve("mail", () => {});
    await stage.advance("1m");
    calls.length = 0;
    await stage.advance("10m");
    expect(calls.length).toBeLessThanOrEqual(600);
    expect(calls.filter((call) => call === "look").length).toBeGreaterThanOrEqual(428);
  });

  it("asks about 2,500 queues in three calls each time, and not one by one", async () => {
    const { stage, calls } = await openCounted();
    const { processors } = jobWith(() => undefined);
    const names = Array.from({ length: 2_500 }, (_, nth) => [`queue-${nth}`, { concurrency: 1 }]);
    stage.work(processors, { queues: Object.fromEntries(names) });
    await stage.advance("1s");
    calls.length = 0;
    await stage.advance("30s");
    expect(calls.filter((call) => call === "look").length).toBeLessThanOrEqual(3 * 26);
    expect(calls.filter((call) => call === "jobs.claim").length).toBe(0);
  });
});

describe("without looks", () => {
  it("a job whose claim was not answered comes back when its lease ends", async () => {
    const blind = (store: Store): Store => ({
      ...store,
      look: async ({ records }) => ({
        nextWakeAt: null,
        ready: [],
        nextDueAt: null,
        versions: records.map(() => 0),
      }),
    });
    // The first claim finds nothing. The second one takes the job, and its answer is lost.
    const losing = (store: Store) =>
      faultyStore(store, (call, nth) => (call === "jobs.claim" && nth === 2 ? "lose-reply" : undefined));
    const stage = await openOver((store) => blind(losing(store)));
    const at: number[] = [];
    const { definition, processors } = jobWith(() => void at.push(stage.now() - START));
    stage.work(processors);
    await stage.advance("1s");
    await stage.engine.enqueue(definition);
    await stage.advance("9s");
    expect(at).toEqual([]);
    await stage.advance("2s");
    expect(at).toHaveLength(1);
  });
});

describe("without hints", () => {
  it("a job, a delayed job and a timeout of another process begin within 1.4 s", async () => {
    const stage = await openOver(silent);
    const other = await openStage({ store: shared(stage.engine.store) });
    const at: number[] = [];
    const { definition, processors } = jobWith(() => void at.push(stage.now() - START));
    stage.work(processors);
    stage.engine.timeouts.serve("mail", () => void at.push(stage.now() - START));
    await stage.advance("10s");
    await other.engine.enqueue(definition);
    await stage.advance("1400ms");
    await other.engine.enqueue(definition, undefined, { delay: "1ms" });
    await stage.advance("1410ms");
    await other.engine.timeouts.insert({ destination: "mail", dueAt: "1ms" });
    await stage.advance("1410ms");
    expect(at).toHaveLength(3);
  });

  it("settings of queues, schemas, events and maintenance of another process hold within 1.4 s", async () => {
    const stage = await openOver(silent);
    const other = await openStage({ store: shared(stage.engine.store) });
    let ran = 0;
    const { definition, processors } = jobWith(() => void ran++);
    stage.work(processors);
    await stage.advance("10s");
    await other.engine.maintenance.begin();
    await other.engine.queues.configure("default", { depth: { most: 1, onFull: "reject" } });
    await other.engine.journal.turnOn();
    await stage.advance("1400ms");
    expect(stage.engine.journal.isOn).toBe(true);
    await stage.engine.enqueue(definition);
    await expect(stage.engine.enqueue(definition)).rejects.toMatchObject({ code: "queue_full" });
    await stage.advance("5s");
    expect(ran).toBe(0);
    await other.engine.maintenance.end();
    await other.engine.queues.reset("default");
    await stage.advance("2800ms");
    expect(ran).toBe(1);
    await stage.engine.enqueueMany(definition, [undefined, undefined] as never);
  });
});

describe("a store that stops answering", () => {
  it("makes an idle worker unready within seconds, and ready again afterwards", async () => {
    let isFailing = false;
    const stage = await openOver((store) => faultyStore(store, () => (isFailing ? "drop" : undefined)));
    const { processors } = jobWith(() => undefined);
    const worker = stage.work(processors);
    await stage.advance("10s");
    expect(worker.status().ready).toBe(true);
    isFailing = true;
    await stage.advance("2s");
    expect(worker.status().ready).toBe(false);
    isFailing = false;
    await stage.advance("6s");
    expect(worker.status().ready).toBe(true);
  });
});
