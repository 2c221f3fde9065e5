/** Jobs of a transaction exist if it commits. */
import { defineJob, unchecked } from "curfew";
import { address, check, openStore } from "./store.mjs";

const mail = defineJob({ type: "mail", payload: unchecked() });
const engine = await openStore();
const { begin, end } = address.startsWith("postgres")
  ? await withPg()
  : await withSqlite(address.slice("sqlite:".length));
for (const way of ["rollback", "commit"]) {
  const tx = await begin();
  await engine.enqueue(mail, { way }, { tx });
  await end(way);
}
const { available } = await engine.queues.depth();
check("jobs", available, 1);
await engine.close();
console.log("ok");
process.exit();

async function withPg() {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  return {
    async begin() {
      await client.query("begin");
      return client;
    },
    end: (way) => client.query(way),
  };
}

async function withSqlite(file) {
  // Both must use one copy of SQLite.
  const isBetter = process.env.SQLITE === "better-sqlite3";
  const database = isBetter
    ? new (await import("better-sqlite3")).default(file)
    : new (await import("node:sqlite")).DatabaseSync(file);
  return {
    begin() {
      database.exec("begin immediate");
      return database;
    },
    end: (way) => database.exec(way),
  };
}
