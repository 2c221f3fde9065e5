import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineSaga, type TimeoutError } from "../../src/index.ts";
import { openPair, openStage, START, type Stage } from "./stage.ts";

const Id = z.object({ id: z.string() });
const Did = z.object({ what: z.string() });

interface Acts {
  /** Called in every undo handler, before its state is returned. */
  readonly undo?: (what: string, signal: AbortSignal) => unknown;
  readonly onFailure?: "keep" | "compensate";
  /** Fails the message `go` for this step. */
  readonly fails?: string;
}

/** A trip of three bookings, each of which registers how it is cancelled. */
function trip(acts: Acts = {}) {
  const done: string[] = [];
  const saga = defineSaga({
    type: "trip",
    state: z.object({ id: z.string(), booked: z.array(z.string()), undone: z.array(z.string()) }),
    messages: { plan: Id, book: Id.extend({ what: z.string() }), fail: Id, pay: Id },
    timeouts: { remind: z.object({}) },
    undos: { cancel: Did },
    correlate: { plan: (m) => m.id, book: (m) => m.id, fail: (m) => m.id, pay: (m) => m.id },
    startedBy: "plan",
    start: ({ id }, context) => {
      context.request("remind", "1h");
      return { id, booked: [], undone: [] };
    },
    on: {
      book: (state, { what }, context) => {
        if (what === acts.fails) throw new Error(`no ${what}`);
        context.undo("cancel", { what });
        return { ...state, booked: [...state.booked, what] };
      },
      fail: (state, _message, context) => context.compensate(state),
      pay: (state, _message, context) => context.complete(state),
    },
    onTimeout: { remind: (state) => state },
    onUndo: {
      cancel: async (state, { what }, context) => {
        await acts.undo?.(what, context.signal);
        done.push(what);
        return { ...state, undone: [...state.undone, what] };
      },
    },
    attempt: { standard: "30s", onUndo: { cancel: "2s" } },
    ...(acts.onFailure && { onFailure: acts.onFailure }),
  });
  return { saga, done };
}

async function book(stage: Stage, saga: ReturnType<typeof trip>["saga"], whats: readonly string[]) {
  await stage.engine.send(saga, "plan", { id: "t" });
  for (const what of whats) await stage.engine.send(saga, "book", { id: "t", what });
  await stage.advance("1s");
}

describe("7.10 compensation", () => {
  it("runs the undos of the committed steps in reverse order, revokes timeouts, and completes", async () => {
    const stage = await openStage();
    const { saga, done } = trip();
    stage.engine.host([saga]);
    await book(stage, saga, ["flight", "hotel", "car"]);
    const before = await stage.engine.saga(saga, "t").load();
    expect(before?.undos.map(({ payload }) => payload)).toEqual(
      ["flight", "hotel", "car"].map((what) => ({ what })),
    );
    await stage.engine.send(saga, "fail", { id: "t" });
    await stage.advance("100ms");
    const view = await stage.engine.saga(saga, "t").load();
    expect([done, view?.state, view?.undos]).toEqual([
      ["car", "hotel", "flight"],
      expect.objectContaining({ undone: ["car", "hotel", "flight"] }),
      [],
    ]);
    const startedAt = view?.compensation?.startedAt ?? 0;
    expect(view?.compensation).toEqual({ startedAt, because: "handler", failed: null });
    // Each undo is due at once, so three of them take no longer than their deliveries.
    expect([startedAt - START >= 1_000, (view?.completedAt as number) - startedAt < 50]).toEqual([
      true,
      true,
    ]);
    expect(await stage.engine.saga(saga, "t").timeouts()).toEqual([]);
    await stage.advance("2h");
    expect(done).toHaveLength(3);
  });

  it("a saga that completes runs no undo, and forgets them", async () => {
    const stage = await openStage();
    const { saga, done } = trip();
    stage.engine.host([saga]);
    await book(stage, saga, ["flight"]);
    await stage.engine.send(saga, "pay", { id: "t" });
    await stage.advance("1h");
    const view = await stage.engine.saga(saga, "t").load();
    expect([done, view?.undos, view?.compensation]).toEqual([[], [], null]);
  });

  it("each undo has its own limit, and is tried again until it succeeds", async () => {
    const stage = await openStage();
    const reasons: string[] = [];
    let tries = 0;
    const { saga, done } = trip({
      undo: (what, signal) => {
        if (what !== "hotel" || ++tries > 2) return undefined;
        signal.addEventListener("abort", () => reasons.push(`${(signal.reason as TimeoutError).limit}`));
        return new Promise(() => {});
      },
    });
    stage.engine.host([saga]);
    await book(stage, saga, ["flight", "hotel", "car"]);
    await stage.engine.send(saga, "fail", { id: "t" });
    await stage.advance("1m");
    expect(reasons).toEqual(["2000", "2000"]);
    expect(done).toEqual(["car", "hotel", "flight"]);
  });

  it("an undo that fails for good is seen in the saga, and an operator lets it go on", async () => {
    const stage = await openStage();
    let isBroken = true;
    const { saga, done } = trip({
      undo: (what) => {
        if (what === "hotel" && isBroken) throw new Error("the hotel does not answer");
      },
    });
    stage.engine.host([saga]);
    await book(stage, saga, ["flight", "hotel", "car"]);
    const handle = stage.engine.saga(saga, "t");
    expect(await handle.compensate()).toBe("begun");
    expect(await handle.compensate()).toBe("running");
    await stage.advance("1h");
    const stuck = await handle.load();
    expect([stuck?.completedAt, stuck?.compensation?.because]).toEqual([null, "operator"]);
    expect(stuck?.compensation?.failed?.error).toContain("the hotel does not answer");
    expect(stuck?.undos.map(({ payload }) => payload)).toEqual([{ what: "flight" }, { what: "hotel" }]);
    expect((await handle.timeouts()).map(({ deadAt }) => deadAt !== null)).toEqual([true]);
    isBroken = false;
    expect(await handle.compensate()).toBe("resumed");
    await stage.advance("100ms");
    expect(done).toEqual(["car", "hotel", "flight"]);
    const view = await handle.load();
    expect([view?.completedAt !== null, view?.compensation?.failed]).toEqual([true, null]);
    expect(await handle.compensate()).toBeNull();
  });

  it("begins by itself after the last failed try, if the definition says so", async () => {
    for (const onFailure of ["keep", "compensate"] as const) {
      const stage = await openStage();
      const { saga, done } = trip({ onFailure, fails: "car" });
      stage.engine.host([saga]);
      await book(stage, saga, ["flight", "hotel", "car"]);
      await stage.advance("1h");
      const view = await stage.engine.saga(saga, "t").load();
      const expected = onFailure === "keep" ? [] : ["hotel", "flight"];
      expect([done, view?.compensation?.because]).toEqual([
        expected,
        onFailure === "keep" ? undefined : "failure",
      ]);
      expect((await stage.engine.saga(saga, "t").messages()).map(({ tries }) => tries)).toEqual([10]);
    }
  });

  it("a message during the compensation may register another undo, which runs first", async () => {
    const stage = await openStage();
    let isBroken = true;
    const { saga, done } = trip({
      undo: (what) => {
        if (what === "hotel" && isBroken) throw new Error("not yet");
      },
    });
    stage.engine.host([saga]);
    await book(stage, saga, ["flight", "hotel"]);
    await stage.engine.send(saga, "fail", { id: "t" });
    await stage.advance("500ms");
    await stage.engine.send(saga, "book", { id: "t", what: "late car" });
    await stage.advance("1s");
    expect(done).toEqual(["late car"]);
    isBroken = false;
    await stage.advance("1m");
    expect(done).toEqual(["late car", "hotel", "flight"]);
  });

  it("goes on in another process after a crash in the middle of it", async () => {
    const pair = await openPair();
    const { saga: hung, done: first } = trip({
      undo: (what) => (what === "hotel" ? new Promise(() => {}) : undefined),
    });
    const { saga, done } = trip();
    pair.second.engine.host([hung]);
    await pair.second.engine.send(hung, "plan", { id: "t" });
    for (const what of ["flight", "hotel", "car"])
      await pair.second.engine.send(hung, "book", { id: "t", what });
    await pair.advance(1_000);
    await pair.second.engine.send(hung, "fail", { id: "t" });
    await pair.advance(500);
    pair.crashSecond();
    pair.first.engine.host([saga]);
    await pair.advance(400_000, 1_000);
    expect([first, done]).toEqual([["car"], ["hotel", "flight"]]);
    expect((await pair.first.engine.saga(saga, "t").load())?.completedAt).not.toBeNull();
  });

  it("refuses what a saga that is taken back cannot do", async () => {
    const tried: string[] = [];
    const attempt = (call: () => unknown) => {
      try {
        call();
        tried.push("done");
      } catch (error) {
        tried.push((error as { code: string }).code);
      }
    };
    const stage = await openStage();
    const saga = defineSaga({
      type: "odd",
      state: Id,
      messages: { plan: Id },
      timeouts: { late: z.object({}) },
      undos: { back: z.object({}) },
      correlate: { plan: (m) => m.id },
      startedBy: "plan",
      start: (state, context) => {
        context.undo("back");
        attempt(() => (context as never as { undo(name: string): void }).undo("other"));
        const next = context.compensate(state);
        attempt(() => context.complete(state));
        attempt(() => context.request("late", "1s"));
        return next;
      },
      on: {},
      onTimeout: { late: (state) => state },
      onUndo: {
        back: (state, _payload, context) => {
          attempt(() => context.undo("back"));
          attempt(() => context.request("late", "1s"));
          attempt(() => context.complete(state));
          expect(context.isCompensating).toBe(true);
          return state;
        },
      },
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "plan", { id: "o" });
    await stage.advance("100ms");
    const refused = "compensating";
    expect(tried).toEqual(["unknown_undo", refused, refused, refused, refused, refused]);
    expect((await stage.engine.saga(saga, "o").load())?.completedAt).not.toBeNull();
  });

  it("can be tested without an engine", async () => {
    const { saga } = trip();
    const planned = await saga.step(null, { message: "plan", payload: { id: "t" } });
    const booked = await saga.step(planned, { message: "book", payload: { id: "t", what: "car" } });
    expect(booked.undos).toMatchObject([{ name: "cancel", payload: { what: "car" } }]);
    const failed = await saga.step(booked, { message: "fail", payload: { id: "t" } });
    expect([failed.compensating, failed.pending.map(({ name }) => name)]).toEqual([true, ["cancel"]]);
    expect(failed.revoked.map(({ name }) => name)).toEqual(["remind"]);
    const undone = await saga.step(failed, { undo: "cancel" });
    expect([undone.completed, undone.state.undone]).toEqual([true, ["car"]]);
  });
});
