import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { compareStores } from "../../src/testing/compare-stores.ts";
import { registerSections } from "../../src/testing/conformance/kit.ts";
import { CONFORMANCE } from "../../src/testing/conformance/store-conformance.ts";
import { NODE_SQLITE, SQLITE_DRIVERS } from "../support/sqlite-drivers.ts";
import { productionSystem } from "../support/system.ts";

/** A sample for each driver that is new on each run; `npm run test:long` compares 300. */
const SEEDS = Number(process.env.CURFEW_HISTORIES ?? 6);
const STEPS = 200;

let folder: string;
let opened = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-sqlite-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

function freshPath(): string {
  opened += 1;
  return join(folder, `${opened}.db`);
}

/** Large tables are filled with one driver: the plans of the statements are the same with the other. */
const WITHOUT_LARGE_TABLES = CONFORMANCE.map(({ name, cases }) => ({
  name,
  cases: cases.filter((each) => !/200000/.test(each.name)),
})).filter(({ cases }) => cases.length > 0);

for (const { name, binding } of SQLITE_DRIVERS) {
  const sections = binding === NODE_SQLITE.binding ? CONFORMANCE : WITHOUT_LARGE_TABLES;
  describe(`sqlite on ${name}`, () =>
    registerSections(sections, {
      runner: { describe, it },
      print: console.log,
      async open() {
        const path = freshPath();
        const open = () => openSqliteStore({ path, system: productionSystem, binding });
        return { store: await open(), another: open, reopen: open };
      },
    }));
}

describe.each(SQLITE_DRIVERS)("the sqlite store on $name beside the memory store", ({ binding }) => {
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
