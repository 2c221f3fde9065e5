import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { registerSections } from "../../src/testing/conformance/kit.ts";
import { CONFORMANCE } from "../../src/testing/conformance/store-conformance.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

type Part = "races" | "growth and timeouts" | "all others";

/** Which sections are in which file. Each file takes about a third of the time, and they run side by side. */
const PARTS: readonly (readonly [Part, RegExp])[] = [
  ["races", /^(?:concurrency|crash points|countdowns and limits|keyed units|limits|fair queues)$/],
  ["growth and timeouts", /^(?:growth|timeouts.*)$/],
  ["all others", /./],
];

/** Registers one part of the conformance kit for PostgreSQL. A section is in the first part whose pattern fits its name. */
export function registerPostgresKit(part: Part): void {
  let database: TestPostgres;
  let opened = 0;

  beforeAll(async () => {
    database = await createDatabase(inject("postgresUrl"));
  });

  afterAll(async () => {
    await database[Symbol.asyncDispose]();
  });

  const sections = CONFORMANCE.filter(
    ({ name }) => PARTS.find(([, names]) => names.test(name))?.[0] === part,
  );
  if (sections.length === 0) throw new Error(`no section of the kit is in the part "${part}"`);
  describe("postgres store", () =>
    registerSections(sections, {
      runner: { describe, it },
      print: console.log,
      async open() {
        opened += 1;
        const schema = `case_${opened}`;
        const open = () => openPostgresStore({ connection: database.url, schema, system: realSystem });
        return { store: await open(), another: open, reopen: open };
      },
    }));
}
