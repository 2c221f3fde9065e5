import { describe, expect, it } from "vitest";
import { chain, defineJob, step, unchecked } from "../../src/index.ts";
import { CALLS, type CallName } from "../../src/ojs/call-names.ts";
import { openClientStage } from "./client-stage.ts";
import { openStage } from "./stage.ts";

const pay = defineJob({
  type: "card.charge",
  payload: unchecked<{ readonly card: string; readonly order: string }>(),
  redact: ["payload.card"],
});
const PAYLOAD = { card: "4111", order: "1" };

describe("a call over HTTP", () => {
  it("shows no redacted field", async () => {
    const { client } = await openClientStage();
    const job = await client.enqueue(pay, PAYLOAD, { delay: "1h", redact: ["payload.order"] });
    const cron = await client.crons.put("c", { job: pay, payload: PAYLOAD, cron: "0 9 * * *" });
    const due = await client.timeouts.enqueue(pay, PAYLOAD, { dueAt: { hours: 1 } });
    const flow = await client.workflows.start(chain([step(pay, PAYLOAD, { delay: "1h" })]));
    const seen = [
      await job.load(),
      (await client.find()).jobs,
      await job.prioritise(3),
      await job.checkpoint(),
      cron,
      await client.crons.list(),
      await client.timeouts.get(due),
      (await client.timeouts.calendar()).timeouts,
      await flow.steps(),
    ];
    const text = JSON.stringify(seen);
    expect(text.match(/\[redacted\]/g)?.length).toBeGreaterThan(8);
    expect(text).not.toContain("4111");
    expect((await job.load())?.payload).toEqual({ card: "[redacted]", order: "[redacted]" });
  });

  it.each(["tx", "signal", "onProgress", "by", "parent"])("refuses %s in options", async (name) => {
    await using stage = await openStage();
    const { status, body } = await stage.post("/calls/jobs.find", { args: [{ [name]: 1 }] });
    expect([status, body.error.details.field]).toEqual([400, `args.0.${name}`]);
  });

  it.each([
    ["an unknown call", "/calls/jobs.drop", { args: [] }, 404],
    ["a member of every object", "/calls/constructor", { args: [] }, 404],
    ["arguments that are no list", "/calls/queues.pause", { args: {} }, 400],
    ["too many arguments", "/calls/queues.pause", { args: ["a", "b"] }, 400],
    ["an id that is no UUID", "/calls/jobs.load", { args: ["1"] }, 400],
    [
      "a timeout for a saga",
      "/calls/timeouts.insert",
      { args: [[{ destination: "saga:order", dueAt: { hours: 1 } }]] },
      400,
    ],
    [
      "a timeout for a job",
      "/calls/timeouts.insert",
      { args: [[{ destination: "job", dueAt: { hours: 1 } }]] },
      400,
    ],
    ["a list without a bound", "/calls/timeouts.list", { args: [{}, { limit: 100_000 }] }, 400],
    [
      "a workflow without definitions",
      "/calls/workflows.start",
      { args: [{ kind: "step", job: 7 }, {}, [{ type: "a" }]] },
      400,
    ],
    [
      "an option of an enqueue that has a field",
      "/jobs",
      { type: "a.b", args: [], curfew: { id: "x" } },
      400,
    ],
  ])("refuses %s", async (_what, path, body, status) => {
    await using stage = await openStage();
    expect((await stage.post(path, body)).status).toBe(status);
  });

  it("is not repeated after a lost reply where that could do it twice", async () => {
    const { client, wire, engine } = await openClientStage();
    await client.crons.put("c", { job: defineJob({ type: "a.b" }), cron: "0 9 * * *" });
    wire.fate = ({ path }) => (path.endsWith("crons.trigger") ? "unanswered" : "served");
    await expect(client.crons.trigger("c")).rejects.toMatchObject({
      code: "server_failed",
      message: expect.stringContaining("may or may not have been done"),
    });
    expect(wire.sent("crons.trigger").length).toBe(1);
    expect((await engine.find({ type: "a.b" })).jobs.length).toBe(1);
  });

  it("is repeated where it is safe, and the client cannot tell", async () => {
    const { client, wire, engine, advance } = await openClientStage();
    let lost = 0;
    wire.fate = ({ path }) => (/start|insert$/.test(path) && lost++ % 2 === 0 ? "unanswered" : "served");
    const job = defineJob({ type: "a.b" });
    const starting = client.workflows.start(chain([step(job, null, { delay: "1h" })]));
    await advance("1s");
    expect((await starting).duplicate).toBe(false);
    const inserting = client.timeouts.insert({ destination: "d", dueAt: { hours: 1 } });
    await advance("1s");
    expect((await engine.timeouts.get(await inserting))?.destination).toBe("d");
    expect((await engine.workflows.list()).length).toBe(1);
    expect(lost).toBe(4);
  });

  it("has a right and a name for each method", () => {
    const names = Object.keys(CALLS) as CallName[];
    expect(names.length).toBeGreaterThan(90);
    expect(names.filter((name) => !/^[a-z]\w*(\.[a-z]\w*)?$/i.test(name))).toEqual([]);
  });
});
