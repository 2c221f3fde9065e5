import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { fileFolder } from "../support/folders.ts";
import { productionSystem } from "../support/system.ts";

const folder = fileFolder();
let database: TestPostgres;
beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const STORES: Record<string, () => Promise<Store>> = {
  memory: async () => createMemoryStore({ clock: () => realSystem.wall() }),
  sqlite: () => openSqliteStore({ path: join(folder, "jobs.db"), system: productionSystem }),
  postgres: () => openPostgresStore({ connection: database.url, system: realSystem }),
};

async function openOn(name: string): Promise<Engine> {
  const store = await (STORES[name] as () => Promise<Store>)();
  const engine = await Engine.open({ store, system: realSystem, logger: silentLogger });
  onTestFinished(() => engine.close());
  return engine;
}

let next = 0;
/** A job that waits, or a dead letter. */
function line(isDead = false) {
  const now = new Date().toISOString();
  next += 1;
  return {
    kind: "job",
    id: `00000000-0000-7000-8000-${String(next).padStart(12, "0")}`,
    type: "mail",
    queue: "mail",
    priority: 0,
    createdAt: now,
    dueAt: now,
    payload: "{}",
    ...(isDead ? { state: "discarded", finishedAt: now, deadLetter: true } : { state: "available" }),
  };
}

const statuses = (results: readonly { readonly status: string }[]) => results.map(({ status }) => status);

describe.each(Object.keys(STORES))("an import that remembers, on %s", (name) => {
  it("answers `exists` for a job that ended and was deleted, until it is forgotten", async () => {
    const engine = await openOn(name);
    const [job, dead] = [line(), line(true)];
    const options = { remember: "test" };
    expect(statuses(await engine.importJobs([job, dead], options))).toEqual(["created", "created"]);
    expect((await engine.load(job.id))?.state).toBe("available");
    expect((await engine.load(dead.id))?.state).toBe("discarded");
    await engine.cancel(job.id);
    await engine.bulk.delete({ state: "cancelled" });
    expect(await engine.load(job.id)).toBeNull();
    expect(statuses(await engine.importJobs([job, dead], options))).toEqual(["exists", "exists"]);
    await engine.importJobs([], { ...options, forget: [job.id, dead.id] });
    expect(await engine.store.records.list("imported", null, 10)).toEqual([]);
  });
});

describe("an import in the caller's transaction", () => {
  it("exists if and only if the transaction commits, dead letters included", async () => {
    const engine = await openOn("postgres");
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const lines = [line(), line(true)];
    for (const end of ["rollback", "commit"]) {
      await client.query("begin");
      const results = await engine.importJobs(lines, { tx: client, by: { actor: "mia" } });
      expect(statuses(results)).toEqual(["created", "created"]);
      await client.query(end);
      const states = await Promise.all(lines.map(async ({ id }) => (await engine.load(id))?.state));
      expect(states).toEqual(end === "commit" ? ["available", "discarded"] : [undefined, undefined]);
    }
  });
});
