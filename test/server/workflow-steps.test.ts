import { expect, it } from "vitest";
import { batch, chain, defineJob, group, processor, step, unchecked } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";
import { openStage, type Stage } from "./stage.ts";

/** Steps of workflows that remote workers fetch and report on; the shapes are those of the level-3 suites. */
const job = defineJob({ type: "wf.step", payload: unchecked<string>() });
// A remote worker has no definition, so the step itself says it.
const once = (payload: string, queue = "default") => step(job, payload, { queue, retry: { attempts: 1 } });

async function finish(stage: Stage, result: unknown, queue = "default") {
  const fetched = await stage.fetch({ queues: [queue] });
  if (!fetched) throw new Error(`there is nothing in ${queue}`);
  const { status, body } = await stage.post("/workers/ack", { job_id: fetched.id, worker_id: "w-1", result });
  expect([status, body.state]).toEqual([200, "completed"]);
  return fetched;
}

async function fail(stage: Stage) {
  const fetched = await stage.fetch();
  const error = { code: "handler_error", message: "as told" };
  const { body } = await stage.post("/workers/nack", { job_id: fetched.id, worker_id: "w-1", error });
  expect(body.state).toBe("discarded");
}

it("a chain: one can be fetched at a time, with parent_results as a list", async () => {
  await using stage = await openStage();
  const workflow = await stage.engine.workflows.start(chain([once("a"), once("b"), once("c")]));
  const first = await finish(stage, { output: "one" });
  expect([first.args, first.workflow_id, first.parent_results]).toEqual([["a"], workflow.id, undefined]);
  await stage.advance("500ms");
  const second = await finish(stage, { output: "two" });
  expect([second.args, second.parent_results]).toEqual([["b"], [{ output: "one" }]]);
  await stage.advance("500ms");
  expect((await workflow.view())?.progress).toMatchObject({ total: 3, completed: 2 });
  const third = await finish(stage, { output: "three" });
  expect(third.parent_results).toEqual([{ output: "two" }]);
  await stage.advance("500ms");
  expect(await workflow.view()).toMatchObject({ state: "completed", progress: { total: 3, completed: 3 } });
});

it("a chain that a report of failure halts", async () => {
  await using stage = await openStage();
  const workflow = await stage.engine.workflows.start(chain([once("a"), once("b"), once("c")]));
  await finish(stage, null);
  await stage.advance("500ms");
  await fail(stage);
  await stage.advance("1s");
  expect(await stage.fetch()).toBeUndefined();
  expect(await workflow.view()).toMatchObject({ state: "failed", progress: { total: 3, completed: 1 } });
});

it("a group: all can be fetched at once, and one that fails fails it at the end", async () => {
  await using stage = await openStage();
  const workflow = await stage.engine.workflows.start(group([once("a"), once("b"), once("c")]));
  await finish(stage, null);
  await fail(stage);
  expect(await workflow.view()).toMatchObject({ state: "running" });
  await finish(stage, null);
  await stage.advance("500ms");
  expect(await workflow.view()).toMatchObject({ state: "failed", total: 3 });
});

it("a batch: on_complete and on_failure can be fetched, on_success cannot", async () => {
  await using stage = await openStage();
  await stage.engine.workflows.start(
    batch([once("a"), once("b")], {
      onSuccess: once("success", "success"),
      onFailure: once("failure", "failure"),
      onComplete: once("complete", "complete"),
    }),
  );
  await finish(stage, { status: "done" });
  await fail(stage);
  await stage.advance("1s");
  const complete = await finish(stage, null, "complete");
  expect([complete.args, complete.parent_results]).toEqual([["complete"], [{ status: "done" }, null]]);
  expect((await stage.fetch({ queues: ["failure"] })).args).toEqual(["failure"]);
  expect(await stage.fetch({ queues: ["success"] })).toBeUndefined();
});

it("our own remote worker gives its handler the results of the steps before it", async () => {
  const { engine, work, advance } = await openClientStage();
  const seen: unknown[] = [];
  work([
    processor(job, ({ payload, parentResults }) => {
      seen.push([payload, parentResults]);
      return { of: payload } as never;
    }),
  ]);
  const workflow = await engine.workflows.start(chain([group([once("a"), once("b")]), once("c")]));
  await advance("5s");
  expect(seen.at(-1)).toEqual(["c", [{ of: "a" }, { of: "b" }]]);
  expect(await workflow.view()).toMatchObject({ state: "completed" });
});
