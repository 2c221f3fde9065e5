import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { openEngine, silentLogger } from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { storeAddresses } from "./support/addresses.ts";
import { program } from "./support/program.ts";

const CHILD = program(new URL("./crons/child.ts", import.meta.url));
const PROCESSES = 3;
const KILLS = 6;

const { sqliteAddress, postgresAddress } = storeAddresses("crons");
const children = new Set<ChildProcess>();

// A test that passes has killed its own; the tests run side by side, so what is left is ended after both.
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

async function start(address: string): Promise<ChildProcess> {
  const child = fork(CHILD, [address], { execArgv: [] });
  children.add(child);
  await once(child, "message");
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  children.delete(child);
  child.kill("SIGKILL");
  await once(child, "exit");
}

describe.concurrent("a cron under three processes that are killed and started again", () => {
  it.each([
    ["SQLite", sqliteAddress],
    ["PostgreSQL", postgresAddress],
  ])("fires once for each second on %s", async (_name, addressOf) => {
    const address = await addressOf();
    const alive = await Promise.all(Array.from({ length: PROCESSES }, () => start(address)));
    for (let nth = 0; nth < KILLS; nth++) {
      // Real time must pass here: the seconds are those of the store's clock, and the kills fall anywhere in them.
      await wait(170 + 310 * (nth % 3));
      const [first] = alive.splice(0, 1);
      await kill(first as ChildProcess);
      alive.push(await start(address));
    }
    await Promise.all(alive.map(kill));
    const engine = await openEngine({ store: address, logger: silentLogger });
    await engine.crons.pause("every second");
    const rows = await jobsOf(engine.store, { type: "test.tick" });
    const seconds = rows.map(({ options }) => Date.parse(String(options?.meta?.scheduledFor)) / 1_000);
    const sorted = seconds.toSorted((a, b) => a - b);
    expect(sorted.length).toBeGreaterThan(3);
    expect(sorted).toEqual(sorted.map((_, index) => (sorted[0] as number) + index));
    for (const [index, row] of rows.entries())
      expect(row.createdAt).toBeGreaterThanOrEqual((seconds[index] as number) * 1_000);
    await engine.close();
  });
});
