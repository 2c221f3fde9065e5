import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { compareStores } from "../../src/testing/compare-stores.ts";
import { registerSections } from "../../src/testing/conformance/kit.ts";
import { CONFORMANCE } from "../../src/testing/conformance/store-conformance.ts";
import { NODE_SQLITE, type SqliteDriver } from "../support/sqlite-drivers.ts";
import { productionSystem } from "../support/system.ts";

/** A sample for each driver that is new on each run; `npm run test:long` compares 300. */
const SEEDS = Number(process.env.CURFEW_HISTORIES ?? 6);
const STEPS = 200;

/** Large tables are filled with one driver: the plans of the statements are the same with the other. */
const WITHOUT_LARGE_TABLES = CONFORMANCE.map(({ name, cases }) => ({
  name,
  cases: cases.filter((each) => !/200000/.test(each.name)),
})).filter(({ cases }) => cases.length > 0);

/** Registers the conformance kit for SQLite on one driver, and random histories beside the memory store. */
export function registerSqliteKit({ name, binding }: SqliteDriver): void {
  let folder: string;
  let opened = 0;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "curfew-sqlite-"));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  const freshPath = () => {
    opened += 1;
    return join(folder, `${opened}.db`);
  };

  describe(`sqlite on ${name}`, () =>
    registerSections(binding === NODE_SQLITE.binding ? CONFORMANCE : WITHOUT_LARGE_TABLES, {
      runner: { describe, it },
      print: console.log,
      async open() {
        const path = freshPath();
        const open = () => openSqliteStore({ path, system: productionSystem, binding });
        return { store: await open(), another: open, reopen: open };
      },
    }));

  describe(`the sqlite store on ${name} beside the memory store`, () => {
    const firstSeed = Number(process.env.CURFEW_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
    it(
      `answers ${SEEDS} random histories alike (CURFEW_TEST_SEED=${firstSeed})`,
      async () => {
        for (let seed = firstSeed; seed < firstSeed + SEEDS; seed++) {
          await compareStores({
            seed,
            steps: STEPS,
            model: async () => createMemoryStore({ clock: () => 0 }),
            subject: () => openSqliteStore({ path: freshPath(), system: productionSystem, binding }),
          });
        }
      },
      60_000 + SEEDS * 10_000,
    );
  });
}
