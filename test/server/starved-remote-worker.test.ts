import { expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";

const quick = defineJob({ type: "test.quick" });

/** The process stands still during each of these requests, so no answer to them is fresh. */
const STARVED = ["/workers/fetch", "/workers/heartbeat"];

it.each([400, 900, 2_000])(
  "3.1 a remote worker that stands still for %i ms at each fetch and beat still runs jobs",
  async (length) => {
    const { engine, client, wire, system, work, advance } = await openClientStage();
    wire.hold = async ({ path }) => {
      if (STARVED.some((end) => path.endsWith(end))) system.pause(length);
    };
    await client.enqueueMany(quick, Array.from({ length: 50 }));
    let entered = 0;
    work([processor(quick, () => void entered++)], { queues: { default: { concurrency: 5 } } });
    await advance("5m");
    expect(await engine.queues.depth()).toMatchObject({ completed: 50, available: 0, active: 0 });
    expect(entered).toBe(50);
  },
);
