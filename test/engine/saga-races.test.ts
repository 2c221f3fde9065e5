import { describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import type { SagaContext } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createLatch, createSimSystem, failFirst, faultyStore } from "../../src/testing/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { diary, noteJob } from "./saga-stage.ts";
import { openOver, openPair, openStage, START, shared, storeOn } from "./stage.ts";

describe("SEMANTICS 7.3: revoke against fire", () => {
  it("a timeout that another process is handling when it is revoked does not count", async () => {
    const pair = await openPair();
    const latch = createLatch();
    const { saga, texts } = diary(async (context, text) => {
      if (text === "") context.request("rung", "1m", { text: "ring" }, { key: "k" });
      if (text === "ring") await latch.pass();
      if (text === "stop") expect(context.revoke("k")).toBe("revoked");
    });
    const host = pair.first.engine.host([saga]);
    await pair.first.engine.send(saga, "begun", { id: "a" });
    await pair.advance(61_000, 1_000);
    await latch.reached();
    expect(texts()).toEqual(["", "ring"]);
    // The other process revokes it while the handler of the first still runs.
    pair.second.engine.host([saga]);
    expect(await pair.second.engine.saga(saga, "a").revoke("k")).toBe("revoked");
    latch.open();
    await pair.advance(10_000, 1_000);
    const view = await pair.second.engine.saga(saga, "a").load();
    expect(view?.state.texts).toEqual([""]);
    expect(pair.first.counters().sagas.ignored).toBe(1);
    await host.close();
  });
});

describe("SEMANTICS 7.4: two processes", () => {
  it("handle the messages of one saga in order, each once", async () => {
    const pair = await openPair();
    const { saga, texts } = diary();
    pair.first.engine.host([saga]);
    pair.second.engine.host([saga]);
    const sent = Array.from({ length: 60 }, (_, index) => String(index));
    await pair.first.engine.send(saga, "begun", { id: "a", text: "begin" });
    for (const text of sent) {
      await pair.first.engine.send(saga, "told", { id: "a", text });
      if (Number(text) % 7 === 0) await pair.advance(50);
    }
    await pair.advance(30_000, 100);
    const view = await pair.first.engine.saga(saga, "a").load();
    expect(view?.state.texts).toEqual(["begin", ...sent]);
    expect(view?.version).toBe(61);
    expect(texts()).toEqual(["begin", ...sent]);
  });

  it("of timeouts and messages at once, one wins, and the others run again on the new state", async () => {
    const pair = await openPair();
    const { saga } = diary(async (context, text) => {
      if (text === "") for (let nth = 0; nth < 20; nth++) context.request("rung", "1m", { text: `t${nth}` });
    });
    pair.first.engine.host([saga]);
    pair.second.engine.host([saga]);
    await pair.first.engine.send(saga, "begun", { id: "a" });
    await pair.advance(59_000, 1_000);
    for (let nth = 0; nth < 10; nth++)
      await pair.second.engine.send(saga, "told", { id: "a", text: `m${nth}` });
    await pair.advance(30_000, 50);
    const view = await pair.first.engine.saga(saga, "a").load();
    expect(view?.version).toBe(31);
    expect(new Set(view?.state.texts).size).toBe(31);
    expect(view?.pending).toEqual([]);
  });

  it("another process repeats the step of a process that died, and its effects happen once", async () => {
    const pair = await openPair();
    const latch = createLatch();
    let isFirst = true;
    const { saga } = diary(async (_context, text) => {
      if (text !== "slow" || !isFirst) return;
      isFirst = false;
      await latch.pass();
    });
    pair.second.engine.host([saga]);
    await pair.second.engine.send(saga, "begun", { id: "a" });
    await pair.second.engine.send(saga, "told", { id: "a", text: "slow" });
    await pair.advance(1_000);
    await latch.reached();
    pair.crashSecond();
    pair.first.engine.host([saga]);
    await pair.advance(10 * 60_000, 10_000);
    latch.open();
    await pair.first.settle();
    const view = await pair.first.engine.saga(saga, "a").load();
    expect(view?.state.texts).toEqual(["", "slow"]);
    expect(view?.version).toBe(2);
  });
});

describe("SEMANTICS 7.4: a process that paused for longer than its lease", () => {
  it("cannot commit the effects of its not-found hook, although there is no record to guard", async () => {
    const pair = await openPair();
    const latch = createLatch();
    let hooks = 0;
    const { saga } = diary(() => {}, {
      notFound: async (_message: unknown, context: SagaContext) => {
        hooks += 1;
        if (hooks === 1) await latch.pass();
        context.enqueue(noteJob, { text: "nobody" });
      },
      attempt: "none",
    });
    pair.second.engine.host([saga]);
    await pair.second.engine.send(saga, "told", { id: "a", text: "hello?" });
    await pair.second.settle();
    await latch.reached();
    pair.first.engine.host([saga]);
    await pair.pauseSecond(6 * 60_000);
    expect(hooks).toBe(2);
    latch.open();
    await pair.advance(1_000);
    expect(await jobsOf(pair.first.engine.store)).toHaveLength(1);
    expect(pair.second.counters().sagas).toMatchObject({ lapsed: 1, notFound: 0 });
  });
});

describe("a store that fails", () => {
  it.each([1, 2])("a commit whose reply is lost counts once (commit %i)", async (which) => {
    const stage = await openOver((store) =>
      faultyStore(store, (call, nth) => (call === "commit" && nth === which ? "lose-reply" : undefined)),
    );
    const { saga } = diary((context, text) => {
      if (text === "") context.request("rung", "1m", { text: "ring" });
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("20m");
    const view = await stage.engine.saga(saga, "a").load();
    expect(view?.state.texts).toEqual(["", "ring"]);
    expect(view?.pending).toEqual([]);
  });

  it("a message whose insert lost its reply is handled once", async () => {
    const stage = await openOver((store) => faultyStore(store, failFirst("timeouts.insert", "lose-reply")));
    const { saga, texts } = diary();
    stage.engine.host([saga]);
    const sending = stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1s");
    await sending;
    await stage.advance("1s");
    expect(texts()).toEqual([""]);
  });
});

describe("SEMANTICS 7.8: newer zone data", () => {
  it("moves pending wall-clock timeouts when an engine opens with it, once, and leaves the others alone", async () => {
    const system = createSimSystem({ seed: 1, startAt: START });
    const store = storeOn(system);
    const wallClock = {
      local: "2030-06-01T17:00:00",
      zone: "Europe/Berlin",
      gap: "later",
      overlap: "earlier",
    };
    const rightAt = Date.parse("2030-06-01T15:00:00Z");
    const row = (id: string, dueAt: number) => ({ id, destination: "x", dueAt, wallClock });
    await store.timeouts.insert(
      [
        row("moved", rightAt + 3_600_000),
        row("right", rightAt),
        { id: "plain", destination: "x", dueAt: rightAt + 5 },
      ],
      { now: START },
    );
    const open = async (zoneData: string) => {
      const engine = await Engine.open({ system, store: shared(store), zoneData, logger: silentLogger });
      const closing = engine.close({ drain: "0s" });
      await system.advance(10_000);
      await closing;
      const rows = await store.timeouts.list({}, null, 10);
      return Object.fromEntries(rows.map(({ id, dueAt }) => [id, dueAt]));
    };
    expect(await open("2029a")).toEqual({ moved: rightAt, right: rightAt, plain: rightAt + 5 });
    await store.timeouts.reschedule([{ id: "moved", from: rightAt, to: rightAt + 7 }], { now: START });
    expect(await open("2029a")).toMatchObject({ moved: rightAt + 7 });
    expect(await open("2028b")).toMatchObject({ moved: rightAt + 7 });
    expect(await open("2029b")).toMatchObject({ moved: rightAt });
  });
});

describe("a rolling deploy", () => {
  it("a process with an older version leaves newer sagas to others, and counts no try", async () => {
    const stage = await openStage();
    const newer = diary(() => {}, { version: 2, migrate: (state: unknown) => state });
    const older = diary();
    const host = stage.engine.host([newer.saga]);
    await stage.engine.send(newer.saga, "begun", { id: "a" });
    await stage.advance("1s");
    await host.close();
    const late = stage.engine.host([older.saga]);
    await stage.engine.send(older.saga, "told", { id: "a", text: "hello" });
    await stage.advance("10m");
    expect(older.texts()).toEqual([]);
    expect(await stage.engine.saga(older.saga, "a").messages()).toMatchObject([{ tries: 0, deadAt: null }]);
    await late.close();
    stage.engine.host([newer.saga]);
    await stage.advance("10s");
    expect(newer.texts()).toEqual(["", "hello"]);
  });
});
