import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, inject } from "vitest";
import { createDatabase } from "../../postgres.ts";

/** Makes new stores for the tests of a file; they are removed after its last test. */
export function storeAddresses(name: string): {
  sqliteAddress(): Promise<string>;
  postgresAddress(): Promise<string>;
} {
  const folders: string[] = [];
  const databases: AsyncDisposable[] = [];
  afterAll(async () => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
    for (const database of databases) await database[Symbol.asyncDispose]();
  });
  return {
    async sqliteAddress() {
      const folder = await mkdtemp(join(tmpdir(), `curfew-${name}-`));
      folders.push(folder);
      return `sqlite:${join(folder, `${name}.db`)}`;
    },
    async postgresAddress() {
      const database = await createDatabase(inject("postgresUrl"));
      databases.push(database);
      return database.url;
    },
  };
}
