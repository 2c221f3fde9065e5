import { expect, it } from "vitest";
import { batch, chain, group, processor, step } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createLatch, type Latch } from "../../src/testing/latch.ts";
import { openPair, type Stage } from "./stage.ts";
import { echo, fails, waits } from "./workflow-stage.ts";

/** Two engines on one store: one of them stands still in the middle of a decision, and the other goes on. */

function workOn({ work }: Stage, ran: string[]) {
  work([
    processor(echo, ({ payload }) => {
      ran.push(payload);
      return `${payload}!`;
    }),
    processor(fails, ({ payload }) => {
      ran.push(payload);
      throw new Error("as told");
    }),
    processor(waits, ({ signal }) => {
      return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }),
  ]);
}

/** A store whose first read that `isHeld` names waits for the limit, as in a process that stands still before it. */
function holdRead(store: Store, limitKey: Latch, isHeld: (read: readonly string[]) => boolean): Store {
  let isFirst = true;
  const hold = async (read: readonly string[]) => {
    if (!isFirst || !isHeld(read)) return;
    isFirst = false;
    await limitKey.pass();
  };
  return {
    ...store,
    records: {
      ...store.records,
      load: async (keys) => {
        await hold(keys.map(([kind]) => kind));
        return store.records.load(keys);
      },
    },
    jobs: {
      ...store.jobs,
      load: async (ids) => {
        await hold(ids);
        return store.jobs.load(ids);
      },
    },
  };
}

it("a decision after the end of its workflow does not cancel a pending callback", async () => {
  const limitKey = createLatch();
  const isPlan = (read: readonly string[]) => read.includes("workflow.plan");
  const { first, second, advance } = await openPair((store) => holdRead(store, limitKey, isPlan));
  const ran: string[] = [];
  workOn(first, ran);
  workOn(second, ran);
  const members = batch([step(echo, "b")], { onComplete: step(echo, "called", { delay: "1m" }) });
  const workflow = await first.engine.workflows.start(chain([step(echo, "a", { retention: "0s" }), members]));
  await advance(10_000);
  await limitKey.reached();
  // The other engine decided in its place, and the step that the decision is about is gone.
  expect(await workflow.view()).toMatchObject({ state: "completed" });
  expect(ran).toEqual(["a", "b"]);
  limitKey.open();
  await advance(60_000);
  expect(ran).toEqual(["a", "b", "called"]);
});

it("a cancellation that another engine has finished does not cancel a step that was retried since then", async () => {
  const limitKey = createLatch();
  const held = { id: "" };
  const { first, second, advance } = await openPair((store) =>
    holdRead(store, limitKey, (read) => read.includes(held.id)),
  );
  const ran: string[] = [];
  workOn(first, ran);
  const workflow = await first.engine.workflows.start(group([step(fails, "failed"), step(waits, "waits")]));
  await advance(1_000);
  const [failed] = await workflow.steps();
  expect(failed).toMatchObject({ state: "discarded" });
  held.id = failed?.id as string;
  const cancelled = workflow.cancel();
  await limitKey.reached();
  await advance(10_000);
  await second.engine.queues.pause("default");
  await second.engine.retry(held.id);
  limitKey.open();
  await cancelled;
  expect(await first.load({ id: held.id })).toMatchObject({ state: "available" });
});
