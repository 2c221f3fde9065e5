import { describe, expect, it } from "vitest";
import type { AttemptContext, StopError } from "../../src/index.ts";
import { createDeferred } from "../../src/testing/index.ts";
import { deaf, errorOf, jobWith, obedient } from "../engine/stage.ts";
import { openClientStage } from "./client-stage.ts";

describe("shutdown of a remote worker (5.2)", () => {
  it("lets handlers finish within the drain, and reports them before it resolves", async () => {
    const { advance, client, work, load, sleep } = await openClientStage();
    const { definition, processors } = jobWith(() => sleep(3_000).then(() => "done"));
    const worker = work(processors);
    const job = await client.enqueue(definition);
    await advance("1s");
    let closedAt: string | undefined;
    const closing = worker.close({ drain: "5s" }).then(async () => {
      closedAt = (await load(job)).state;
    });
    await advance("10s");
    await closing;
    expect(closedAt).toBe("completed");
  });

  it("a handler that exceeds the drain is signalled, and its job is given back without spending the attempt", async () => {
    const { advance, client, work, load, another } = await openClientStage();
    const reasons: unknown[] = [];
    const run = (context: AttemptContext) => {
      if (context.signal.aborted || reasons.length >= 2) return "done" as never;
      context.signal.addEventListener("abort", () => reasons.push(context.signal.reason));
      return reasons.length === 0 && context.payload === "deaf" ? deaf() : obedient(context);
    };
    const { definition, processors } = jobWith(run);
    const worker = work(processors);
    const heard = await client.enqueue(definition, "hears");
    const ignored = await client.enqueue(definition, "deaf");
    await advance("1s");
    const closing = worker.close({ drain: "1s" });
    await advance("1100ms");
    expect((reasons as StopError[]).map(({ kind }) => kind)).toEqual(["shutdown", "shutdown"]);
    expect([(await load(heard)).state, (await load(ignored)).state]).toEqual(["available", "active"]);
    await advance("6s");
    await closing;
    for (const job of [heard, ignored]) {
      const row = await load(job);
      expect([row.state, row.attempt, row.errors?.[0]?.type]).toEqual(["available", 0, "shutdown"]);
    }
    another().client.work({ processors });
    await advance("2s");
    expect([(await load(heard)).state, (await load(ignored)).state]).toEqual(["completed", "completed"]);
  });

  it("says at once that it drains, and refuses unknown options of close()", async () => {
    const { advance, settle, client, work, wire, sleep } = await openClientStage();
    const { definition, processors } = jobWith(() => sleep(3_000).then(() => "done"));
    const worker = work(processors);
    await client.enqueue(definition);
    await advance("1s");
    expect(await errorOf(worker.close({ drain: "5s", force: true } as object))).toMatchObject({
      code: "unknown_option",
      field: "close.force",
    });
    expect(wire.sent("/heartbeat").at(-1)?.body.state).toBe("running");
    const closing = worker.close({ drain: "5s" });
    await settle();
    expect(wire.sent("/heartbeat").at(-1)?.body.state).toBe("drain");
    await advance("10s");
    await closing;
  });

  it("gives back jobs that a fetch under way still brings", async () => {
    const { advance, client, work, load } = await openClientStage();
    const { definition, processors } = jobWith(deaf);
    const worker = work(processors);
    await advance("100ms");
    // The worker waits at the server for a job; it closes, and only then is there one.
    const closing = worker.close({ drain: "0s" });
    const job = await client.enqueue(definition);
    await advance("10s");
    await closing;
    const row = await load(job);
    expect([row.state, row.attempt, row.errors]).toEqual(["available", 0, null]);
  });

  it("gives back even jobs that a fetch brings after it has closed", async () => {
    const { advance, client, work, load, wire } = await openClientStage();
    const { definition, processors } = jobWith(deaf);
    const reply = createDeferred<void>();
    wire.hold = ({ path }) => (path === "/workers/fetch" ? reply.promise : Promise.resolve());
    const job = await client.enqueue(definition);
    const worker = work(processors);
    await advance("1s");
    expect((await load(job)).state).toBe("active");
    const closing = worker.close({ drain: "0s" });
    await advance("7s");
    await closing;
    reply.resolve();
    await advance("1s");
    const row = await load(job);
    expect([row.state, row.attempt, row.errors]).toEqual(["available", 0, null]);
  });

  it("resolves in its time even if the server is away", async () => {
    const { advance, client, work, wire } = await openClientStage();
    const { definition, processors } = jobWith(deaf);
    const worker = work(processors);
    await client.enqueue(definition);
    await advance("1s");
    wire.cut();
    let isClosed = false;
    void worker.close({ drain: "1s" }).then(() => {
      isClosed = true;
    });
    await advance("22s");
    expect(isClosed).toBe(true);
    const failing = errorOf(client.enqueue(definition));
    await advance("30s");
    expect(await failing).toMatchObject({
      code: "server_failed",
      message: "enqueue: the server cannot be reached (ECONNREFUSED) (tried 5 times)",
    });
  });

  it("a terminate directive closes the worker", async () => {
    const { advance, work, wire } = await openClientStage();
    const { processors } = jobWith(deaf);
    wire.answer = ({ path }) =>
      path === "/workers/heartbeat"
        ? Response.json({ state: "quiet", jobs: [], server_time: "2030-01-01T00:00:00Z" })
        : undefined;
    const worker = work(processors);
    await advance("6s");
    expect(worker.status().reason).toBe("the server asked it to stop fetching");
    wire.answer = ({ path }) =>
      path === "/workers/heartbeat"
        ? Response.json({ state: "terminate", jobs: [], server_time: "2030-01-01T00:00:00Z" })
        : undefined;
    await advance("6s");
    expect(worker.status().reason).toBe("closing");
  });
});
