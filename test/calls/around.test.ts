import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createCalls, deadlineFetch } from "../../src/calls/index.ts";
import { defineJob, defineSaga, processor } from "../../src/index.ts";
import { openTestEngine, type TestEngine } from "../../src/testing/index.ts";
import { never } from "./open-calls.ts";

/** SEMANTICS 10.6: what runs inside a handler, step or call ends with it, and never before it. */

const job = defineJob({
  type: "outer",
  timeouts: { attempt: "10s", grace: "5s" },
  retry: { attempts: 1 },
});

type Calls = ReturnType<typeof createCalls>;
type Inside = (calls: Calls, test: TestEngine) => Promise<unknown>;

const ways: Record<string, Inside> = {
  "a call": (calls) => calls.within({ attempt: "1h" }, never),
  "a call in a call": (calls) =>
    calls.within({ attempt: "1h", grace: "0s" }, () => calls.within({ attempt: "2h" }, never)),
  "a stream": (calls) =>
    calls.limitStream({ idle: "1h" }, { [Symbol.asyncIterator]: () => ({ next: never }) }).next(),
  "a request": (_calls, { engine }) => engine.request(defineJob({ type: "unheard" }), null, { within: "1h" }),
  "a call that ends by its total": (calls) => calls.within({ attempt: "1h", total: "10h" }, never),
};

/** Runs it in a handler, and says when it ended, how, and how the job did. */
async function inJob(
  inside: Inside,
  during: (test: TestEngine, id: string) => Promise<unknown> = async () => {},
) {
  await using test = await openTestEngine();
  const calls = createCalls({ system: test.system });
  const ended: { at?: number; error?: { name: string; kind?: string } } = {};
  let enteredAt = 0;
  test.engine.work({
    queues: { default: { concurrency: 1 } },
    processors: [
      processor(job, async () => {
        enteredAt = test.now();
        try {
          await inside(calls, test);
        } catch (error) {
          Object.assign(ended, { at: test.now() - enteredAt, error });
          throw error;
        }
      }),
    ],
  });
  const handle = await test.engine.enqueue(job);
  await test.advance("2s");
  await during(test, handle.id);
  await test.advance("1m");
  const row = await handle.load();
  return { ...ended, state: row?.state, failure: row?.errors.at(-1), counts: calls.counts() };
}

describe("at the deadline of the handler", () => {
  it.each(Object.entries(ways))("%s ends with it, and the job has timed out", async (_name, inside) => {
    const seen = await inJob(inside);
    expect(seen).toMatchObject({ at: 10_000, error: { name: "TimeoutError", kind: "total" } });
    expect(seen.failure).toMatchObject({ code: "timeout", kind: "execution", limit: 10_000 });
  });

  it.each(Object.entries(ways))("%s follows an extension", async (_name, inside) => {
    const seen = await inJob(inside, (test, id) => test.engine.extend(id, { attempt: "30s" }));
    expect(seen).toMatchObject({ at: 30_000, error: { name: "TimeoutError" } });
    expect(seen.failure).toMatchObject({ code: "timeout", kind: "execution" });
  });

  it.each(Object.entries(ways))("%s is stopped with the handler", async (_name, inside) => {
    const seen = await inJob(inside, (test, id) => test.engine.cancel(id));
    expect(seen).toMatchObject({
      at: 2_000,
      error: { name: "StopError", kind: "cancelled" },
      state: "cancelled",
    });
  });

  it("the limit of its own comes first, and is a failure of the handler", async () => {
    const seen = await inJob((calls) => calls.within({ attempt: "9s" }, never));
    expect(seen).toMatchObject({ at: 9_000, failure: { code: "handler_error", type: "TimeoutError" } });
  });
});

it("a call that outlives its handler still ends", async () => {
  await using test = await openTestEngine();
  const calls = createCalls({ system: test.system });
  const ended: number[] = [];
  const orphan = () => calls.within({ attempt: "1h" }, never).catch(() => ended.push(test.now()));
  test.engine.work({ processors: [processor(job, () => void orphan())] });
  const startedAt = test.now();
  await test.engine.enqueue(job);
  await test.advance("9s");
  expect(ended).toEqual([]);
  await test.advance("2s");
  expect(ended.map((at) => Math.round((at - startedAt) / 1_000))).toEqual([10]);
  expect(calls.pending).toBe(0);
});

it("a call in the step of a saga ends with the step", async () => {
  await using test = await openTestEngine();
  const calls = createCalls({ system: test.system });
  const ended: number[] = [];
  const saga = defineSaga({
    type: "slow",
    state: z.object({ id: z.string() }),
    messages: { go: z.object({ id: z.string() }) },
    correlate: { go: (message) => message.id },
    startedBy: "go",
    attempt: "7s",
    start: async (message) => {
      const enteredAt = test.now();
      await calls.within({ attempt: "1h" }, never).finally(() => ended.push(test.now() - enteredAt));
      return message;
    },
    on: {},
  });
  test.engine.host([saga]);
  await test.engine.send(saga, "go", { id: "1" });
  await test.advance("8s");
  expect(ended).toEqual([7_000]);
});

it("deadlineFetch in a handler sends the time until its signal, not a millisecond less", async () => {
  const sent: unknown[] = [];
  const { fetch } = globalThis;
  globalThis.fetch = (async (_url: unknown, init: RequestInit) => {
    sent.push((init.headers as Headers).get("curfew-timeout-ms"));
    return new Response();
  }) as typeof fetch;
  try {
    await inJob(async () => void (await deadlineFetch("http://stock.internal/")));
  } finally {
    globalThis.fetch = fetch;
  }
  expect(sent).toEqual(["10000"]);
});
