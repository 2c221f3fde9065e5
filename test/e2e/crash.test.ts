import { describe, expect, it } from "vitest";
import { type CrashReport, crashRun } from "./crash/crash-run.ts";
import { startHurtPostgres } from "./crash/hurt-postgres.ts";
import { storeAddresses } from "./support/addresses.ts";

/** A sample; `npm run test:long` crashes for ten minutes. The seed of a run is printed with its numbers. */
const SECONDS = Number(process.env.CURFEW_CRASH_SECONDS ?? 30);
const SEED = Number(process.env.CURFEW_CRASH_SEED ?? 1);
const LIMIT = (SECONDS + 300) * 1_000;

const { sqliteAddress } = storeAddresses("crash");

function expectWhole(name: string, report: CrashReport): void {
  const { violations, ...numbers } = report;
  console.log(`crash run on ${name}, seed ${SEED}, ${SECONDS} s: ${JSON.stringify(numbers)}`);
  expect(violations).toEqual([]);
  expect(report.completed).toBe(report.acknowledged);
  expect(report.kills).toBeGreaterThan(SECONDS / 2);
  expect(report.stops).toBeGreaterThan(0);
}

describe.concurrent("worker processes that are killed, stopped and cut off", () => {
  it("SQLite: every acknowledged job has exactly one verdict", { timeout: LIMIT }, async () => {
    const store = await sqliteAddress();
    expectWhole("SQLite", await crashRun({ store, seconds: SECONDS, seed: SEED, workers: 3 }));
  });

  it("PostgreSQL, its backends terminated and itself killed: every acknowledged job has exactly one verdict", {
    timeout: LIMIT,
  }, async () => {
    const { server, hurtStore } = await startHurtPostgres();
    await using _stopped = server;
    const report = await crashRun({ store: server.url, seconds: SECONDS, seed: SEED, workers: 3, hurtStore });
    expectWhole("PostgreSQL", report);
    expect(report.storeHurts).toBeGreaterThan(SECONDS / 20);
  });
});
