import { describe, expect, it } from "vitest";
import type { Processor } from "../../src/index.ts";
import type { SandboxCall, SandboxRefusal } from "../../src/ports/sandbox.ts";
import { deaf, jobOf } from "../engine/stage.ts";
import { openClientStage } from "./client-stage.ts";

/** Sandboxes of a remote worker on virtual time; test/e2e/remote-worker.test.ts has real ones. */

/** A sandbox whose child does what the test says. */
function fakeSandbox(definition: ReturnType<typeof jobOf>) {
  const calls: SandboxCall[] = [];
  const state = { refusal: null as SandboxRefusal | null, kills: 0 };
  const processor: Processor = {
    definition,
    handler: () => {
      throw new Error("the handler runs in its sandbox");
    },
    sandbox: () => ({
      admits: () => true,
      dismiss() {},
      run(call) {
        calls.push(call);
        return {
          result: deaf(),
          abort() {},
          deadline() {},
          condemn: async () => {},
          where: () => "at spin (work.ts:1:1)",
          kill: async () => {
            state.kills += 1;
            return { isGone: true, where: "at spin (work.ts:1:1)" };
          },
        };
      },
      status: () => ({ size: 1, busy: 0, loading: 0, waiting: 0 }),
      refusal: () => state.refusal,
      close: async () => {},
    }),
  };
  return { processor, calls, state };
}

describe("a sandbox of a remote worker (3.6, 8.1, 8.5)", () => {
  it("stalls when its event loop falls silent, though the worker's own beats", async () => {
    const { client, work, advance, load, told } = await openClientStage();
    const definition = jobOf({ retry: { attempts: 1 } });
    const { processor, calls, state } = fakeSandbox(definition);
    work([processor]);
    const job = await client.enqueue(definition);
    for (let second = 0; second < 30; second++) {
      await advance("1s");
      calls[0]?.alive();
    }
    await advance("59s");
    expect((await load(job)).state).toBe("active");
    await advance("2s");
    expect((await load(job)).errors).toMatchObject([{ type: "stalled", stack: "at spin (work.ts:1:1)" }]);
    expect([state.kills, told.map(({ name }) => name)]).toEqual([1, ["job.killed"]]);
  });

  it("is killed at the hard deadline, and the error says where it hung", async () => {
    const { client, work, advance, load, told } = await openClientStage();
    const definition = jobOf({ retry: { attempts: 1 }, timeouts: { attempt: "2s", grace: "1s" } });
    const { processor, state, calls } = fakeSandbox(definition);
    const worker = work([processor]);
    const job = await client.enqueue(definition, { page: 1 });
    await advance("100ms");
    expect(calls[0]?.job).toMatchObject({ id: job.id, payload: '{"page":1}', attempt: 1 });
    expect(calls[0]?.job.remaining).toBeGreaterThan(1_900);
    await advance("3s");
    expect((await load(job)).errors).toMatchObject([
      { type: "timeout", forced: true, stack: "at spin (work.ts:1:1)" },
    ]);
    expect([state.kills, worker.status().stuck]).toEqual([1, 0]);
    expect(told).toMatchObject([{ name: "job.killed", where: "at spin (work.ts:1:1)" }]);
  });

  it("whose module cannot be loaded gives its jobs back, unspent and for later", async () => {
    const { client, work, advance, load } = await openClientStage();
    const definition = jobOf();
    const { processor, state, calls } = fakeSandbox(definition);
    state.refusal = { reason: "no such module", delay: 10_000 };
    const worker = work([processor]);
    const job = await client.enqueue(definition);
    await advance("100ms");
    const row = await load(job);
    expect([row.state, row.attempt, row.errors, calls.length]).toEqual(["scheduled", 0, null, 0]);
    expect(worker.status().reason).toBe("sandbox of test.job: no such module");
    state.refusal = null;
    await advance("11s");
    expect(calls.length).toBe(1);
  });
});
