import { describe, expect, it, vi } from "vitest";
import { chain, defineJob, group, step, unchecked } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
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

describe("timeouts of jobs and sagas in calls", () => {
  it.each([
    ["timeouts.remove", null],
    ["timeouts.release", null, { after: "365d" }],
    ["timeouts.extend", "me"],
  ])("%s of a worker leaves them alone", async (name, ...more) => {
    const { stage, send } = await openAs("worker");
    await using _ = stage;
    const id = await stage.engine.timeouts.enqueue(charge, { card: "4111" }, { dueAt: { hours: 1 } });
    const before = await stage.engine.timeouts.get(id);
    const { status, error } = await send(name, id, ...more);
    expect([status, error?.details?.field]).toEqual([400, "id"]);
    expect(await stage.engine.timeouts.get(id)).toEqual(before);
  });

  it("a producer cancels its own, and none of a saga", async () => {
    const { stage, send } = await openAs("producer");
    await using _ = stage;
    const message = await stage.engine.sagaRecords.send({
      saga: "order",
      to: "1",
      name: "pay",
      id: "m",
      payload: {},
    });
    const [row] = await stage.engine.timeouts.list();
    const ways = [
      { id: row?.id },
      { saga: ["mail", '["order","1"]'] },
      { saga: ["saga", '["order","1"]'] },
      { destination: "saga:order", key: "k" },
    ];
    for (const which of ways) expect((await send("timeouts.cancel", which)).status).toBe(400);
    expect(await stage.engine.timeouts.get(row?.id as string)).toMatchObject({ id: row?.id });
    expect(message.id).toBeTruthy();
    const own = await stage.engine.timeouts.enqueue(charge, { card: "4111" }, { dueAt: { hours: 1 } });
    expect(await send("timeouts.cancel", { id: own })).toMatchObject({
      status: 200,
      result: { pending: 1, leased: 0 },
    });
    expect(await stage.engine.timeouts.get(own)).toBeNull();
    const { entries } = await stage.engine.audit.read();
    expect(entries.map(({ action, details }) => [action, details])).toEqual([
      ["timeout.cancel", { id: own }],
    ]);
  });
});

describe("a workflow that is written badly", () => {
  const definitions = [{ type: "a.b" }];
  it.each([
    ["a definition by the name of a method", { kind: "step", job: "map" }],
    ["a definition by the name of a prototype", { kind: "step", job: "__proto__" }],
    ["options that are null", { kind: "step", job: 0, options: null }],
    ["options that are a text", { kind: "step", job: 0, options: "x" }],
    ["callbacks that are null", { kind: "batch", nodes: [{ kind: "step", job: 0 }], callbacks: null }],
    ["a graph with a step that is null", { kind: "graph", steps: { a: null } }],
    ["a graph with a step that is a text", { kind: "graph", steps: { a: "x" } }],
    [
      "a graph that waits for a number",
      { kind: "graph", steps: { a: { after: 1, run: { kind: "step", job: 0 } } } },
    ],
  ])("%s is refused, not a failure of the server", async (_what, node) => {
    const { stage, send } = await openAs("producer");
    await using _ = stage;
    expect((await send("workflows.start", node, {}, definitions)).status).toBe(400);
  });
});

describe("replies of calls", () => {
  async function withLargeTimeouts() {
    const { stage, send } = await openAs("admin");
    const payload = "x".repeat(900_000);
    for (let nth = 0; nth < 20; nth++)
      await stage.engine.timeouts.insert({ destination: "mail", dueAt: { seconds: 1 }, payload });
    return { stage, send };
  }

  it("are refused beyond 16 MB, and say how to ask for less", async () => {
    const { send } = await withLargeTimeouts();
    expect(await send("timeouts.list")).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining("ask for fewer items with a smaller limit") },
    });
    const { status, result } = await send("timeouts.list", {}, { limit: 3 });
    expect([status, result.length]).toEqual([200, 3]);
  });

  it("are read in steps, so that no more is loaded than one of them may hold", async () => {
    const { stage, send } = await withLargeTimeouts();
    const { timeouts } = stage.engine.store;
    let loaded = 0;
    for (const name of ["list", "calendar", "claimDue"] as const) {
      const read = timeouts[name].bind(timeouts) as (...args: unknown[]) => Promise<{ payload: unknown }[]>;
      Object.assign(timeouts, {
        [name]: async (...args: unknown[]) => {
          const rows = await read(...args);
          loaded += JSON.stringify(rows).length;
          return rows;
        },
      });
    }
    await stage.advance("2s");
    const calls = [
      ["timeouts.list", {}, { limit: 1_000 }],
      ["timeouts.calendar", { limit: 1_000 }],
      ["timeouts.claimDue", { limit: 1_000, destinations: ["mail"] }],
    ] as const;
    for (const [name, ...args] of calls) {
      loaded = 0;
      await send(name, ...args);
      expect([name, loaded > 4_000_000, loaded < 25_000_000]).toEqual([name, true, true]);
    }
    for (let nth = 0; nth < 30; nth++)
      await stage.engine.timeouts.insert({
        destination: "mail",
        dueAt: { hours: 1 },
        payload: "x".repeat(900_000),
      });
    loaded = 0;
    expect((await send("timeouts.list", {}, { limit: 1_000 })).status).toBe(400);
    expect(loaded).toBeLessThan(25_000_000);
    const pages: number[] = [];
    for (let after: string | null = null; ; ) {
      const { result } = await send("timeouts.calendar", { limit: 1_000, after });
      pages.push(result.timeouts.length);
      after = result.cursor;
      if (after === null) break;
    }
    expect([pages.length > 3, pages.reduce((sum, count) => sum + count)]).toEqual([true, 50]);
  });

  it("of claims of 100 small timeouts need two claims of the store, once their size is known", async () => {
    const { stage, send } = await openAs("admin");
    await using _ = stage;
    await stage.engine.timeouts.insertMany(
      Array.from({ length: 220 }, () => ({ destination: "mail", dueAt: { seconds: 1 }, payload: "small" })),
    );
    await stage.advance("2s");
    const claimDue = vi.spyOn(stage.engine.store.timeouts, "claimDue");
    const claim = () => send("timeouts.claimDue", { limit: 100, destinations: ["mail"] });
    expect((await claim()).result).toHaveLength(100);
    const own = () =>
      claimDue.mock.calls.filter(([{ destinations }]) => destinations?.[0]?.name === "mail").length;
    const before = own();
    expect((await claim()).result).toHaveLength(100);
    expect(own() - before).toBe(2);
    expect((await claim()).result).toHaveLength(20);
  });

  it("of claims hand out what fits, and give the rest back at once", async () => {
    const { stage, send } = await withLargeTimeouts();
    await stage.advance("2s");
    const first = await send("timeouts.claimDue", { limit: 100, destinations: ["mail"] });
    expect([first.status, first.result.length]).toEqual([200, 8]);
    const second = await send("timeouts.claimDue", { limit: 100, destinations: ["mail"] });
    expect([second.status, second.result.length]).toEqual([200, 8]);
    const ids = [...first.result, ...second.result].map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(16);
  });

  it("never lease timeouts of jobs and sagas", async () => {
    const { stage, send } = await openAs("worker");
    await using _ = stage;
    await stage.engine.timeouts.insert({ destination: "mail", dueAt: { seconds: 1 } });
    for (const destinations of [undefined, [], ["job"], ["mail", "saga:order"]]) {
      const { status, error } = await send("timeouts.claimDue", { limit: 5, destinations });
      expect([status, error?.details?.field], String(destinations)).toEqual([400, "options.destinations"]);
    }
  });

  it("name destinations and limits that are none", async () => {
    const { send } = await openAs("admin");
    const odd = { toString: "?" };
    for (const bad of [
      { destinations: true },
      { destinations: { a: 1 } },
      { destinations: ["d", odd] },
      { destinations: [["job"]] },
      { limit: 0 },
      { limit: 1e9 },
    ])
      expect(await send("timeouts.claimDue", bad)).toMatchObject({ status: 400 });
    const dueAt = { seconds: 1 };
    for (const destination of [odd, ["job"], null])
      expect(await send("timeouts.insert", [{ destination, dueAt }])).toMatchObject({ status: 400 });
  });
});

it("a call that fails shows its id only, and the log has the failure", async () => {
  const error = vi.fn();
  await using stage = await openStage({}, { logger: { ...silentLogger, error } });
  vi.spyOn(stage.engine.timeouts, "count").mockRejectedValueOnce(new TypeError("inside"));
  const { status, body } = await stage.post("/calls/timeouts.count", { args: [] });
  expect([status, JSON.stringify(body).includes("inside")]).toEqual([500, false]);
  const fields = { requestId: body.error.request_id, error: expect.objectContaining({ message: "inside" }) };
  expect(error).toHaveBeenCalledWith(fields, "request failed");
});

it("a type of a schema may be called like a method of objects", async () => {
  const { stage } = await openAs("admin");
  await expect(stage.engine.schemas.get("hasOwnProperty")).resolves.toBeNull();
});
