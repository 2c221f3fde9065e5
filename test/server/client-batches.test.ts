import { describe, expect, it } from "vitest";
import { batchProcessor, snooze } from "../../src/index.ts";
import { jobOf } from "../engine/stage.ts";
import { openClientStage } from "./client-stage.ts";

describe("batches of a remote worker (3.13)", () => {
  it("handles many jobs in one call, and reports a verdict for each", async () => {
    const { client, work, advance, load } = await openClientStage();
    const definition = jobOf({ retry: { attempts: 1 } });
    const sizes: number[] = [];
    const answers = [{ ok: true }, new Error("one failed"), snooze({ after: "1h" })];
    work([
      batchProcessor(definition, { size: 3, within: "1s" }, ({ jobs }) => {
        sizes.push(jobs.length);
        return jobs.map(({ payload }) => answers[payload as number] as never);
      }),
    ]);
    const jobs = await client.enqueueMany(definition, [0, 1, 2]);
    await advance("500ms");
    const rows = await Promise.all(jobs.map((job) => load(job)));
    expect(rows.map(({ state }) => state)).toEqual(["completed", "discarded", "scheduled"]);
    expect(rows[0]?.result).toBe('{"ok":true}');
    expect(sizes).toEqual([3]);
  });

  it("tells one job of its deadline and of a cancel, and leaves the others", async () => {
    const { client, engine, work, advance, load, system } = await openClientStage();
    const definition = jobOf({ retry: { attempts: 1 }, timeouts: { grace: "0s" } });
    const aborted: unknown[] = [];
    work([
      batchProcessor(definition, { size: 3, within: "1s" }, async ({ jobs, signal }) => {
        for (const job of jobs) job.signal.addEventListener("abort", () => aborted.push(job.payload));
        await new Promise<void>((resolve) => void system.after(5_000, resolve));
        aborted.push(signal.aborted);
      }),
    ]);
    const short = await client.enqueue(definition, 0, { timeouts: { attempt: "2s" } });
    const cancelled = await client.enqueue(definition, 1);
    const whole = await client.enqueue(definition, 2);
    await advance("1s");
    await engine.cancel(cancelled.id);
    await advance("9s");
    const rows = await Promise.all([short, cancelled, whole].map((job) => load(job)));
    expect(rows.map(({ state }) => state)).toEqual(["discarded", "cancelled", "completed"]);
    expect(rows[0]?.errors?.[0]?.type).toBe("timeout");
    expect(aborted.toSorted()).toEqual([0, 1, false]);
  });
});
