import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type CounterSnapshot, type EngineEvent, openEngine, silentLogger } from "../../src/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { testFolder } from "../support/folders.ts";
import { blocker, innocent } from "./blocked-loop-jobs.ts";
import { killChild } from "./support/kill-child.ts";

interface Report {
  readonly events: readonly EngineEvent[];
  readonly counters: CounterSnapshot;
}

/** Waits for the first message that has this field. */
async function told<Value>(child: ChildProcess, field: string): Promise<Value> {
  for (;;) {
    const [message] = (await once(child, "message")) as [Record<string, Value>];
    if (message[field] !== undefined) return message as Value;
  }
}

function startWorker(store: string, name: string): ChildProcess {
  const script = new URL("./blocked-loop-worker.ts", import.meta.url);
  const child = fork(script, [store, name], { execArgv: ["--disable-warning=ExperimentalWarning"] });
  onTestFinished(() => killChild(child));
  return child;
}

async function reportOf(child: ChildProcess): Promise<Report> {
  const report = told<Report>(child, "events");
  child.send("report");
  return report;
}

async function closed(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.send("close");
  await exited;
}

const ENDS = ["job.completed", "job.discarded", "job.failed"];

function endsOf({ events }: Report, id: string): string[] {
  return events
    .filter((event) => "id" in event && event.id === id && ENDS.includes(event.name))
    .map(({ name }) => name);
}

describe("3.6 a handler that blocks the event loop of its worker (5.2)", () => {
  it("is named, the innocents beside it are taken over, and no job gets two verdicts", async () => {
    const folder = testFolder();
    const store = `sqlite:${join(folder, "curfew.db")}`;
    await using engine = await openEngine({ store, logger: silentLogger });
    const blocked = startWorker(store, "blocked");
    await told(blocked, "ready");
    const innocents = await engine.enqueueMany(innocent, [5_000, 5_000, 5_000]);
    const guilty = await engine.enqueue(blocker, 18_000);
    await told(blocked, "blocking");
    const healthy = startWorker(store, "healthy");

    const results = await Promise.all(innocents.map((job) => job.result({ within: "1m" })));
    expect(results).toEqual(["healthy", "healthy", "healthy"]);
    expect(await guilty.result({ within: "1m" })).toBe("blocked");

    // Others see a commit before the process that made it has announced it.
    let before = await reportOf(blocked);
    while (before.counters.completed < 1 || before.counters.lost < 3) before = await reportOf(blocked);
    let after = await reportOf(healthy);
    while (after.counters.completed < 3) after = await reportOf(healthy);
    const named = before.events.find((event) => event.name === "worker.blocked");
    expect(named?.name === "worker.blocked" && named.gap).toBeGreaterThan(15_000);
    expect(named?.name === "worker.blocked" && named.jobs.map(({ id }) => id).sort()).toEqual(
      [...innocents, guilty].map(({ id }) => id).sort(),
    );
    for (const { id } of innocents) {
      const row = await rowOf(engine.store, id);
      expect(row).toMatchObject({
        state: "completed",
        attempt: 2,
        errors: [{ type: "stalled", attempt: 1 }],
      });
      expect(endsOf(before, id)).toEqual([]);
      expect(endsOf(after, id).filter((name) => name === "job.completed")).toEqual(["job.completed"]);
    }
    expect(endsOf(before, guilty.id)).toEqual(["job.completed"]);
    expect(endsOf(after, guilty.id)).toEqual([]);
    expect(before.counters).toMatchObject({ completed: 1, lost: 3 });
    expect(after.counters.completed).toBe(3);
    await Promise.all([closed(blocked), closed(healthy)]);
  });

  it("a process whose worker has closed ends by itself", async () => {
    const folder = testFolder();
    const store = `sqlite:${join(folder, "curfew.db")}`;
    const child = startWorker(store, "quiet");
    await told(child, "ready");
    await using engine = await openEngine({ store, logger: silentLogger });
    const job = await engine.enqueue(innocent, 60_000);
    // A claimed job is active too, and would be given back without having been entered.
    while (((await engine.load(job.id))?.startedAt ?? null) === null) {
      // Real time: a child process cannot be stepped, and has no event to wait for here.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await closed(child);
    expect(child.exitCode).toBe(0);
    expect(await rowOf(engine.store, job.id)).toMatchObject({ state: "available", attempt: 0, returns: 1 });
  });
});
