import { describe, expect, it } from "vitest";
import { type LoadReport, serverCrash } from "./server-crash/load.ts";
import { storeAddresses } from "./support/addresses.ts";

/** More by `CURFEW_SERVER_KILLS`. */
const KILLS = Number(process.env.CURFEW_SERVER_KILLS ?? 3);
const SEED = Number(process.env.CURFEW_CRASH_SEED ?? 1);
const LIMIT = (KILLS * 20 + 300) * 1_000;
const CLIENTS = 16;

const { sqliteAddress, postgresAddress } = storeAddresses("server-crash");

function expectTrue(name: string, report: LoadReport): void {
  const { violations, ...numbers } = report;
  console.log(`server crashes on ${name}, seed ${SEED}: ${JSON.stringify(numbers)}`);
  expect(violations).toEqual([]);
  expect(report.kills).toBe(KILLS);
  expect(report.verdicts).toBeGreaterThanOrEqual(50 * KILLS);
  // A kill in the middle of nothing proves nothing.
  expect(report.unanswered).toBeGreaterThan(0);
}

describe.concurrent("a server that is killed under the load of 16 clients", () => {
  it("SQLite: no acknowledged enqueue is lost, and no job has two verdicts", { timeout: LIMIT }, async () => {
    const store = await sqliteAddress();
    expectTrue("SQLite", await serverCrash({ store, clients: CLIENTS, kills: KILLS, seed: SEED }));
  });

  it("PostgreSQL: no acknowledged enqueue is lost, and no job has two verdicts", {
    timeout: LIMIT,
  }, async () => {
    const store = await postgresAddress();
    expectTrue("PostgreSQL", await serverCrash({ store, clients: CLIENTS, kills: KILLS, seed: SEED }));
  });
});
