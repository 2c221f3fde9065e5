import { describe, expect, it } from "vitest";
import { processor } from "../../src/index.ts";
import { createLatch } from "../../src/testing/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { diary, noteJob } from "./saga-stage.ts";
import { errorOf, openStage, START } from "./stage.ts";

const HOUR = 3_600_000;

describe("SEMANTICS 7.1: return values of handlers", () => {
  it("a handler that returns nothing fails, and neither its state nor its effects are stored", async () => {
    const stage = await openStage();
    const { saga } = diary((context, text, state) => {
      if (text !== "bad") return undefined;
      context.enqueue(noteJob, { text: "never" });
      context.request("rung", "1h", { text: "never" });
      return Promise.reject(new Error(`no: ${state.id}`));
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.engine.send(saga, "told", { id: "a", text: "bad" });
    await stage.advance("1s");
    expect(await stage.engine.saga(saga, "a").load()).toMatchObject({
      state: { texts: [""] },
      version: 1,
      pending: [],
    });
    expect(await jobsOf(stage.engine.store)).toEqual([]);
    expect(stage.told("saga.failed")).toMatchObject({ saga: "a", event: { name: "told" } });
    expect(stage.counters().sagas.failed).toBeGreaterThan(0);
  });
});

describe("SEMANTICS 7.2: requests", () => {
  it("fire at their instant, never before, with their payload", async () => {
    const stage = await openStage();
    const { saga, seen } = diary((context, text) => {
      if (text === "") context.request("rung", "1h", { text: "ring" });
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance({ minutes: 59, seconds: 59 });
    expect(seen).toHaveLength(1);
    await stage.advance("2s");
    expect(seen[1]).toMatchObject({ text: "ring" });
    const late = (seen[1]?.at as number) - ((seen[0]?.at as number) + HOUR);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(200);
  });

  it("a delay of zero or a past instant fires right after the commit, twice if requested twice; a key replaces", async () => {
    const stage = await openStage();
    const { saga, texts } = diary((context, text) => {
      if (text !== "") return;
      context.request("rung", "0s", { text: "zero" });
      context.request("rung", new Date(START - HOUR), { text: "past" });
      context.request("rung", "1m", { text: "twice" });
      context.request("rung", "1m", { text: "twice" });
      context.request("rung", "2m", { text: "replaced" }, { key: "k" });
      context.request("rung", "3m", { text: "key" }, { key: "k" });
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1s");
    expect(texts()).toEqual(["", "past", "zero"]);
    await stage.advance("1h");
    expect(texts()).toEqual(["", "past", "zero", "twice", "twice", "key"]);
  });

  it("a timeout that another timeout requests fires in the same advance if it is due", async () => {
    const stage = await openStage();
    const { saga, seen } = diary((context, text) => {
      const nth = text === "" ? 1 : Number(text) + 1;
      if (nth <= 5) context.request("rung", "1h", { text: String(nth) });
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("6h");
    expect(seen.map(({ text }) => text)).toEqual(["", "1", "2", "3", "4", "5"]);
    const steps = seen.slice(1).map(({ at }, index) => at - (seen[index]?.at as number));
    for (const step of steps) expect(step).toBeGreaterThanOrEqual(HOUR);
  });

  it("timeouts of many sagas fire in due order", async () => {
    const stage = await openStage();
    const { saga, seen } = diary((context, text) => {
      const wait = Number(context.id);
      if (text === "") context.request("rung", { minutes: wait }, { text: "ring" });
    });
    stage.engine.host([saga]);
    for (const id of ["5", "3", "1", "4", "2"]) await stage.engine.send(saga, "begun", { id });
    await stage.advance("10m");
    expect(seen.filter(({ text }) => text === "ring").map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5"]);
  });
});

describe("SEMANTICS 7.3: revokes", () => {
  it("a revoked timeout is never handled, and revoking one that is not pending is no error", async () => {
    const stage = await openStage();
    const answers: string[] = [];
    const { saga, texts } = diary((context, text) => {
      if (text === "") context.request("rung", "1h", { text: "never" }, { key: "k" });
      else answers.push(context.revoke("k"), context.revoke("k"));
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.engine.send(saga, "told", { id: "a", text: "stop" });
    await stage.advance("2h");
    expect(answers).toEqual(["revoked", "not-pending"]);
    expect(texts()).toEqual(["", "stop"]);
    expect(await stage.engine.saga(saga, "a").timeouts()).toEqual([]);
    expect(stage.counters().sagas).toMatchObject({ revoked: 1, ignored: 0 });
  });

  it("a timeout that an operator revokes is never handled", async () => {
    const stage = await openStage();
    const { saga, texts } = diary((context, text) => {
      if (text === "") context.request("rung", "1h", { text: "never" }, { key: "k" });
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1s");
    const handle = stage.engine.saga(saga, "a");
    expect(await handle.revoke("k")).toBe("revoked");
    expect(await handle.revoke("k")).toBe("not-pending");
    await stage.advance("2h");
    expect(texts()).toEqual([""]);
  });
});

describe("SEMANTICS 7.4: one step, one commit", () => {
  it("jobs, messages and replies are stored with the state", async () => {
    const stage = await openStage();
    const other = diary(() => {}, { type: "other" });
    const { saga } = diary((context, text) => {
      if (text !== "go") return;
      context.enqueue(noteJob, { text: "job" });
      context.send(other.saga, "begun", { id: "x", text: "hello" });
      context.reply({ heard: text });
    });
    const notes: string[] = [];
    stage.work([processor(noteJob, async ({ payload }) => void notes.push(payload.text))]);
    stage.engine.host([saga, other.saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    const message = await stage.engine.send(saga, "told", { id: "a", text: "go" });
    await stage.advance("1s");
    expect(notes).toEqual(["job"]);
    expect(other.texts()).toEqual(["hello"]);
    expect(await message.reply({ within: "1s" })).toEqual({ heard: "go" });
    expect(stage.names()).toContain("job.enqueued");
  });

  it("a job that is to start later starts on time", async () => {
    const stage = await openStage();
    const { saga, seen } = diary((context) => {
      context.enqueue(noteJob, { text: "later" }, { delay: "10s" });
    });
    const startedAt: number[] = [];
    stage.work([processor(noteJob, async () => void startedAt.push(stage.now()))]);
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1m");
    const late = (startedAt[0] as number) - ((seen[0]?.at as number) + 10_000);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(200);
  });

  it("messages are handled in the order in which they arrived, one at a time", async () => {
    const stage = await openStage();
    let running = 0;
    const { saga, texts } = diary(async () => {
      running += 1;
      expect(running).toBe(1);
      await stage.sleep(3);
      running -= 1;
    });
    stage.engine.host([saga]);
    const sent = Array.from({ length: 150 }, (_, index) => String(index));
    await stage.engine.send(saga, "begun", { id: "a", text: "begin" });
    await Promise.all(sent.map((text) => stage.engine.send(saga, "told", { id: "a", text })));
    await stage.advance("10s");
    expect(texts()).toEqual(["begin", ...sent]);
    expect((await stage.engine.saga(saga, "a").load())?.version).toBe(151);
  });

  it("two starting messages at once make one saga", async () => {
    const stage = await openStage();
    const { saga } = diary();
    stage.engine.host([saga]);
    await Promise.all([
      stage.engine.send(saga, "begun", { id: "a" }),
      stage.engine.send(saga, "begun", { id: "a" }),
    ]);
    await stage.advance("1s");
    expect(stage.counters().sagas).toMatchObject({ started: 1, ignored: 1 });
    expect(stage.told("saga.ignored")).toMatchObject({ because: "started" });
  });

  it("a message that is sent twice with its id is handled once", async () => {
    const stage = await openStage();
    const { saga, texts } = diary();
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" }, { id: "first" });
    await stage.engine.send(saga, "told", { id: "a", text: "once" }, { id: "second" });
    await stage.advance("1s");
    await stage.engine.send(saga, "told", { id: "a", text: "once" }, { id: "second" });
    await stage.engine.send(saga, "begun", { id: "a" }, { id: "first" });
    await stage.advance("1s");
    expect(texts()).toEqual(["", "once"]);
    expect(stage.counters().sagas.ignored).toBe(2);
  });

  it("after ten failed tries a message is a dead letter, the state is untouched, and the next one is handled", async () => {
    const stage = await openStage();
    const { saga, texts } = diary((_context, text) => {
      if (text === "bad") throw new Error("no");
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.engine.send(saga, "told", { id: "a", text: "bad" });
    await stage.engine.send(saga, "told", { id: "a", text: "good" });
    await stage.advance("1s");
    expect(texts()).not.toContain("good");
    await stage.advance("1d");
    expect(texts().filter((text) => text === "bad")).toHaveLength(10);
    expect((await stage.engine.saga(saga, "a").load())?.state).toMatchObject({ texts: ["", "good"] });
    const [dead, ...rest] = await stage.engine.saga(saga, "a").messages();
    expect(rest).toEqual([]);
    expect(dead).toMatchObject({
      tries: 10,
      deadAt: expect.any(Number),
      error: expect.stringContaining("no"),
    });
  });

  it("a message to a saga that no process hosts waits until one does", async () => {
    const stage = await openStage();
    const { saga, texts } = diary();
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1h");
    expect(texts()).toEqual([]);
    const host = stage.engine.host([saga]);
    await stage.advance("10s");
    expect(texts()).toEqual([""]);
    await host.close();
    await stage.engine.send(saga, "told", { id: "a", text: "later" });
    await stage.advance("1h");
    expect(texts()).toEqual([""]);
  });

  it("send refuses bad input and stores nothing", async () => {
    const stage = await openStage();
    const { saga } = diary();
    const { engine } = stage;
    const wrong: [Promise<unknown>, string][] = [
      [engine.send(saga, "said" as "told", { id: "a", text: "" }), "unknown_message"],
      [engine.send(saga, "told", { id: 1 } as never), "invalid_payload"],
      [engine.send(saga, "told", { id: "", text: "" }), "invalid_correlation"],
      [engine.send({} as typeof saga, "told", { id: "a", text: "" }), "invalid_saga"],
      [engine.send(saga, "told", { id: "a", text: "" }, { id: "" }), "invalid_option"],
      [engine.send(saga, "told", { id: "a", text: "" }, { tx: {} as never }), "invalid_option"],
    ];
    for (const [promise, code] of wrong) expect(await errorOf(promise)).toMatchObject({ code });
    expect(() => engine.host([])).toThrow(/sagas/);
    expect(() => engine.host([saga, saga])).toThrow(/each type once/);
    expect(await engine.saga(saga, "a").messages()).toEqual([]);
  });
});

describe("SEMANTICS 7.5: timeouts of completed sagas", () => {
  it("completing cancels pending timeouts; a later message is not found; a start begins a new saga", async () => {
    const stage = await openStage();
    const lost: unknown[] = [];
    const { saga, texts } = diary(
      (context, text, state) => {
        if (text === "") context.request("rung", "1h", { text: "never" });
        return text === "end" ? context.complete(state) : undefined;
      },
      { notFound: (message: unknown) => void lost.push(message) },
    );
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.engine.send(saga, "told", { id: "a", text: "end" });
    await stage.engine.send(saga, "told", { id: "a", text: "hello?" });
    await stage.advance("1s");
    expect(lost).toEqual([{ name: "told", payload: { id: "a", text: "hello?" } }]);
    expect(stage.counters().sagas).toMatchObject({ completed: 1, cancelled: 1, notFound: 1 });
    const before = await stage.engine.saga(saga, "a").load();
    expect(before?.completedAt).not.toBeNull();
    await stage.engine.send(saga, "begun", { id: "a", text: "again" });
    await stage.advance("2h");
    expect(texts()).toEqual(["", "end", "again"]);
    expect(await stage.engine.saga(saga, "a").load()).toMatchObject({ completedAt: null, version: 3 });
  });

  it("the record of a completed saga is deleted after its retention, at the earliest after a minute", async () => {
    const stage = await openStage();
    const end = diary((context, _text, state) => context.complete(state), { retention: "1h" });
    const gone = diary((context, _text, state) => context.complete(state), { type: "gone", retention: "0s" });
    stage.engine.host([end.saga, gone.saga]);
    await stage.engine.send(end.saga, "begun", { id: "a" });
    await stage.engine.send(gone.saga, "begun", { id: "a" }, { id: "once" });
    await stage.advance("30s");
    expect(await stage.engine.sagas(end.saga)).toHaveLength(1);
    // Not a trace of the state, but the ids of its messages, for those who repeat themselves.
    expect(await stage.engine.sagas(gone.saga)).toMatchObject([{ id: "a", state: null, pending: [] }]);
    await stage.engine.send(gone.saga, "begun", { id: "a" }, { id: "once" });
    await stage.advance("2m");
    expect(gone.texts()).toEqual([""]);
    expect(await stage.engine.sagas(gone.saga)).toEqual([]);
    await stage.advance("61m");
    expect(await stage.engine.sagas(end.saga)).toEqual([]);
  });
});

describe("SEMANTICS 7.7: no process runs at the due time", () => {
  it("timeouts that fell due are handled at the next start, in due order", async () => {
    const stage = await openStage();
    const { saga, texts } = diary((context, text) => {
      if (text !== "") return;
      for (const minutes of [30, 10, 20]) context.request("rung", { minutes }, { text: String(minutes) });
    });
    const host = stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1s");
    await host.close();
    await stage.advance("5h");
    expect(texts()).toEqual([""]);
    stage.engine.host([saga]);
    await stage.advance("10s");
    expect(texts()).toEqual(["", "10", "20", "30"]);
  });

  it("more timeouts than one process takes at once keep their due order", async () => {
    const stage = await openStage();
    // The latest is requested first, so that the order of the ids is not the due order.
    const minutes = Array.from({ length: 70 }, (_, index) => 70 - index);
    const { saga, texts } = diary(async (context, text) => {
      if (text !== "") return void (await stage.sleep(15));
      for (const after of minutes) context.request("rung", { minutes: after }, { text: String(after) });
    });
    const host = stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1s");
    await host.close();
    await stage.advance("70m");
    stage.engine.host([saga]);
    await stage.advance("1m");
    expect(texts()).toEqual(["", ...minutes.toReversed().map(String)]);
  });
});

describe("SEMANTICS 7.9: limits of handlers", () => {
  it("a handler that hangs fails at its limit, its signal aborts, and its later actions do not count", async () => {
    const stage = await openStage();
    const latch = createLatch();
    const reasons: unknown[] = [];
    let tries = 0;
    const { saga } = diary(async (context, text, state) => {
      if (text !== "slow" || ++tries > 1) return undefined;
      context.signal.addEventListener("abort", () => reasons.push(context.signal.reason));
      await latch.pass();
      return { ...state, texts: ["void"] };
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.engine.send(saga, "told", { id: "a", text: "slow" });
    await stage.advance("29s");
    expect(reasons).toEqual([]);
    await stage.advance("2s");
    expect(reasons).toMatchObject([{ name: "TimeoutError", kind: "execution", limit: 30_000 }]);
    latch.open();
    await stage.advance("10m");
    expect((await stage.engine.saga(saga, "a").load())?.state.texts).toEqual(["", "slow"]);
  });

  it("a handler that blocks the loop beyond its limit fails when it ends, before the commit", async () => {
    const stage = await openStage();
    let tries = 0;
    const { saga } = diary(
      (_context, text) => {
        if (text === "slow" && ++tries === 1) stage.system.pause(6_000);
      },
      { attempt: { on: { told: "5s" } } },
    );
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.engine.send(saga, "told", { id: "a", text: "slow" });
    await stage.advance("10m");
    expect(tries).toBe(2);
    expect(stage.told("saga.failed")?.error).toMatchObject({ name: "TimeoutError", limit: 5_000 });
    expect((await stage.engine.saga(saga, "a").load())?.state.texts).toEqual(["", "slow"]);
  });
});

describe("replies", () => {
  it("go back to a saga as the message that it named", async () => {
    const stage = await openStage();
    const stock = diary(
      (context, text) => {
        if (text === "left?") context.reply({ id: "a", text: "three" });
      },
      { type: "stock" },
    );
    const { saga, texts } = diary((context, text) => {
      if (text === "") context.send(stock.saga, "begun", { id: "s", text: "left?" }, { replyAs: "told" });
    });
    stage.engine.host([saga, stock.saga]);
    await stage.engine.send(saga, "begun", { id: "a" });
    await stage.advance("1s");
    expect(texts()).toEqual(["", "three"]);
  });

  it("a reply reaches the sender that started the saga, also from a timeout", async () => {
    const stage = await openStage();
    const { saga } = diary((context, text) => {
      if (text === "") context.request("rung", "1h", { text: "done" });
      if (text === "done") context.reply("at last", { to: "starter" });
    });
    stage.engine.host([saga]);
    const message = await stage.engine.send(saga, "begun", { id: "a" });
    const soon = errorOf(message.reply({ within: "10m" }));
    const answer = message.reply({ within: "2h" });
    await stage.advance("90m");
    expect(await soon).toMatchObject({ code: "result_timeout" });
    expect(await answer).toBe("at last");
    await stage.advance("2h");
    expect(await errorOf(Promise.all([message.reply({ within: "1s" }), stage.advance("2s")]))).toMatchObject({
      code: "result_timeout",
    });
  });
});

describe("operators", () => {
  it("list sagas by type and page, and end one", async () => {
    const stage = await openStage();
    const { saga } = diary((context, text) => {
      if (text === "") context.request("rung", "1h", { text: "never" });
    });
    const other = diary(() => {}, { type: "diaries" });
    stage.engine.host([saga, other.saga]);
    for (const id of ["b", "a", "c"]) await stage.engine.send(saga, "begun", { id });
    await stage.engine.send(other.saga, "begun", { id: "z" });
    await stage.advance("1s");
    const page = await stage.engine.sagas(saga, { limit: 2 });
    expect(page.map(({ id }) => id)).toEqual(["a", "b"]);
    const rest = await stage.engine.sagas(saga, { after: "b" });
    expect(rest.map(({ id }) => id)).toEqual(["c"]);
    const handle = stage.engine.saga(saga, "a");
    expect(await handle.end()).toBe(true);
    expect(await handle.end()).toBe(false);
    expect(await handle.timeouts()).toEqual([]);
    expect(await handle.load()).toMatchObject({ completedAt: expect.any(Number), pending: [] });
    expect(await stage.engine.saga(saga, "nobody").load()).toBeNull();
  });
});
