import { expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { openTestEngine } from "../../src/testing/index.ts";

const job = defineJob({
  type: "later",
  retry: { attempts: 2, backoff: { kind: "constant", first: 3_600_000, max: 3_600_000, jitter: false } },
});

it("changes when a waiting job is due, in both directions", async () => {
  await using test = await openTestEngine();
  const ran: number[] = [];
  test.engine.work({ processors: [processor(job, () => void ran.push(test.now() - started))] });
  const started = test.now();
  const handle = await test.engine.enqueue(job, undefined, { delay: "1h" });
  expect((await handle.reschedule({ delay: "10m" })).state).toBe("scheduled");
  await test.advance("9m");
  expect((await handle.reschedule({ at: new Date(started + 30 * 60_000) })).state).toBe("scheduled");
  await test.advance("1h");
  expect(ran).toHaveLength(1);
  expect(Math.round((ran[0] as number) / 60_000)).toBe(30);
});

it("moves an available job and the retry of a failed one", async () => {
  await using test = await openTestEngine();
  const waiting = await test.engine.enqueue(job);
  expect((await waiting.reschedule({ delay: "5m" })).state).toBe("scheduled");
  let runs = 0;
  test.engine.work({
    processors: [
      processor(job, () => {
        runs += 1;
        throw new Error("no");
      }),
    ],
  });
  await test.advance("6m");
  expect([runs, (await waiting.load())?.state]).toEqual([1, "retryable"]);
  expect((await waiting.reschedule({ delay: "1m" })).state).toBe("retryable");
  await test.advance("2m");
  expect([runs, (await waiting.load())?.state]).toEqual([2, "discarded"]);
  await expect(waiting.reschedule({ delay: "1m" })).rejects.toThrow(
    "is discarded; reschedule works only on jobs that are scheduled",
  );
});

it("a time in the past is now", async () => {
  await using test = await openTestEngine();
  const handle = await test.engine.enqueue(job, undefined, { delay: "1h" });
  expect((await handle.reschedule({ delay: "0s" })).state).toBe("available");
  expect((await handle.reschedule({ at: new Date(0) })).state).toBe("available");
});

it("a job that its limit admitted stays, and the error says so", async () => {
  await using test = await openTestEngine();
  const handle = await test.engine.enqueue(job, undefined, { limit: { key: "bank", concurrency: 1 } });
  await expect(handle.reschedule({ delay: "5m" })).rejects.toThrow('was admitted by its limit "bank"');
});

it.each([
  [{ delay: "10m" }, "where its wait ends, so it could never run; name an earlier time, or cancel it"],
  [{}, "reschedule"],
  [{ delay: "1m", at: new Date() }, "reschedule"],
  [{ delay: 5 }, "reschedule.delay"],
  [{ dely: "5m" }, "did you mean delay"],
])("%j is refused", async (when, message) => {
  await using test = await openTestEngine();
  const handle = await test.engine.enqueue(job, undefined, { delay: "1m", timeouts: { wait: "5m" } });
  await expect(handle.reschedule(when as never)).rejects.toThrow(message);
  expect((await handle.load())?.state).toBe("scheduled");
});

it("past its total the error says to extend that, and then it works", async () => {
  await using test = await openTestEngine();
  const handle = await test.engine.enqueue(job, undefined, { delay: "1m", timeouts: { total: "5m" } });
  await expect(handle.reschedule({ delay: "10m" })).rejects.toThrow(
    /05:00.*Z, where its total ends.*extend its total first/,
  );
  await handle.extend({ total: "1h" });
  expect((await handle.reschedule({ delay: "10m" })).state).toBe("scheduled");
});
