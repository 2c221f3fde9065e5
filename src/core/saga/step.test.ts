import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type Act,
  act,
  ask,
  begun,
  charge,
  fire,
  NOW,
  nextId,
  paid,
  placed,
  requests,
  revokes,
  run,
  type State,
  sagaThat,
} from "../../../test/support/saga-stage.ts";
import type { Json } from "../schema.ts";
import type { SagaContext } from "./saga.ts";
import { decodeRecord, encodeRecord, HANDLED_LIMIT, type SagaRecord } from "./saga-record.ts";

function lateEvent(record: SagaRecord) {
  const id = record.pending[0]?.id as string;
  return { kind: "timeout", name: "late", id, payload: { nth: 1 } } as const;
}

describe("SEMANTICS 7.4: one step is one commit", () => {
  it("jobs, messages and replies are effects too, in the order of the calls", async () => {
    const other = sagaThat(() => undefined, { type: "other" });
    const ids: string[] = [];
    const { effects } = await act((saga, state) => {
      ids.push(saga.enqueue(charge, { cents: 5 }, { priority: 3 }));
      ids.push(saga.send(other, "placed", { orderId: "o-9", cents: 1 }, { replyAs: "paid" }));
      saga.reply({ ok: true });
      return state;
    });
    expect(effects).toMatchObject([
      { enqueue: { id: ids[0], type: "card.charge", payload: '{"cents":5}', priority: 3, createdAt: NOW } },
      {
        send: {
          id: ids[1],
          saga: "other",
          to: "o-9",
          name: "placed",
          payload: '{"orderId":"o-9","cents":1}',
          replyTo: { message: ids[1], saga: "order", id: "o-1", as: "paid" },
        },
      },
      { reply: { value: '{"ok":true}' } },
    ]);
  });

  it("refuses what is wrong with them where it is written", async () => {
    const other = sagaThat(() => undefined, { type: "other" });
    const wrong: [Act, string][] = [
      [(saga) => saga.enqueue(charge, { cents: "5" } as never), "invalid_payload"],
      [(saga) => saga.enqueue(charge, { cents: 5 }, { tx: {} as never }), "invalid_option"],
      [(saga) => saga.send({} as typeof other, "placed", {} as never), "invalid_saga"],
      [(saga) => saga.send(other, "shipped" as "placed", {} as never), "unknown_message"],
      [(saga) => saga.send(other, "placed", { orderId: "", cents: 1 }), "invalid_correlation"],
      [(saga) => saga.send(other, "placed", { orderId: "x", cents: 1 }, { replyAs: "x" }), "unknown_message"],
      [(saga) => saga.reply(new Date(0) as never), "not_json"],
      [(saga) => saga.reply(1, { to: "everybody" as "sender" }), "invalid_option"],
    ];
    for (const [body, code] of wrong) await expect(act(body)).rejects.toMatchObject({ code });
  });

  it("a reply needs a sender; the starter can be answered from a timeout", async () => {
    const { record } = await act(ask);
    const event = lateEvent(record);
    const answer = sagaThat((saga) => saga.reply(1));
    await expect(run(answer, record, { ...event, sender: null })).rejects.toMatchObject({
      code: "no_sender",
    });
    const late = sagaThat((saga, state) => {
      saga.reply(1, { to: "starter" });
      return state;
    });
    const outcome = await run(late, record, { ...event, sender: null });
    expect(outcome).toMatchObject({ effects: [{ reply: { to: record.starter, value: "1" } }] });
  });

  it("calls after the handler has ended are refused, not lost", async () => {
    let kept: SagaContext | undefined;
    await act((saga, state) => {
      kept = saga;
      return state;
    });
    const saga = kept as SagaContext;
    const other = sagaThat(() => undefined);
    const late: (() => unknown)[] = [
      () => saga.request("late", "1h", { nth: 1 }),
      () => saga.revoke("k"),
      () => saga.enqueue(charge, { cents: 1 }),
      () => saga.send(other, "placed", { orderId: "x", cents: 1 }),
      () => saga.reply(1),
      () => saga.complete({}),
    ];
    for (const call of late) expect(call).toThrow(expect.objectContaining({ code: "step_over" }));
  });

  it("a second starting message makes no second saga", async () => {
    const record = await begun();
    const never = sagaThat(() => expect.fail("the handler was entered"));
    expect(await run(never, record, placed)).toEqual({ kind: "ignored", because: "started" });
    const hears = sagaThat(() => undefined, {
      on: { paid: (s: State) => s, placed: (s: State) => ({ ...s, notes: ["again"] }) },
    });
    const outcome = await run(hears, record, placed);
    expect(outcome).toMatchObject({ kind: "stepped", record: { state: { notes: ["again"] } } });
    expect(outcome).toMatchObject({ record: { generation: record.generation } });
  });

  it("a message that was handled is recognised when it comes again", async () => {
    const saga = sagaThat((_saga, state) => state);
    let record = await begun(saga);
    const ids: string[] = [];
    for (let nth = 0; nth < HANDLED_LIMIT; nth++) {
      const id = nextId();
      ids.push(id);
      const outcome = await run(saga, record, { ...paid, id });
      if (outcome.kind !== "stepped") throw new Error(outcome.kind);
      record = outcome.record;
    }
    for (const id of ids) {
      expect(await run(saga, record, { ...paid, id })).toEqual({ kind: "ignored", because: "handled" });
    }
    expect(record.handled).toHaveLength(HANDLED_LIMIT);
  });

  it("a timeout is handled once: its mark is that it is no longer pending", async () => {
    const { record } = await act(ask);
    const saga = sagaThat((_saga, state) => ({ ...state, notes: ["late"] }));
    const event = lateEvent(record);
    const outcome = await run(saga, record, event);
    if (outcome.kind !== "stepped") throw new Error(outcome.kind);
    expect(outcome.record).toMatchObject({ pending: [], state: { notes: ["late"] } });
    expect(await run(saga, outcome.record, event)).toEqual({ kind: "ignored", because: "not-pending" });
  });
});

describe("SEMANTICS 7.5: whose a timeout is", () => {
  const never = sagaThat(() => expect.fail("a handler was entered"), {
    notFound: () => expect.fail("the hook was called"),
  });

  it("it never starts a saga and never reaches the not-found hook", async () => {
    expect(await run(never, null, fire("t"))).toEqual({ kind: "ignored", because: "no-saga" });
  });

  it("completing revokes what is pending, and what its own step requested is never stored", async () => {
    const { record } = await act(ask);
    const outcome = await act((saga, state) => {
      saga.request("late", "2h", { nth: 2 });
      return saga.complete(state);
    }, record);
    expect(revokes(outcome.effects)).toEqual(record.pending);
    expect(requests(outcome.effects)).toEqual([]);
    expect(outcome.record).toMatchObject({ completedAt: NOW, pending: [] });
  });

  it("a completed saga ignores it", async () => {
    const { record } = await act(ask);
    const { record: completed } = await act((saga, state) => saga.complete(state), record);
    const fired = await run(never, completed, fire(record.pending[0]?.id as string));
    expect(fired).toEqual({ kind: "ignored", because: "no-saga" });
  });

  it("one re-created under the same id ignores it, and has another generation", async () => {
    const { record } = await act(ask);
    const { record: completed } = await act((saga, state) => saga.complete(state), record);
    const again = await run(
      sagaThat(() => undefined),
      completed,
      placed,
    );
    if (again.kind !== "stepped") throw new Error(again.kind);
    expect(again.record.generation).not.toBe(record.generation);
    const fired = await run(never, again.record, fire(record.pending[0]?.id as string));
    expect(fired).toEqual({ kind: "ignored", because: "not-pending" });
  });

  it("the message that started a completed saga does not start it again", async () => {
    const saga = sagaThat((context, state) => context.complete(state));
    const id = nextId();
    const first = await run(saga, null, { ...placed, id });
    if (first.kind !== "stepped") throw new Error(first.kind);
    expect(first.record.completedAt).toBe(NOW);
    expect(await run(saga, first.record, { ...placed, id })).toEqual({ kind: "ignored", because: "handled" });
  });

  it("an ordinary message with no saga goes to the not-found hook, with what it asked for", async () => {
    expect(
      await run(
        sagaThat(() => undefined),
        null,
        paid,
      ),
    ).toEqual({ kind: "not-found", effects: [] });
    const seen: unknown[] = [];
    const hooked = sagaThat(() => expect.fail("a handler was entered"), {
      notFound: (message: unknown, saga: SagaContext) => {
        seen.push(message, Object.keys(saga));
        saga.enqueue(charge, { cents: 1 });
        saga.reply("nobody");
      },
    });
    const outcome = await run(hooked, null, paid);
    expect(outcome).toMatchObject({ kind: "not-found", effects: [{ enqueue: {} }, { reply: {} }] });
    expect(seen[0]).toEqual({ name: "paid", payload: { orderId: "o-1" } });
    expect(seen[1]).not.toContain("request");
    const { record } = await act((saga, state) => saga.complete(state));
    expect((await run(hooked, record, paid)).kind).toBe("not-found");
  });
});

describe("SEMANTICS 7.6: the identity of a saga does not change", () => {
  it("a field that holds the correlation value is kept", async () => {
    expect((await begun()).fixed).toEqual(["orderId"]);
    await expect(act((_saga, state) => ({ ...state, orderId: "o-2" }))).rejects.toMatchObject({
      code: "identity_changed",
      field: "on.paid: state.orderId",
    });
  });

  it("a field that correlation does not read may change, whatever its value", async () => {
    const state = z.object({ orderId: z.string(), cents: z.union([z.string(), z.int()]) });
    const saga = sagaThat(() => ({ orderId: "o-1", cents: "o-1" }), { state });
    const record = await begun(saga);
    const changed = sagaThat(() => ({ orderId: "o-1", cents: 7 }), { state });
    expect((await run(changed, record, paid)).kind).toBe("stepped");
  });

  it("a message that cannot be watched starts its saga all the same", async () => {
    class Parsed {
      readonly #orderId: string;
      constructor(orderId: string) {
        this.#orderId = orderId;
      }
      get orderId(): string {
        return this.#orderId;
      }
    }
    const messages = {
      placed: z.object({ orderId: z.string() }).transform(({ orderId }) => new Parsed(orderId)),
      paid: z.object({ orderId: z.string() }),
    };
    const record = await begun(sagaThat(() => ({ orderId: "o-1", notes: [] }), { messages }));
    expect(record.state).toEqual({ orderId: "o-1", notes: [] });
  });

  it("identify reads it off any state, at the start too", async () => {
    const state = z.object({ of: z.string() });
    const make = (of: string) => sagaThat(() => ({ of }), { state, identify: (s: { of: string }) => s.of });
    const record = await begun(make("o-1"));
    await expect(run(make("o-2"), record, paid)).rejects.toMatchObject({
      code: "identity_changed",
      field: "on.paid: identify(state)",
    });
    await expect(run(make("o-2"), null, placed)).rejects.toMatchObject({ code: "identity_changed" });
  });

  it("the id on the context cannot be written", async () => {
    const write: Act = (saga) => {
      (saga as { id: string }).id = "o-2";
    };
    await expect(act(write)).rejects.toThrow(TypeError);
  });
});

describe("versions of the state", () => {
  const versioned = (version: number, migrate?: (state: Json, from: number) => unknown) =>
    sagaThat((_saga, state) => state, { version, migrate });

  it("an older state is migrated before its handler sees it", async () => {
    const old = { ...(await begun()), state: { orderId: "o-1" } };
    const saga = versioned(3, (state, from) => ({ ...(state as object), notes: [`from ${from}`] }));
    const outcome = await run(saga, old, paid);
    expect(outcome).toMatchObject({ record: { schema: 3, state: { orderId: "o-1", notes: ["from 1"] } } });
    const bad = versioned(3, (state) => state);
    await expect(run(bad, old, paid)).rejects.toMatchObject({ code: "invalid_saga_state" });
  });

  it("a newer state is left to those who know it", async () => {
    const newer = { ...(await begun()), schema: 4 };
    await expect(
      run(
        versioned(3, (state) => state),
        newer,
        paid,
      ),
    ).rejects.toMatchObject({
      code: "newer_state",
      message: expect.stringContaining("version 4 and this process knows 3"),
    });
  });
});

describe("the record", () => {
  it("survives its stored form", async () => {
    const { record } = await act((saga, state) => {
      saga.request("late", "1h", { nth: 1 }, { key: "k" });
      saga.request("late", "1h", { nth: 2 });
      return state;
    });
    expect(decodeRecord(JSON.parse(JSON.stringify(encodeRecord(record))))).toEqual(record);
  });
});
