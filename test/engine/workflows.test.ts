import { describe, expect, it } from "vitest";
import {
  batch,
  chain,
  defineJob,
  group,
  type Processor,
  processor,
  step,
  unchecked,
} from "../../src/index.ts";
import { openStage, type Stage } from "./stage.ts";

const echo = defineJob({ type: "wf.echo", payload: unchecked<string>(), result: unchecked<string>() });
const fails = defineJob({ type: "wf.fails", payload: unchecked<string>(), retry: { attempts: 1 } });

interface Seen {
  readonly payload: string;
  readonly parents: unknown;
}

async function open(): Promise<{ stage: Stage; seen: Seen[] }> {
  const stage = await openStage();
  const seen: Seen[] = [];
  const processors: Processor[] = [
    processor(echo, ({ payload, parentResults }) => {
      seen.push({ payload, parents: parentResults });
      return `${payload}!`;
    }),
    processor(fails, ({ payload, parentResults }) => {
      seen.push({ payload, parents: parentResults });
      throw new Error("as told");
    }),
  ];
  stage.work(processors, { queues: { default: { concurrency: 10 } } });
  return { stage, seen };
}

describe("a chain", () => {
  it("runs one after the other and hands results on", async () => {
    const { stage, seen } = await open();
    const workflow = await stage.engine.workflows.start(
      chain([step(echo, "a"), step(echo, "b"), step(echo, "c")]),
    );
    await stage.advance("2s");
    expect(seen).toEqual([
      { payload: "a", parents: [] },
      { payload: "b", parents: ["a!"] },
      { payload: "c", parents: ["b!"] },
    ]);
    expect(await workflow.view()).toMatchObject({
      state: "completed",
      progress: { total: 3, completed: 3, discarded: 0, cancelled: 0 },
    });
    expect(await workflow.result()).toBe("c!");
    expect(stage.told("workflow.completed")).toMatchObject({ workflow: workflow.id, total: 3 });
  });

  it("is halted by a step that ends without success", async () => {
    const { stage, seen } = await open();
    const workflow = await stage.engine.workflows.start(
      chain([step(echo, "a"), step(fails, "b"), step(echo, "c")]),
    );
    await stage.advance("2s");
    expect(seen.map(({ payload }) => payload)).toEqual(["a", "b"]);
    expect(await workflow.view()).toMatchObject({
      state: "failed",
      failure: { reason: "step", type: "wf.fails", message: "as told" },
      progress: { completed: 1, discarded: 1, cancelled: 1 },
    });
  });
});

it("nests", async () => {
  const { stage, seen } = await open();
  const workflow = await stage.engine.workflows.start(
    chain([
      step(echo, "a"),
      group([chain([step(echo, "b1"), step(echo, "b2")]), step(echo, "c"), group([step(echo, "d")])]),
      batch([step(echo, "e")], {
        onSuccess: step(echo, "yes"),
        onFailure: step(echo, "no"),
        onComplete: step(echo, "end"),
      }),
    ]),
  );
  await stage.advance("3s");
  const byPayload = Object.fromEntries(seen.map(({ payload, parents }) => [payload, parents]));
  expect(byPayload).toEqual({
    a: [],
    b1: ["a!"],
    b2: ["b1!"],
    c: ["a!"],
    d: ["a!"],
    e: ["b2!", "c!", ["d!"]],
    yes: ["e!"],
    end: ["e!"],
  });
  expect(await workflow.result()).toEqual(["e!"]);
});
