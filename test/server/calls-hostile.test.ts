import { describe, expect, it } from "vitest";
import { chain, defineJob, group, step, unchecked } from "../../src/index.ts";
import { createKey, type Role } from "../../src/server/index.ts";
import { openClientStage } from "./client-stage.ts";
import { openStage } from "./stage.ts";

const TOKEN = "tok_98765";
const charge = defineJob({
  type: "card.charge",
  payload: unchecked<{ readonly card: string }>(),
  result: unchecked<{ readonly token: string; readonly ok: boolean }>(),
  redact: ["payload.card", "result.token", "meta.session"],
});

describe("redacted values in calls", () => {
  it("are hidden in the result of a workflow, whichever steps make it up", async () => {
    const { client, engine, advance } = await openClientStage();
    engine.work({
      processors: [{ definition: charge, handler: async () => ({ token: TOKEN, ok: true }) }],
    });
    const hidden = { token: "[redacted]", ok: true };
    const one = step(charge, { card: "4111" });
    const started = await client.workflows.start(chain([one, group([one, one])]));
    await advance("10s");
    expect(await client.workflows.get(started.id).result({ within: "1s" })).toEqual([hidden, hidden]);
    const own = { token: TOKEN, ok: true };
    expect(await engine.workflows.get(started.id).result({ within: "1s" })).toEqual([own, own]);
  });

  it("are hidden in the meta of crons and of delayed jobs", async () => {
    const { client } = await openClientStage();
    const options = { meta: { session: "s-secret", shop: "1" } };
    const put = await client.crons.put("c", {
      job: charge,
      payload: { card: "4111" },
      cron: "0 9 * * *",
      options,
    });
    const id = await client.timeouts.enqueue(charge, { card: "4111" }, { dueAt: { hours: 1 }, ...options });
    const seen = [put, await client.crons.get("c"), await client.timeouts.get(id)];
    const text = JSON.stringify(seen);
    expect(text).not.toContain("s-secret");
    expect(text.match(/\\?"session\\?":\\?"\[redacted\]/g)).toHaveLength(3);
    expect(text).toContain("shop");
  });
});

/** A server with a key of this role, and calls with it. */
async function openAs(role: Role) {
  const { key, hash } = createKey();
  const stage = await openStage({}, { keys: [{ name: "someone", role, hash }] });
  const headers = { Authorization: `Bearer ${key}` };
  const send = async (name: string, ...args: unknown[]) => {
    const { status, body } = await stage.call("POST", `/calls/${name}`, { args }, headers);
    return { status, ...body };
  };
  return { stage, send };
}

/** The id of a job of the engine itself: the one that stands for the end of a workflow. */
async function bookkeepingJob(stage: Awaited<ReturnType<typeof openStage>>): Promise<string> {
  await stage.engine.workflows.start(chain([step(charge, { card: "4111" })]));
  const { jobs } = await stage.engine.find({ queue: "curfew.workflows" });
  return jobs[0]?.id as string;
}

describe("the engine's own jobs in calls", () => {
  it.each([
    ["jobs.cancel"],
    ["jobs.extend", { total: "1h" }],
    ["jobs.retry"],
    ["jobs.activate"],
    ["jobs.prioritise", 1],
    ["jobs.runNow"],
    ["jobs.reschedule", { delay: "1h" }],
    ["jobs.explain"],
    ["jobs.why"],
    ["jobs.progress"],
    ["jobs.checkpoint"],
    ["jobs.clearCheckpoint"],
    ["jobs.logs"],
    ["jobs.result", 100],
    ["deadLetters.retry"],
    ["deadLetters.delete"],
  ])("%s does not know them", async (name, ...more) => {
    const { stage, send } = await openAs("admin");
    await using _ = stage;
    const id = await bookkeepingJob(stage);
    const { status, error } = await send(name, id, ...more);
    expect([status, error?.details?.curfew_code]).toEqual([404, "not_found"]);
    expect((await stage.engine.job(id).load())?.state).not.toBe("cancelled");
  });

  it("are not loaded", async () => {
    const { stage, send } = await openAs("read-only");
    await using _ = stage;
    expect(await send("jobs.load", await bookkeepingJob(stage))).toEqual({ status: 200, result: null });
  });

  it.each([
    ["jobs.find", { queue: "curfew.webhooks" }],
    ["jobs.export", { queue: "curfew.webhooks" }],
    ["bulk.count", { queue: "curfew.webhooks" }],
    ["bulk.cancel", { queue: "curfew.workflows" }],
    ["bulk.delete", { queue: "curfew.webhooks", state: "completed" }],
    ["deadLetters.list", { queue: "curfew.webhooks" }],
    ["deadLetters.count", { queue: "curfew.webhooks" }],
    ["deadLetters.deleteAll", { queue: "curfew.webhooks" }],
    ["queues.pause", "curfew.webhooks"],
    ["queues.configure", "curfew.workflows", { concurrency: 1 }],
    ["queues.purge", "curfew.workflows"],
    ["limits.put", "curfew.webhooks sub_1", { concurrency: 1 }],
  ])("%s refuses their names", async (name, ...args) => {
    const { stage, send } = await openAs("admin");
    await using _ = stage;
    expect((await send(name, ...args)).status).toBe(400);
  });
});
