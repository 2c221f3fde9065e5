import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { storeConformance } from "../../src/testing/conformance/store-conformance.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";

let database: TestPostgres;
let opened = 0;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

storeConformance({
  name: "postgres",
  runner: { describe, it },
  async open() {
    opened += 1;
    const schema = `case_${opened}`;
    const open = () => openPostgresStore({ connection: database.url, schema, system: realSystem });
    return { store: await open(), another: open, reopen: open };
  },
});
