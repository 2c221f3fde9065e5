import { expect, it } from "vitest";
import type { BeatAnswer } from "../../src/ports/store.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { jobWith, openOver } from "./stage.ts";

it("3.1 a prefetched job that another worker got while its changed row was read is not entered here", async () => {
  const another = { id: "", isNext: false, hasIt: false };
  const stage = await openOver((store) => ({
    ...store,
    jobs: {
      ...store.jobs,
      async load(ids, options) {
        const rows = await store.jobs.load(ids, options);
        if (!another.isNext) return rows;
        another.hasIt = true;
        return rows.map((row) => row && { ...row, fence: row.fence + 1 });
      },
      async beat(request) {
        const answers = await store.jobs.beat(request);
        const lost: BeatAnswer = { lost: "active" };
        return answers.map((answer, index) =>
          another.hasIt && request.jobs[index]?.id === another.id ? lost : answer,
        );
      },
    },
  }));
  const { engine } = stage;
  const entered: unknown[] = [];
  let length = 20;
  const { definition, processors } = jobWith(
    async ({ payload }) => {
      entered.push(payload);
      await stage.sleep(length);
    },
    { timeouts: { total: "1h" } },
  );
  stage.work(processors, { queues: { default: { concurrency: 1 } } });
  // Quick jobs first, so that the worker prefetches.
  await engine.enqueueMany(definition, [1, 2, 3]);
  await stage.advance("1s");
  length = 400;
  const [, held] = await engine.enqueueMany(definition, [4, 5]);
  await stage.advance("100ms");
  another.id = held?.id as string;
  expect(await rowOf(engine.store, another.id)).toMatchObject({ state: "active", startedAt: null });
  // The row changes, so the worker reads it before it enters the job.
  await engine.job(another.id).extend({ total: "1h" });
  another.isNext = true;
  await stage.advance("2s");
  expect(another.hasIt).toBe(true);
  expect(entered).toEqual([1, 2, 3, 4]);
});
