import { describe, expect, it } from "vitest";
import { chain, defineJob, type Engine, processor, type StepNode, step, unchecked } from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { errorOf, jobOf, openStage, START } from "./stage.ts";

/** SEMANTICS 4.7 for what a handler starts beside jobs: workflows, and jobs of crons. */

const child = defineJob({ type: "child", payload: unchecked<string>(), queue: "nobody" });
const parent = defineJob({ type: "parent", timeouts: { total: "10m" } });

type Context = Parameters<Parameters<typeof processor>[1]>[0];

/** Runs something in a handler whose job must end ten minutes after it began. */
async function inHandler<Value>(run: (context: Context, engine: Engine) => Promise<Value>) {
  const stage = await openStage();
  let answer: Promise<Value> | undefined;
  stage.work([
    processor(parent, async (context) => {
      answer = run(context as Context, stage.engine);
      await answer.catch(() => {});
    }),
  ]);
  await stage.engine.enqueue(parent);
  await stage.advance("1s");
  if (!answer) throw new Error("the handler was not entered");
  return { stage, answer };
}

const childrenOf = async (engine: Engine) =>
  (await jobsOf(engine.store, { type: "child" })).map(({ payload, totalAt, options }) => ({
    payload: JSON.parse(payload),
    // Of a step that waits for its turn: the end of its workflow.
    endsAt: (totalAt ?? options?.step?.waitsFor?.endsAt ?? START) - START,
  }));

const start = (nodes: readonly [StepNode, ...StepNode[]], options: object = {}) =>
  inHandler((context, engine) => engine.workflows.start(chain([...nodes]), { parent: context, ...options }));

const MINUTE = 60_000;

describe("a workflow that a handler starts", () => {
  it("has its parent's deadline in all of its steps", async () => {
    const { stage, answer } = await start([step(child, "a"), step(child, "b")]);
    const workflow = await answer;
    expect(await childrenOf(stage.engine)).toEqual([
      { payload: "a", endsAt: 10 * MINUTE },
      { payload: "b", endsAt: 10 * MINUTE },
    ]);
    await stage.advance("11m");
    expect(await workflow.view()).toMatchObject({ state: "failed" });
  });

  it("keeps its own timeout where that is earlier", async () => {
    const { stage } = await start([step(child, "a"), step(child, "b")], { timeout: "3m" });
    const children = await childrenOf(stage.engine);
    expect(children).toHaveLength(2);
    for (const { endsAt } of children) expect(endsAt).toBeLessThan(4 * MINUTE);
  });

  it("inherits no deadline that one of its steps would start after, and is not refused", async () => {
    const { stage } = await start([step(child, "a", { delay: "20m" })]);
    expect(await childrenOf(stage.engine)).toEqual([{ payload: "a", endsAt: 0 }]);
  });

  it("inherits nothing without a parent option", async () => {
    const { stage } = await inHandler((_, engine) => engine.workflows.start(chain([step(child, "a")])));
    expect(await childrenOf(stage.engine)).toEqual([{ payload: "a", endsAt: 0 }]);
  });

  it("is refused after the handler's attempt has ended", async () => {
    const stage = await openStage();
    const late: Promise<Error>[] = [];
    const job = jobOf({ timeouts: { attempt: "1s", grace: "1s" }, retry: { attempts: 1 } });
    const slow = processor(job, async (context) => {
      await stage.sleep(5_000);
      late.push(errorOf(stage.engine.workflows.start(chain([step(child, "a")]), { parent: context })));
    });
    stage.work([slow]);
    await stage.engine.enqueue(job);
    await stage.advance("10s");
    expect(await late[0]).toMatchObject({ name: "TimeoutError" });
    expect(await childrenOf(stage.engine)).toEqual([]);
  });

  it("refuses a parent that is no context, with field, value and fix", async () => {
    const { engine } = await openStage();
    for (const wrong of [{ id: "a" }, "a", 1, null]) {
      const starting = async () =>
        engine.workflows.start(chain([step(child, "a")]), { parent: wrong as never });
      expect((await errorOf(starting())).message).toMatch(/options\.parent: .*pass the context/);
      const triggering = async () => engine.crons.trigger("none", { parent: wrong as never });
      expect((await errorOf(triggering())).message).toMatch(/options\.parent: .*pass the context/);
    }
  });
});

describe("a cron that a handler triggers", () => {
  it("enqueues a job with its parent's deadline; one that the clock triggers has none", async () => {
    const { stage } = await inHandler(async (context, engine) => {
      await engine.crons.put("c", { cron: "@hourly", job: child, payload: "by the clock" });
      await engine.crons.trigger("c", { parent: context });
    });
    await stage.advance("1h");
    expect((await childrenOf(stage.engine)).map(({ endsAt }) => endsAt)).toEqual([10 * MINUTE, 0]);
  });
});

describe("bookkeeping jobs of workflows", () => {
  it("are in no depth, no list of queues and no stats, unless their queue is named", async () => {
    const { engine } = await openStage();
    await engine.workflows.start(chain([step(child, "a"), step(child, "b")]));
    expect(await engine.queues.depth()).toMatchObject({ available: 1, pending: 1 });
    expect((await engine.queues.list()).map(({ name }) => name)).toEqual(["nobody"]);
    expect((await engine.stats({ by: "queue" })).groups.map(({ queue }) => queue)).toEqual(["nobody"]);
    expect((await engine.queues.depth("curfew.workflows")).pending).toBeGreaterThan(0);
  });
});
