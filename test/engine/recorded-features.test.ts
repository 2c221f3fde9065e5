import { expect, it } from "vitest";
import { batch, chain, defineJob, group, processor, step, toCloudEvent, unchecked } from "../../src/index.ts";
import { expectTheSame, readAll } from "./journal-stage.ts";
import { openStage } from "./stage.ts";

/** Everything that is built on jobs is recorded like them: in the commit that makes it happen, and once. */

const ON = { events: "durable" } as const;
const echo = defineJob({ type: "echo", payload: unchecked<string>(), result: unchecked<string>() });
const fails = defineJob({ type: "fails", payload: unchecked<string>(), retry: { attempts: 1 } });

async function openWorking() {
  const stage = await openStage(ON);
  stage.work(
    [
      processor(echo, ({ payload }) => payload),
      processor(fails, () => {
        throw new Error("as told");
      }),
    ],
    { queues: { default: { concurrency: 10 } } },
  );
  return stage;
}

it("workflows record their start and end, and their steps when they become ready", async () => {
  const stage = await openWorking();
  const { workflows } = stage.engine;
  const good = await workflows.start(
    chain([step(echo, "a"), group([step(echo, "b"), step(echo, "c")]), step(echo, "d")]),
  );
  const bad = await workflows.start(chain([step(fails, "a"), step(echo, "never")]));
  const called = await workflows.start(
    batch([step(echo, "x"), step(fails, "y")], {
      onFailure: step(echo, "sorry"),
      onSuccess: step(echo, "no"),
    }),
  );
  await stage.advance("1m");
  const cancelled = await workflows.start(chain([step(echo, "a", { delay: "1h" }), step(echo, "b")]));
  await cancelled.cancel();
  await stage.advance("1m");
  await expectTheSame(stage);
  const told = (await readAll(stage)).map((event) => toCloudEvent(event));
  const ofWorkflow = (id: string) => told.filter(({ subject }) => subject === id).map(({ type }) => type);
  expect(ofWorkflow(good.id)).toEqual(["workflow.started", "workflow.completed"]);
  expect(ofWorkflow(bad.id)).toEqual(["workflow.started", "workflow.failed"]);
  expect(ofWorkflow(called.id)[0]).toBe("workflow.started");
  expect(ofWorkflow(cancelled.id)).toEqual(["workflow.started", "workflow.cancelled"]);
  const end = told.find(({ subject, type }) => subject === bad.id && type === "workflow.failed");
  expect(end?.data).toMatchObject({ workflow_id: bad.id, kind: "chain", failure: { reason: "step" } });
});

it("crons record runs, skipped runs and cancelled jobs", async () => {
  const stage = await openWorking();
  await stage.engine.crons.put("nightly", { cron: "@hourly", job: echo, payload: "x" });
  await stage.advance("2h");
  await stage.engine.crons.trigger("nightly");
  await stage.advance("1m");
  await expectTheSame(stage);
  const told = (await stage.engine.journal.read({ types: ["cron.*"] })).events.map((event) =>
    toCloudEvent(event),
  );
  expect(told.map(({ type, subject, data }) => [type, subject, data.manual])).toEqual([
    ["cron.triggered", "nightly", undefined],
    ["cron.triggered", "nightly", undefined],
    ["cron.triggered", "nightly", true],
  ]);
});

it("replaced jobs and bulk actions are recorded", async () => {
  const stage = await openWorking();
  const { engine } = stage;
  const unique = defineJob({ type: "unique", unique: { onConflict: "replace" } });
  for (let n = 0; n < 3; n++) await engine.enqueue(unique, null, { queue: "nobody" });
  const windowed = defineJob({ type: "windowed", unique: { onConflict: "replace", period: "1h" } });
  for (let n = 0; n < 3; n++) await engine.enqueue(windowed, null, { queue: "nobody" });
  await engine.enqueueMany(
    defineJob({ type: "many" }),
    Array.from({ length: 30 }, () => null),
    { queue: "nobody" },
  );
  await engine.bulk.cancel({ type: "many" });
  await engine.enqueue(fails, "x");
  await stage.advance("1m");
  await engine.bulk.retry({ type: "fails" });
  await stage.advance("1m");
  await expectTheSame(stage);
  const names = (await readAll(stage)).map(({ name, type }) => `${type} ${name}`);
  expect(names.filter((name) => name === "many job.cancelled").length).toBe(30);
  expect(names.filter((name) => name === "unique job.cancelled").length).toBe(2);
  expect(names.filter((name) => name === "windowed job.cancelled").length).toBe(2);
});
