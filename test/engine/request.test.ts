import { describe, expect, it } from "vitest";
import { calls } from "../../src/calls/index.ts";
import { Discard, defineJob, defineSaga, processor, snooze, unchecked } from "../../src/index.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { createLatch, faultyStore, openTestEngine } from "../../src/testing/index.ts";

const slow = defineJob({ type: "slow", payload: unchecked<number>(), result: unchecked<number>() });

describe("SEMANTICS 10.8: engine.request", () => {
  it("resolves with the result of the job", async () => {
    await using test = await openTestEngine();
    test.engine.work({ processors: [processor(slow, ({ payload }) => payload * 2)] });
    const asked = test.engine.request(slow, 4, { within: "5s" });
    await test.advance("1s");
    expect(await asked).toBe(8);
  });

  it.each([
    ["go-on", "completed"],
    ["cancel", "cancelled"],
  ] as const)(
    "at the deadline the caller gets a TimeoutError; with %s the job is %s",
    async (onTimeout, state) => {
      await using test = await openTestEngine();
      test.engine.work({
        processors: [processor(slow, ({ signal, payload }) => test.sleep("10s", signal).then(() => payload))],
      });
      let failure: unknown;
      const started = test.now();
      const asked = test.engine
        .request(slow, 4, { id: "01900000-0000-7000-8000-000000000001", within: "5s", onTimeout })
        .catch((error) => {
          failure = { error, at: test.now() - started };
        });
      await test.advance("4s");
      expect(failure).toBeUndefined();
      await test.advance("2s");
      await asked;
      expect(failure).toMatchObject({
        error: { name: "TimeoutError", kind: "total", limit: 5_000 },
        at: 5_000,
      });
      await test.advance("10s");
      expect((await test.engine.load("01900000-0000-7000-8000-000000000001"))?.state).toBe(state);
    },
  );

  it("a job that would be cancelled ends by its total if its caller dies", async () => {
    await using test = await openTestEngine();
    void test.engine
      .request(slow, 4, { id: "01900000-0000-7000-8000-000000000002", within: "5s", onTimeout: "cancel" })
      .catch(() => {});
    await test.settle();
    const { instants } = await test.engine.explain("01900000-0000-7000-8000-000000000002");
    expect(instants.total).toBe(test.now() + 5_000);
  });

  it("at the deadline the caller gets a TimeoutError, although the store does not answer", async () => {
    const latch = createLatch();
    let isHanging = false;
    await using test = await openTestEngine({
      store: (clock) =>
        faultyStore(createMemoryStore({ clock }), () =>
          isHanging ? { delay: () => latch.pass() } : undefined,
        ),
    });
    isHanging = true;
    const started = test.now();
    let failure: unknown;
    void test.engine.request(slow, 4, { within: "5s", onTimeout: "cancel" }).catch((error) => {
      failure = { error, at: test.now() - started };
    });
    await test.advance("5s");
    expect(failure).toMatchObject({ error: { name: "TimeoutError", limit: 5_000 }, at: 5_000 });
    isHanging = false;
    latch.open();
  });

  it("never cancels a job that another caller enqueued", async () => {
    await using test = await openTestEngine();
    const { id } = await test.engine.enqueue(slow, 4);
    const asked = test.engine.request(slow, 4, { id, within: "5s", onTimeout: "cancel" });
    const rejected = expect(asked).rejects.toMatchObject({ name: "TimeoutError" });
    await test.advance("6s");
    await rejected;
    expect((await test.engine.load(id))?.state).toBe("available");
  });

  it("a caller that gives up during the enqueue or after it gets its own reason, and the job is cancelled", async () => {
    await using test = await openTestEngine();
    for (const wait of [0, 1]) {
      const caller = new AbortController();
      const id = `01900000-0000-7000-8000-00000000001${wait}`;
      const asked = test.engine.request(slow, 4, {
        id,
        within: "5s",
        onTimeout: "cancel",
        signal: caller.signal,
      });
      const rejected = expect(asked).rejects.toBe("enough");
      if (wait > 0) await test.advance("1s");
      caller.abort("enough");
      await rejected;
      await test.settle();
      expect((await test.engine.load(id))?.state).toBe("cancelled");
    }
  });

  it.each([
    [{ within: 5 }, "request.within"],
    [{ within: "5s", onTimeout: "stop" }, "request.onTimeout"],
    [{ within: "5s", prioritty: 1 }, "did you mean priority"],
  ])("%j is refused", async (options, message) => {
    await using test = await openTestEngine();
    await expect(test.engine.request(slow, 1, options as never)).rejects.toThrow(message);
  });
});

describe("SEMANTICS 10.6: inside a handler", () => {
  it("a call of a job gets what is left of its attempt", async () => {
    await using test = await openTestEngine();
    const left: number[] = [];
    const job = defineJob({ type: "outer", timeouts: { attempt: "30s" } });
    test.engine.work({
      processors: [
        processor(job, async () => {
          left.push(
            await calls.within({ attempt: "1h" }, ({ remaining }) => Math.round(remaining() / 1_000)),
          );
        }),
      ],
    });
    await test.engine.enqueue(job);
    await test.advance("1s");
    expect(left).toEqual([30]);
  });
});

describe("what counts after the signal (SEMANTICS 3.5, 7.9)", () => {
  const job = defineJob({
    type: "late",
    timeouts: { attempt: "5s", grace: "10s" },
    retry: { attempts: 3 },
  });
  const endOf = async (end: () => unknown) => {
    await using test = await openTestEngine();
    let entered = 0;
    test.engine.work({
      processors: [
        processor(job, async () => {
          entered += 1;
          await test.sleep("6s");
          return end() as never;
        }),
      ],
    });
    const { id } = await test.engine.enqueue(job);
    await test.advance("10m");
    const ended = await test.engine.load(id);
    const error = ended?.errors.at(-1);
    return {
      state: ended?.state,
      attempt: ended?.attempt,
      entered,
      type: error?.type,
      cause: error?.cause?.type,
    };
  };

  it("a snooze is the timeout, and spends the attempt", async () => {
    expect(await endOf(() => snooze({ after: "1s" }))).toEqual({
      state: "discarded",
      attempt: 3,
      entered: 3,
      type: "timeout",
      cause: "snooze",
    });
  });

  it("a Discard is the timeout, and ends the job", async () => {
    const ended = await endOf(() => {
      throw new Discard("no use");
    });
    expect(ended).toEqual({ state: "discarded", attempt: 1, entered: 1, type: "timeout", cause: "Discard" });
  });

  it("a saga handler past its limit can request nothing more", async () => {
    await using test = await openTestEngine();
    let refused: unknown;
    const saga = defineSaga({
      type: "late.saga",
      state: unchecked<{ id: string }>(),
      messages: { begin: unchecked<{ id: string }>() },
      timeouts: { remind: unchecked<object>() },
      correlate: { begin: ({ id }) => id },
      startedBy: "begin",
      attempt: "1s",
      start: async ({ id }, context) => {
        await test.sleep("2s");
        try {
          context.request("remind", "1m", {});
        } catch (error) {
          refused ??= error;
        }
        return { id };
      },
      on: {},
      onTimeout: { remind: (state) => state },
    });
    test.engine.host([saga]);
    await test.engine.send(saga, "begin", { id: "1" });
    await test.advance("3s");
    expect(refused).toMatchObject({ name: "TimeoutError" });
  });
});
