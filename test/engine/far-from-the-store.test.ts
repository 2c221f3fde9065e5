import { expect, it, onTestFinished } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { type AttemptContext, defineJob, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import { createSimSystem, type SimSystem } from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { START, shared, sleepOn, storeOn } from "./stage.ts";

/** One way, in milliseconds. */
const AWAY = 450;

/** The store as it is reached from far away. */
function farAway(store: Store, system: SimSystem): Store {
  const far =
    <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      await sleepOn(system, AWAY);
      const answer = await call(...args);
      await sleepOn(system, AWAY);
      return answer;
    };
  const { jobs } = store;
  return {
    ...shared(store),
    clock: far(store.clock),
    commit: far(store.commit),
    jobs: { ...jobs, claim: far(jobs.claim), beat: far(jobs.beat), load: far(jobs.load) },
  };
}

/** A handler that hears nothing and reports its progress, so that a commit is always under way. */
async function report(system: SimSystem, { progress }: Pick<AttemptContext, "progress">): Promise<void> {
  for (let step = 0; step < 600; step++) {
    progress((step % 100) / 100);
    await sleepOn(system, 100);
  }
}

/** An engine beside the store that enqueues, and one far away that works. */
async function openBoth() {
  const system = createSimSystem({ seed: 3, startAt: START });
  const store = storeOn(system);
  const near = await Engine.open({ system, store: shared(store), logger: silentLogger });
  const opening = Engine.open({ system, store: farAway(store, system), logger: silentLogger });
  await system.advance(20 * AWAY);
  const far = await opening;
  onTestFinished(async () => {
    const closing = Promise.all([near.close({ drain: "0s" }), far.close({ drain: "0s" })]);
    await system.advance(20_000);
    await closing;
  });
  return { system, store, near, far };
}

it("4.3 a start that is committed first counts its wait for the commit before it, and is entered", async () => {
  const { system, near, far } = await openBoth();
  const writes = defineJob({ type: "writes", timeouts: { attempt: "5m" } });
  const rated = defineJob({ type: "rated" });
  const entered: number[] = [];
  far.work({
    processors: [
      processor(writes, (context) => report(system, context)),
      processor(rated, () => void entered.push(system.monotonic())),
    ],
  });
  await near.enqueue(writes);
  await system.advance(3_000);
  await near.enqueue(rated, null, { limit: { key: "k", rate: { limit: 5, per: "1s" } } });
  await system.advance(20_000);
  expect(entered).toHaveLength(1);
});

it("1 a job whose wait ends soon is entered after the store knows that its wait is over", async () => {
  const { system, store, near, far } = await openBoth();
  const definition = defineJob({ type: "test.job", timeouts: { wait: "6s" } });
  const waits: unknown[] = [];
  far.work({
    processors: [processor(definition, async ({ id }) => void waits.push((await rowOf(store, id))?.waitAt))],
  });
  await system.advance(2_000);
  const { id } = await near.enqueue(definition);
  expect((await rowOf(store, id))?.waitAt).toEqual(expect.any(Number));
  await system.advance(10_000);
  expect(waits).toEqual([null]);
});

it("5.2 a handler that takes all of its grace leaves time for the release", async () => {
  const { system, store, near, far } = await openBoth();
  const definition = defineJob({ type: "test.job", timeouts: { grace: "1m" } });
  far.work({ processors: [processor(definition, (context) => report(system, context))] });
  const { id } = await near.enqueue(definition);
  await system.advance(5_000);
  expect(await rowOf(store, id)).toMatchObject({ state: "active", attempt: 1 });
  const closedAt: number[] = [];
  const from = system.monotonic();
  void far.close({ drain: "0s" }).then(() => closedAt.push(system.monotonic() - from));
  await system.advance(6_500);
  expect(closedAt).toEqual([expect.any(Number)]);
  expect(await rowOf(store, id)).toMatchObject({ state: "available", attempt: 0 });
});

it("5.2 gives back at once a job whose claim is being confirmed", async () => {
  const { system, store, near, far } = await openBoth();
  const short = defineJob({ type: "short" });
  const long = defineJob({ type: "long" });
  far.work({
    queues: { default: { concurrency: 1 } },
    processors: [processor(short, () => sleepOn(system, 5)), processor(long, () => sleepOn(system, 500))],
  });
  // Only a worker whose handlers are quick claims ahead.
  await near.enqueue(short);
  await system.advance(5_000);
  await near.enqueue(long);
  const { id } = await near.enqueue(short);
  await system.advance(AWAY + 400);
  const { worker } = (await rowOf(store, id)) ?? {};
  expect(worker).toEqual(expect.any(String));
  await near.extend(id, { total: "1h" });
  // The first job ends, and the claim of the second is too old to be entered without a question.
  await system.advance(AWAY + 300);
  void far.close({ drain: "0s" });
  await system.advance(7_000);
  expect(await rowOf(store, id)).toMatchObject({ state: "available", attempt: 0 });
});
