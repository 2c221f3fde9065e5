/**
 * A long job that is resumed and not begun again. A checkpoint is durable when its promise resolves and reaches the
 * next attempt; progress is for people who watch. Both count as beats, so `heartbeat` finds a handler that hangs.
 */

import { constant, defineJob, type Json, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const reindex = defineJob({
  type: "search.reindex",
  payload: z.object({ pages: z.int().positive() }),
  timeouts: { heartbeat: "30s", total: "1h" },
  retry: { backoff: constant({ first: "5s", jitter: false }) },
});

await using test = await openTestEngine();
const { engine } = test;
const startedAt = test.now();
const say = (text: string) =>
  console.log(`${String((test.now() - startedAt) / 1000).padStart(4)} s  ${text}`);
const indexPage = () => new Promise<void>((resolve) => test.system.after(10_000, resolve));

/** A checkpoint is JSON that an earlier version of this code may have written: look before use. */
const pageOf = (checkpoint: Json | undefined) => (typeof checkpoint === "number" ? checkpoint : 0);

engine.work({
  processors: [
    processor(reindex, async ({ payload, attempt, lastCheckpoint, checkpoint, progress, log }) => {
      const done = pageOf(lastCheckpoint);
      say(`attempt ${attempt} begins after page ${done}`);
      for (let page = done + 1; page <= payload.pages; page++) {
        await indexPage();
        if (attempt === 1 && page === 3) await new Promise(() => {}); // hangs here, the first time
        progress(page / payload.pages, `page ${page}`);
        await checkpoint(page);
      }
      log("index swapped", { pages: payload.pages });
    }),
  ],
});
engine.on("job.progress", ({ progress }) => say(`progress ${JSON.stringify(progress)}`));
engine.on("job.stalled", ({ error }) => say(`${error?.message}`));
engine.on("job.completed", () => say("completed"));

const job = await engine.enqueue(reindex, { pages: 4 });
await test.advance("5m");

// The log is kept with the job.
for (const { message, attempt } of (await job.logs()).lines)
  console.log(`log of attempt ${attempt}: ${message}`);
