import { describe, expect, it } from "vitest";
import { defineJob, processor, unchecked } from "../../src/index.ts";
import { errorOf, openStage } from "./stage.ts";

const charge = defineJob({
  type: "charge",
  payload: unchecked<{ cents: number }>(),
  timeouts: { total: "1h" },
});

describe("a handle of a job", () => {
  it("loads the job as a view of what the handler did", async () => {
    const { engine, advance } = await openStage();
    engine.work({
      processors: [
        processor(charge, async ({ progress, checkpoint }) => {
          progress(0.5, "half");
          await checkpoint({ page: 2 });
          return { receipt: 7 };
        }),
      ],
    });
    const job = await engine.enqueue(charge, { cents: 5 });
    await advance("1s");
    const view = await job.load();
    expect(view).toMatchObject({
      id: job.id,
      state: "completed",
      attempt: 1,
      payload: { cents: 5 },
      result: { receipt: 7 },
      progress: { value: 0.5, note: "half" },
      checkpoint: { page: 2 },
      errors: [],
    });
    expect(view?.deadlines.total).toBe((view?.createdAt ?? 0) + 3_600_000);
    expect(await engine.load(job.id)).toEqual(view);
  });

  it("cancels, extends, retries, prioritises and explains, each with a view as the answer", async () => {
    const { engine } = await openStage();
    const job = await engine.enqueue(charge, { cents: 5 }, { delay: "10m" });
    expect((await job.prioritise(7)).priority).toBe(7);
    const { deadlines, createdAt } = await job.extend({ total: "2h" });
    expect(deadlines.total).toBe(createdAt + 7_200_000);
    expect((await job.explain(charge)).instants.total).toBe(createdAt + 7_200_000);
    expect(await job.cancel()).toMatchObject({ state: "cancelled", payload: { cents: 5 } });
    expect(await errorOf(job.retry())).toMatchObject({ code: "invalid_state" });
    expect(await errorOf(job.activate())).toMatchObject({ code: "invalid_state" });
  });

  it("loads null for an unknown job, and refuses to change it", async () => {
    const { engine } = await openStage();
    const job = engine.job("00000000-0000-7000-8000-000000000000");
    expect(await job.load()).toBeNull();
    expect(await errorOf(job.cancel())).toMatchObject({ code: "not_found" });
    expect(await errorOf(job.explain())).toMatchObject({ code: "not_found" });
  });
});

describe("find", () => {
  it("gives pages of views", async () => {
    const { engine } = await openStage();
    await engine.enqueueMany(charge, [{ cents: 1 }, { cents: 2 }, { cents: 3 }]);
    const first = await engine.find({ type: "charge" }, { limit: 2 });
    const rest = await engine.find({ type: "charge" }, { limit: 2, after: first.cursor });
    expect([...first.jobs, ...rest.jobs].map(({ payload }) => payload)).toEqual([
      { cents: 1 },
      { cents: 2 },
      { cents: 3 },
    ]);
  });

  it("refuses unknown keys, and suggests the one that was probably meant", async () => {
    const { engine } = await openStage();
    const query = await errorOf(engine.find({ quue: "mail" } as never));
    expect(query).toMatchObject({ code: "unknown_option", field: "query.quue" });
    expect(query.message).toContain("did you mean queue?");
    const page = await errorOf(engine.find({}, { limits: 5 } as never));
    expect(page.message).toContain("did you mean limit?");
  });
});
