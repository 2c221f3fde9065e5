import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type Act,
  act,
  begun,
  NOW,
  paid,
  placed,
  requests,
  revokes,
  run,
  sagaThat,
} from "../../../test/support/saga-stage.ts";
import { unchecked } from "../job/job-definition.ts";
import type { Json } from "../schema.ts";
import type { SagaContext } from "./saga.ts";
import { PENDING_LIMIT } from "./saga-record.ts";

describe("SEMANTICS 7.1: what a handler returns", () => {
  it("is the next state", async () => {
    const { record } = await act((_saga, state) => ({ ...state, notes: ["paid"] }));
    expect(record.state).toEqual({ orderId: "o-1", notes: ["paid"] });
  });

  it("nothing fails, from handlers and from promises", async () => {
    await expect(act(() => undefined)).rejects.toMatchObject({ code: "no_next_state", field: "on.paid" });
    await expect(act(async () => {})).rejects.toMatchObject({ code: "no_next_state" });
    const silent = sagaThat(() => undefined, { start: () => undefined });
    await expect(run(silent, null, placed)).rejects.toMatchObject({ code: "no_next_state", field: "start" });
  });

  it("a state that does not fit its schema, or is not JSON, fails", async () => {
    await expect(act(() => ({ orderId: "o-1" }))).rejects.toMatchObject({ code: "invalid_saga_state" });
    const loose = { state: z.object({ orderId: z.string(), at: z.unknown() }) };
    const make = sagaThat(() => ({ orderId: "o-1", at: new Date(0) }), loose);
    const first = await begun(sagaThat(() => ({ orderId: "o-1", at: 1 }), loose));
    await expect(run(make, first, paid)).rejects.toMatchObject({ code: "not_json", field: "state.at" });
  });

  it("what a handler throws comes out as it is", async () => {
    const error = new Error("no");
    await expect(act(() => Promise.reject(error))).rejects.toBe(error);
  });

  it("unknown names throw at run time", async () => {
    await expect(act((saga) => saga.request("later", "1h", {}))).rejects.toMatchObject({
      code: "unknown_timeout",
      message: 'name: "later" is not a timeout of this saga; order declares late, asyncLate, again',
    });
    await expect(
      run(
        sagaThat(() => undefined),
        null,
        { name: "payed" },
      ),
    ).rejects.toMatchObject({
      code: "unknown_message",
    });
    await expect(act((saga) => saga.request("toString" as "late", "1h", {}))).rejects.toMatchObject({
      code: "unknown_timeout",
    });
  });

  it("a wrong payload throws, at once or when its schema answers", async () => {
    await expect(act((saga) => saga.request("late", "1h", { nth: "1" }))).rejects.toMatchObject({
      code: "invalid_payload",
      field: "payload.nth",
    });
    await expect(
      act((saga, state) => {
        saga.request("asyncLate", "1h", { nth: "1" });
        return state;
      }),
    ).rejects.toMatchObject({ code: "invalid_payload" });
    await expect(
      run(
        sagaThat(() => undefined),
        null,
        { name: "placed", payload: {} },
      ),
    ).rejects.toMatchObject({
      code: "invalid_payload",
      field: "message.placed.orderId",
    });
  });

  it("a handler that mutates its state and throws has changed nothing", async () => {
    const record = await begun();
    const before = structuredClone(record);
    const spoil: Act = (_saga, state) => {
      state.notes.push("spoiled");
      throw new Error("no");
    };
    await expect(act(spoil, record)).rejects.toThrow("no");
    expect(record).toEqual(before);
    // A schema that passes on what it is given, instead of a copy, must make no difference.
    await expect(act(spoil, record, { state: unchecked<object>() })).rejects.toThrow("no");
    expect(record).toEqual(before);
  });
});

describe("SEMANTICS 7.2: requests", () => {
  it("become effects with instants, payload text and their stored form", async () => {
    const { effects, record } = await act((saga, state) => {
      saga.request("late", { after: "24h" }, { nth: 1 });
      saga.request("late", { at: "17:00", days: 7, zone: "Europe/Berlin" }, { nth: 2 }, { key: "k" });
      return state;
    });
    const [delay, wall] = requests(effects);
    expect(delay).toMatchObject({ name: "late", key: null, dueAt: NOW + 86_400_000, payload: '{"nth":1}' });
    expect(delay?.wallClock).toBeNull();
    expect(wall).toMatchObject({
      key: "k",
      dueAt: Date.parse("2030-01-08T16:00:00Z"),
      wallClock: { local: "2030-01-08T17:00:00", zone: "Europe/Berlin", gap: "later", overlap: "earlier" },
    });
    expect(record.pending.map(({ id }) => id)).toEqual([delay?.id, wall?.id]);
  });

  it("the same request twice is two timeouts", async () => {
    const { effects } = await act((saga, state) => {
      saga.request("late", "1h", { nth: 1 });
      saga.request("late", "1h", { nth: 1 });
      return state;
    });
    expect(new Set(requests(effects).map(({ id }) => id)).size).toBe(2);
  });

  it("a later request under the same key replaces the earlier, in one step and across steps", async () => {
    const ask: Act = (saga, state) => {
      saga.request("late", "1h", { nth: 1 }, { key: "k" });
      saga.request("late", "2h", { nth: 2 }, { key: "k" });
      return state;
    };
    const first = await act(ask);
    expect(requests(first.effects)).toMatchObject([{ payload: '{"nth":2}' }]);
    expect(revokes(first.effects)).toEqual([]);
    const second = await act(ask, first.record);
    expect(requests(second.effects)).toHaveLength(1);
    expect(revokes(second.effects)).toEqual(first.record.pending);
    expect(second.record.pending).toHaveLength(1);
  });

  it("a negative delay is a RangeError, a local time a TypeError, and the past is due at once", async () => {
    await expect(act((saga) => saga.request("late", "-1s" as "1s", { nth: 1 }))).rejects.toThrow(RangeError);
    await expect(act((saga) => saga.request("late", "2030-01-01T12:00", { nth: 1 }))).rejects.toThrow(
      TypeError,
    );
    const { effects } = await act((saga, state) => {
      saga.request("late", "0s", { nth: 1 });
      saga.request("late", new Date(5), { nth: 1 });
      return state;
    });
    expect(requests(effects).map(({ dueAt }) => dueAt)).toEqual([NOW, 5]);
  });

  it("the incoming message may be passed on as the payload", async () => {
    const saga = sagaThat(() => undefined, {
      start: (order: { orderId: string }, context: SagaContext) => {
        context.request("again", "1h", order);
        return { orderId: order.orderId, notes: [] };
      },
    });
    const outcome = await run(saga, null, placed);
    if (outcome.kind !== "stepped") throw new Error(outcome.kind);
    const [request] = requests(outcome.effects);
    expect(request?.payload).toBe('{"orderId":"o-1","cents":5}');
    const fired = await run(
      sagaThat((_saga, state) => state),
      outcome.record,
      {
        kind: "timeout",
        name: "again",
        id: request?.id as string,
        payload: JSON.parse(request?.payload as string) as Json,
      },
    );
    expect(fired.kind).toBe("stepped");
  });

  it("are bounded, and a key that replaces is no more", async () => {
    const fill: Act = (saga, state) => {
      for (let nth = 1; nth < PENDING_LIMIT; nth++) saga.request("late", "1h", { nth });
      saga.request("late", "1h", { nth: 0 }, { key: "k" });
      saga.request("late", "1h", { nth: 0 }, { key: "k" });
      return state;
    };
    const { record } = await act(fill);
    expect(record.pending).toHaveLength(PENDING_LIMIT);
    const more: Act = (saga) => saga.request("late", "1h", { nth: 1 });
    await expect(act(more, record)).rejects.toMatchObject({ code: "too_many_pending" });
  });

  it("refuse keys that no store could keep, and options that do not exist", async () => {
    for (const options of [{ key: "" }, { key: 1 }, { id: "x" }, { key: "\0" }]) {
      const ask: Act = (saga) => saga.request("late", "1h", { nth: 1 }, options as { key: string });
      await expect(act(ask)).rejects.toMatchObject({ code: expect.stringMatching(/_option$/) });
    }
  });
});

describe("SEMANTICS 7.3: revokes", () => {
  const keyed: Act = (saga, state) => {
    saga.request("late", "1h", { nth: 1 }, { key: "k" });
    saga.request("late", "1h", { nth: 2 });
    return state;
  };

  it("take a key or an id, and answer whether it was pending", async () => {
    const { record } = await act(keyed);
    const [first, second] = record.pending;
    const answers: string[] = [];
    const { effects, record: after } = await act((saga, state) => {
      answers.push(
        saga.revoke("k"),
        saga.revoke("k"),
        saga.revoke(second?.id as string),
        saga.revoke("nobody"),
      );
      return state;
    }, record);
    expect(answers).toEqual(["revoked", "not-pending", "revoked", "not-pending"]);
    expect(revokes(effects)).toEqual([first, second]);
    expect(after.pending).toEqual([]);
  });

  it("a request that is revoked in its own step never was", async () => {
    const { effects, record } = await act((saga, state) => {
      saga.request("late", "1h", { nth: 1 }, { key: "k" });
      expect(saga.pending).toMatchObject([{ name: "late", key: "k" }]);
      expect(saga.revoke("k")).toBe("revoked");
      expect(saga.pending).toEqual([]);
      return state;
    });
    expect(effects).toEqual([]);
    expect(record.pending).toEqual([]);
  });

  it("what was revoked is never handled, even if it arrives", async () => {
    const { record } = await act(keyed);
    const [revoked] = record.pending;
    const { record: after } = await act((saga, state) => {
      saga.revoke("k");
      return state;
    }, record);
    const never = sagaThat(() => expect.fail("the handler was entered"));
    const event = { kind: "timeout", name: "late", id: revoked?.id as string, payload: { nth: 1 } } as const;
    expect(await run(never, after, event)).toEqual({ kind: "ignored", because: "not-pending" });
  });

  it("refuse what is no key", async () => {
    await expect(
      act((saga) => saga.revoke("")),
      "",
    ).rejects.toMatchObject({ code: "invalid_option" });
  });
});
