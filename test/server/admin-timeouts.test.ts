import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob } from "../../src/core/job/job-definition.ts";
import type { Duration } from "../../src/core/time.ts";
import type { TimeoutRow } from "../../src/core/timeout/timeout.ts";
import { diary } from "../engine/saga-stage.ts";
import { fits } from "./fits.ts";
import { openStage, type Stage } from "./stage.ts";

/** Stored timeouts and sagas, as operators see and change them over HTTP. */

const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id);

async function insert(stage: Stage, id: string, after: Duration, destination = "mail"): Promise<void> {
  await stage.engine.timeouts.insert({ id, destination, dueAt: { after }, payload: { to: id } });
}

/** A timeout that was given up. */
async function deadTimeout(stage: Stage, id: string): Promise<void> {
  await insert(stage, id, "1s", "broken");
  await stage.engine.store.timeouts.release([{ id, isDead: true, error: "no" }], {
    now: stage.engine.now(),
  });
}

async function auditOf(stage: Stage) {
  const { body } = await stage.get("/admin/audit");
  return body.items.map(({ action, details }: { action: string; details: object }) => ({ action, details }));
}

/** Counts the rows of the largest answer of these reads of timeouts, and the characters of all payloads. */
function watchReads({ engine }: Stage) {
  const { timeouts } = engine.store;
  const seen = { most: 0, size: 0 };
  for (const name of ["list", "calendar"] as const) {
    const read = timeouts[name].bind(timeouts) as (...args: unknown[]) => Promise<TimeoutRow[]>;
    Object.assign(timeouts, {
      [name]: async (...args: unknown[]) => {
        const rows = await read(...args);
        seen.most = Math.max(seen.most, rows.length);
        for (const { payload } of rows) seen.size += payload?.length ?? 0;
        return rows;
      },
    });
  }
  return seen;
}

describe("large timeouts and sagas", () => {
  it("are listed in steps: never are all of their payloads in memory", async () => {
    await using stage = await openStage();
    const due = { destination: "mail", dueAt: { after: "1s" } } as const;
    await stage.engine.timeouts.insertMany(Array.from({ length: 150 }, () => due));
    const ids = await stage.engine.timeouts.insertMany(Array.from({ length: 150 }, () => due));
    const dead = ids.map((id) => ({ id, isDead: true, error: "no" }) as const);
    await stage.engine.store.timeouts.release(dead, { now: stage.engine.now() });
    const seen = watchReads(stage);
    expect((await stage.get("/admin/timeouts?limit=150")).body.items).toHaveLength(150);
    expect((await stage.get("/admin/timeouts?limit=150&dead=true")).body.items).toHaveLength(150);
    expect((await stage.get("/admin/timeouts?dead=true&destination=mail")).body.items).not.toHaveLength(0);
    expect(seen.most).toBeLessThanOrEqual(33);
  });

  it("a saga shows the first of its timeouts if all are too large together", async () => {
    await using stage = await openStage();
    const { store } = stage.engine;
    const now = stage.engine.now();
    const saga = ["saga", '["order","1"]'] as const;
    const body = {
      state: {},
      schema: 1,
      startedAt: now,
      changedAt: now,
      completedAt: null,
      pending: [],
      handled: [],
    };
    await store.commit([{ effects: [{ put: saga, body, wakeAt: null }] }], { now });
    const payload = JSON.stringify("x".repeat(900_000));
    for (let nth = 0; nth < 20; nth++)
      await store.timeouts.insert(
        [{ id: `t${nth + 10}`, destination: "saga:order", dueAt: now + 60_000, payload, saga }],
        { now },
      );
    const seen = watchReads(stage);
    const { status, body: found } = await stage.get("/admin/sagas/order/1");
    expect(status).toBe(200);
    expect(found.timeouts.length).toBeGreaterThan(5);
    expect(found.timeouts.length).toBeLessThan(16);
    expect(seen.size).toBeLessThan(16_000_000);
  });
});

describe("timeouts for operators", () => {
  it("are listed as they are due, by destination, range and cursor", async () => {
    await using stage = await openStage();
    await insert(stage, "c", "3s");
    await insert(stage, "a", "9s");
    await insert(stage, "b", "3s");
    await insert(stage, "x", "1s", "other");
    const first = await stage.get("/admin/timeouts?limit=2");
    fits("GET", "/admin/timeouts", first);
    expect(idsOf(first.body.items)).toEqual(["x", "b"]);
    expect(first.body.items[1]).toMatchObject({
      destination: "mail",
      state: "pending",
      tries: 0,
      saga: null,
    });
    expect(first.body.items[1].payload).toBeUndefined();
    expect(first.body.pagination).toMatchObject({ per_page: 2, has_more: true });
    const cursor = encodeURIComponent(first.body.pagination.next_cursor);
    const rest = await stage.get(`/admin/timeouts?limit=2&cursor=${cursor}`);
    expect([idsOf(rest.body.items), rest.body.pagination.next_cursor]).toEqual([["c", "a"], null]);
    expect(idsOf((await stage.get("/admin/timeouts?destination=other")).body.items)).toEqual(["x"]);
    const ranged = await stage.get("/admin/timeouts?from=%2BPT2S&to=%2BPT9S");
    expect(idsOf(ranged.body.items)).toEqual(["b", "c"]);
  });

  it.each([
    ["cursor=nonsense", "after"],
    ["from=yesterday", "from"],
    ["dead=perhaps", "dead"],
    ["limit=0", "limit"],
  ])("refuse %s and name the field", async (query, field) => {
    await using stage = await openStage();
    const { status, body } = await stage.get(`/admin/timeouts?${query}`);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(field)]);
  });

  it("are shown with payload and headers", async () => {
    await using stage = await openStage();
    await stage.engine.timeouts.insert({
      id: "a/b",
      destination: "mail",
      dueAt: "1h",
      payload: { to: "ada" },
      headers: { trace: "1", raw: new Uint8Array([1, 2]) },
    });
    const shown = await stage.get("/admin/timeouts/a%2Fb");
    fits("GET", "/admin/timeouts/:id", shown);
    expect(shown.body).toMatchObject({
      id: "a/b",
      payload: { to: "ada" },
      headers: { trace: "1", raw: { base64: "AQI=" } },
    });
    expect((await stage.get("/admin/timeouts/none")).status).toBe(404);
  });

  it("are revoked, and the audit says which", async () => {
    await using stage = await openStage();
    await insert(stage, "a", "1h");
    const gone = await stage.post("/admin/timeouts/a/revoke", { reason: "not wanted" });
    fits("POST", "/admin/timeouts/:id/revoke", gone);
    expect(gone.body).toEqual({ id: "a", revoked: true, was: "pending" });
    expect((await stage.get("/admin/timeouts")).body.items).toEqual([]);
    expect((await stage.post("/admin/timeouts/a/revoke")).status).toBe(404);
    const [entry] = (await stage.get("/admin/audit")).body.items;
    expect(entry).toMatchObject({
      action: "timeout.revoke",
      actor: "local",
      reason: "not wanted",
      details: { timeout: "a", destination: "mail" },
    });
  });

  it("are revoked while somebody holds them, and the reply says so", async () => {
    await using stage = await openStage();
    await insert(stage, "a", "0s", "held");
    const [held] = await stage.engine.timeouts.claimDue({ destinations: ["held"] });
    expect((await stage.get("/admin/timeouts")).body.items).toMatchObject([{ id: "a", state: "leased" }]);
    const moved = await stage.post("/admin/timeouts/a/reschedule", { due_at: "+PT1H" });
    expect([moved.status, moved.body.error.message]).toEqual([409, expect.stringContaining("leased")]);
    expect((await stage.post("/admin/timeouts/a/revoke")).body.was).toBe("leased");
    await expect(stage.engine.timeouts.remove("a", held?.owner)).rejects.toMatchObject({ reason: "gone" });
  });

  it("are given another instant, and fire then", async () => {
    await using stage = await openStage();
    const seen: number[] = [];
    await using _served = stage.engine.timeouts.serve("mail", () => void seen.push(stage.engine.now()));
    await stage.engine.timeouts.insert({ id: "a", destination: "mail", dueAt: "1h", key: "k", payload: 7 });
    const start = stage.engine.now();
    const moved = await stage.post("/admin/timeouts/a/reschedule", { due_at: "+PT30S" });
    fits("POST", "/admin/timeouts/:id/reschedule", moved);
    expect(moved.body).toMatchObject({ id: "a", key: "k", payload: 7, state: "pending" });
    expect(Date.parse(moved.body.due_at)).toBe(start + 30_000);
    await stage.advance("29s");
    expect(seen).toEqual([]);
    await stage.advance("2s");
    expect(seen).toEqual([start + 30_000]);
    expect((await stage.post("/admin/timeouts/a/reschedule", { due_at: "+PT30S" })).status).toBe(404);
    expect((await stage.post("/admin/timeouts/a/reschedule", { due_at: "soon" })).status).toBe(400);
    expect(await auditOf(stage)).toEqual([
      {
        action: "timeout.reschedule",
        details: { timeout: "a", destination: "mail", from: start + 3_600_000, to: start + 30_000 },
      },
    ]);
  });

  it("are tried again when they are dead, and only then", async () => {
    await using stage = await openStage();
    await deadTimeout(stage, "a");
    await insert(stage, "b", "1h");
    expect((await stage.get("/admin/timeouts")).body.items).toMatchObject([{ id: "b" }]);
    const dead = await stage.get("/admin/timeouts?dead=true");
    fits("GET", "/admin/timeouts", dead);
    expect(dead.body.items).toMatchObject([{ id: "a", state: "dead", error: "no" }]);
    expect((await stage.get("/admin/timeouts?dead=true&destination=mail")).body.items).toEqual([]);
    expect((await stage.post("/admin/timeouts/a/reschedule", { due_at: "+PT1H" })).status).toBe(409);
    expect((await stage.post("/admin/timeouts/b/requeue")).status).toBe(409);
    const again = await stage.post("/admin/timeouts/a/requeue");
    fits("POST", "/admin/timeouts/:id/requeue", again);
    expect(again.body).toMatchObject({ id: "a", state: "pending", tries: 0, payload: { to: "a" } });
    expect(await auditOf(stage)).toMatchObject([{ action: "timeout.requeue", details: { error: "no" } }]);
  });
});

describe("sagas for operators", () => {
  async function sagaStage() {
    const stage = await openStage();
    const { saga, texts } = diary((context, text) => {
      if (text === "") context.request("rung", "1h", { text: "late" }, { key: "k" });
    });
    const other = diary(() => {}, { type: "zebra" });
    const host = stage.engine.host([saga, other.saga]);
    for (const id of ["b", "a", "ü/1"]) await stage.engine.send(saga, "begun", { id });
    await stage.engine.send(other.saga, "begun", { id: "z", text: "hello" });
    await stage.advance("1s");
    await host.close();
    return { stage, texts, saga };
  }

  it("are listed without their definitions, by type and cursor", async () => {
    const { stage } = await sagaStage();
    await using _closing = stage;
    await using other = await openStage({ store: stage.engine.store });
    const first = await other.get("/admin/sagas?limit=2&order=asc");
    fits("GET", "/admin/sagas", first);
    expect(first.body.items).toMatchObject([
      { type: "diary", id: "a", status: "alive", pending: [{ name: "rung", key: "k" }] },
      { type: "diary", id: "b" },
    ]);
    const cursor = encodeURIComponent(first.body.pagination.next_cursor);
    const rest = await other.get(`/admin/sagas?limit=2&order=asc&cursor=${cursor}`);
    expect([idsOf(rest.body.items), rest.body.pagination.has_more]).toEqual([["ü/1", "z"], false]);
    expect(idsOf((await other.get("/admin/sagas?type=diary&order=asc")).body.items)).toEqual([
      "a",
      "b",
      "ü/1",
    ]);
    expect((await other.get("/admin/sagas?type=none")).body.items).toEqual([]);
    expect((await other.get("/admin/sagas?cursor=x")).status).toBe(400);
  });

  it("are listed from the last id down by default, of one type or of all", async () => {
    const { stage } = await sagaStage();
    await using _closing = stage;
    const first = await stage.get("/admin/sagas?limit=2");
    expect(idsOf(first.body.items)).toEqual(["z", "ü/1"]);
    const cursor = encodeURIComponent(first.body.pagination.next_cursor);
    const rest = await stage.get(`/admin/sagas?limit=2&cursor=${cursor}`);
    expect([idsOf(rest.body.items), rest.body.pagination.has_more]).toEqual([["b", "a"], false]);
    expect(idsOf((await stage.get("/admin/sagas?type=diary")).body.items)).toEqual(["ü/1", "b", "a"]);
    const page = await stage.get("/admin/sagas?type=diary&limit=1");
    const after = encodeURIComponent(page.body.pagination.next_cursor);
    const next = await stage.get(`/admin/sagas?type=diary&limit=1&cursor=${after}`);
    expect([idsOf(page.body.items), idsOf(next.body.items)]).toEqual([["ü/1"], ["b"]]);
    expect((await stage.get("/admin/sagas?order=newest")).status).toBe(400);
  });

  it("have their steps in the events, however many others came after them", async () => {
    const { stage } = await sagaStage();
    await using _closing = stage;
    const other = defineJob({ type: "other" });
    const many = Array.from({ length: 1_000 }, () => null);
    for (let nth = 0; nth < 6; nth++) await stage.engine.enqueueMany(other, many);
    const path = "/events?types=saga.*&saga_type=diary&saga_id=a";
    const newest = await stage.get(path);
    fits("GET", "/events", newest);
    expect(newest.body).toMatchObject({ events: [], scanned: 5_000, searched_from: expect.any(String) });
    const older = await stage.get(`${path}&before=${newest.body.before}`);
    fits("GET", "/events", older);
    expect(older.body).toMatchObject({
      before: null,
      events: [
        { type: "saga.started", data: { saga_type: "diary", saga_id: "a" } },
        { type: "saga.handled", data: { saga_type: "diary", saga_id: "a" } },
      ],
    });
    for (const wrong of ["before=x", "saga_type=diary", "saga_id=a", `before=${newest.body.before}&after=0`])
      expect((await stage.get(`/events?${wrong}`)).status, wrong).toBe(400);
  });

  it("are shown with state, pending timeouts and waiting messages", async () => {
    const { stage, saga } = await sagaStage();
    await using _closing = stage;
    await stage.engine.send(saga, "told", { id: "ü/1", text: "later" });
    const shown = await stage.get(`/admin/sagas/diary/${encodeURIComponent("ü/1")}`);
    fits("GET", "/admin/sagas/:type/:id", shown);
    expect(shown.body).toMatchObject({
      type: "diary",
      id: "ü/1",
      status: "alive",
      state: { id: "ü/1", texts: [""] },
      timeouts: [{ name: "rung", key: "k", saga: { type: "diary", id: "ü/1", kind: "timeout" } }],
      messages: [{ name: "told", saga: { kind: "message" } }],
    });
    expect(shown.body.handled).toHaveLength(1);
    expect((await stage.get("/admin/sagas/diary/none")).status).toBe(404);
  });

  it("are taken back by an operator, without their definitions, and again after an undo that failed", async () => {
    await using stage = await openStage();
    let isBroken = true;
    const { saga, texts } = diary((context, text) => void context.undo("back" as never, { text } as never), {
      undos: { back: z.object({ text: z.string() }) },
      onUndo: {
        back: (state: { texts: string[] }, { text }: { text: string }) => {
          if (isBroken && text === "one") throw new Error("the other side is down");
          return { ...state, texts: [...state.texts, `-${text}`] };
        },
      },
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a", text: "one" });
    await stage.engine.send(saga, "told", { id: "a", text: "two" });
    await stage.advance("1s");
    expect(texts()).toEqual(["one", "two"]);
    await using other = await openStage({ store: stage.engine.store });
    const path = "/admin/sagas/diary/a";
    const begun = await other.post(`${path}/compensate`, {});
    fits("POST", "/admin/sagas/:type/:id/compensate", begun);
    expect([begun.status, begun.body.answer]).toEqual([200, "begun"]);
    await stage.advance("10ms");
    const { body: waiting } = await stage.get(path);
    const [undo] = waiting.pending;
    expect((await stage.post(`/admin/timeouts/${undo.id}/revoke`)).status).toBe(409);
    await stage.advance("1h");
    const stuck = await stage.get(path);
    fits("GET", "/admin/sagas/:type/:id", stuck);
    expect(stuck.body).toMatchObject({
      status: "compensation_failed",
      undos: [{ name: "back", payload: { text: "one" } }],
      compensation: { because: "operator", failed: { error: "Error: the other side is down" } },
      timeouts: [{ name: "back", saga: { kind: "undo" } }],
    });
    isBroken = false;
    expect((await other.post(`${path}/compensate`, {})).body.answer).toBe("resumed");
    await stage.advance("1s");
    expect((await stage.get(path)).body).toMatchObject({
      status: "compensated",
      state: { texts: ["one", "two", "-two", "-one"] },
    });
    expect((await other.post(`${path}/compensate`, {})).status).toBe(404);
    expect(await auditOf(stage)).toMatchObject([
      { action: "saga.compensate", details: { saga: "diary", id: "a", answer: "resumed" } },
      { action: "saga.compensate" },
    ]);
  });

  it("know at once that a timeout of theirs was revoked, and never handle it", async () => {
    const { stage, saga, texts } = await sagaStage();
    await using _closing = stage;
    const { body } = await stage.get("/admin/sagas/diary/a");
    const [timeout] = body.timeouts;
    expect((await stage.post(`/admin/timeouts/${timeout.id}/revoke`)).body.was).toBe("pending");
    const after = await stage.get("/admin/sagas/diary/a");
    expect(after.body).toMatchObject({ pending: [], timeouts: [], state: body.state });
    expect(after.body.version).toBeGreaterThan(body.version);
    stage.engine.host([saga]);
    await stage.advance("2h");
    expect(texts().filter((text) => text === "late")).toHaveLength(2);
  });

  it("handle a timeout that was moved at its new instant", async () => {
    const { stage, saga, texts } = await sagaStage();
    await using _closing = stage;
    const [timeout] = (await stage.get("/admin/sagas/diary/a")).body.timeouts;
    await stage.post(`/admin/timeouts/${timeout.id}/reschedule`, { due_at: "+PT10S" });
    stage.engine.host([saga]);
    await stage.advance("11s");
    expect(texts().filter((text) => text === "late")).toHaveLength(1);
    expect((await stage.get("/admin/sagas/diary/a")).body).toMatchObject({ pending: [], timeouts: [] });
  });

  it("get their messages in order: a message cannot be moved", async () => {
    const { stage, saga } = await sagaStage();
    await using _closing = stage;
    await stage.engine.send(saga, "told", { id: "a", text: "later" });
    const [message] = (await stage.get("/admin/sagas/diary/a")).body.messages;
    const moved = await stage.post(`/admin/timeouts/${message.id}/reschedule`, { due_at: "+PT10S" });
    expect([moved.status, moved.body.error.message]).toEqual([409, expect.stringContaining("message")]);
  });
});
