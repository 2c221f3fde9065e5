import { expect, it } from "vitest";
import { defineJob, unchecked } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";

it("a client sends debounce and throttle (4.8)", async () => {
  const { client, engine, advance, load } = await openClientStage();
  const payload = unchecked<{ customer: { id: number }; text: string }>();
  const debounced = defineJob({
    type: "customer.sync",
    payload,
    unique: { payload: ["customer.id"], debounce: { quiet: "1500ms", most: "10s" } },
  });
  const first = await client.enqueue(debounced, { customer: { id: 1 }, text: "a" });
  // Another process on the store sees the same key.
  const second = await engine.enqueue(debounced, { customer: { id: 1 }, text: "b" });
  expect((await load(first)).options?.replacedBy).toBe(second.id);
  const many = await client.enqueueMany(debounced, [
    { customer: { id: 1 }, text: "c" },
    { customer: { id: 2 }, text: "d" },
    { customer: { id: 1 }, text: "e" },
  ]);
  expect(many.map(({ duplicate }) => duplicate)).toEqual([true, false, false]);
  expect(many[0]?.id).toBe(many[2]?.id);
  expect((await load(many[2] as never)).payload).toContain('"e"');
  await advance("2s");
  expect((await load(many[2] as never)).state).toBe("available");
  const throttled = defineJob({ type: "report", unique: { key: "report", meta: ["a"], throttle: "1m" } });
  expect((await load(await client.enqueue(throttled))).state).toBe("available");
  expect((await load(await client.enqueue(throttled))).state).toBe("scheduled");
});
