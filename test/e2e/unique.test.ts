import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { defineJob, type Engine, openEngine, silentLogger, type UniqueOptions } from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { storeAddresses } from "./support/addresses.ts";
import { program } from "./support/program.ts";

const CHILD = program(new URL("./unique/child.ts", import.meta.url));
const PROCESSES = 2;
const CALLS = 5_000;

const { sqliteAddress, postgresAddress } = storeAddresses("unique");
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
const STORES = { SQLite: sqliteAddress, PostgreSQL: postgresAddress };
const RULES: Record<string, UniqueOptions> = {
  "while it lives": {},
  "for a period": { period: "1h" },
  "by states": { states: ["available", "active", "retryable", "scheduled"] },
};

interface Told {
  readonly ids: readonly string[];
  readonly created: number;
}

async function told(child: ChildProcess): Promise<unknown> {
  const [message] = await once(child, "message");
  return message;
}

describe("10,000 enqueues of one key at once, from two processes", () => {
  const cases = Object.entries(STORES).flatMap(([store, address]) =>
    Object.entries(RULES).map(([name, rule]) => ({ store, address, name, rule })),
  );

  it.each(cases)("make one job on $store, unique $name", async ({ address, rule }) => {
    const store = await address();
    const engine = await openEngine({ store, logger: silentLogger });
    const started = Array.from({ length: PROCESSES }, () => {
      const child = fork(CHILD, [store, JSON.stringify(rule), String(CALLS)], { execArgv: [] });
      children.push(child);
      return child;
    });
    await Promise.all(started.map(told));
    const answers = started.map(told);
    for (const child of started) child.send("go");
    const reports = (await Promise.all(answers)) as Told[];
    expect(new Set(reports.flatMap(({ ids }) => ids)).size).toBe(1);
    expect(reports.reduce((sum, { created }) => sum + created, 0)).toBe(1);
    expect((await engine.queues.depth()).available).toBe(1);
    await engine.close();
  });

  it.each(Object.entries(STORES))("replace each other on %s: one is left", async (_name, address) => {
    const store = await address();
    const engines = [
      await openEngine({ store, logger: silentLogger }),
      await openEngine({ store, logger: silentLogger }),
    ];
    for (const unique of [{ onConflict: "replace" }, { onConflict: "replace", period: "1h" }] as const) {
      const job = defineJob({ type: `test.replace-${"period" in unique ? "period" : "live"}`, unique });
      const handles = await Promise.all(
        Array.from({ length: 40 }, (_, nth) => engines[nth % 2]?.enqueue(job, 1)),
      );
      expect(new Set(handles.map((handle) => handle?.id)).size).toBe(40);
      const rows = await jobsOf((engines[0] as Engine).store, { type: job.type });
      const states = Object.groupBy(rows, ({ state }) => state);
      expect(states.available).toHaveLength(1);
      expect(states.cancelled).toHaveLength(39);
    }
    for (const engine of engines) await engine.close();
  });
});
