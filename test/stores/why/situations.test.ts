import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { realSystem } from "../../../src/engine/runtime/real-system.ts";
import type { Store } from "../../../src/ports/store.ts";
import { createMemoryStore } from "../../../src/stores/memory/memory-store.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { createDatabase, type TestPostgres } from "../../postgres.ts";
import { fileFolder } from "../../support/folders.ts";
import { productionSystem } from "../../support/system.ts";
import { BLOCKED } from "./blocked.ts";
import { ENDED } from "./ended.ts";
import { Rig } from "./rig.ts";
import { RUNNING } from "./running.ts";
import type { Situation } from "./situation.ts";
import { WAITING } from "./waiting.ts";

/** Each situation is made with real operations on each store; the first reason must be the true one. */
const SITUATIONS: readonly Situation[] = [...WAITING, ...BLOCKED, ...RUNNING, ...ENDED];

const folder = fileFolder();
let database: TestPostgres;
let opened = 0;

beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

const STORES: Record<string, () => Promise<Store>> = {
  memory: async () => createMemoryStore({ clock: () => 0 }),
  sqlite: () => openSqliteStore({ path: join(folder, `${opened}.db`), system: productionSystem }),
  postgres: () =>
    openPostgresStore({ connection: database.url, schema: `why_${opened}`, system: realSystem }),
};

describe.each(Object.keys(STORES))("why on %s", (name) => {
  it.each(SITUATIONS.map((situation) => [situation.first, situation.name, situation] as const))(
    "%s comes first for %s",
    async (first, _name, situation) => {
      opened += 1;
      const store = await (STORES[name] as () => Promise<Store>)();
      const rig = new Rig(store);
      onTestFinished(async () => {
        await rig.close();
        await store.close();
      });
      const { id } = await situation.make(rig);
      const why = await rig.ask((engine) => engine.why(id));
      const codes = why.reasons.map(({ code }) => code);
      expect(codes[0], String(why)).toBe(first);
      expect(codes).toEqual(expect.arrayContaining([...(situation.also ?? [])]));
      if (situation.alsoSays)
        expect(why.reasons.map(({ sentence }) => sentence)).toContainEqual(
          expect.stringMatching(situation.alsoSays),
        );
      if (situation.says) expect(why.reasons[0]?.sentence).toMatch(situation.says);
      for (const reason of why.reasons) {
        expect(reason.sentence).not.toMatch(/undefined|null|NaN|\[object|\.\./);
        expect(reason.action.text).toMatch(/\.$/);
      }
    },
  );

  it("the table has at least 40 situations", () => {
    expect(new Set(SITUATIONS.map((situation) => situation.name)).size).toBeGreaterThanOrEqual(40);
  });
});
