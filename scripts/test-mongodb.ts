/**
 * `npm run test:mongodb`: the whole timeout kit and 8 concurrent claimers against the server of `CURFEW_MONGODB_URL`, or
 * against DocumentDB on PostgreSQL 18 in a folder of Debian forky, behind a shim that speaks the wire protocol. Without
 * either it says so and tests nothing.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { startDocumentDb } from "../test/mongodb/documentdb.ts";
import { startShim } from "../test/mongodb/documentdb-shim.ts";

async function test(url: string): Promise<number> {
  const options = ["vitest", "run", "--project", "stores", "test/stores/mongodb.test.ts"];
  const env = { ...process.env, CURFEW_MONGODB_URL: url };
  const [code] = (await once(spawn("npx", options, { stdio: "inherit", env }), "exit")) as [number | null];
  return code ?? 1;
}

const given = process.env.CURFEW_MONGODB_URL;
if (given !== undefined) process.exitCode = await test(given);
else {
  const database = await startDocumentDb();
  if (typeof database === "string")
    console.error(
      `SKIPPED: DocumentDB could not be started (${database}); set CURFEW_MONGODB_URL to test a server of yours`,
    );
  else {
    await using _database = database;
    await using shim = await startShim(database.connectionString, "isdbgrid");
    console.log("DocumentDB on PostgreSQL 18, behind the shim; this is not MongoDB");
    process.exitCode = await test(`mongodb://127.0.0.1:${shim.port}/curfew?directConnection=true`);
  }
}
