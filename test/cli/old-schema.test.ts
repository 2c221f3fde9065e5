import { readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { MIGRATIONS as POSTGRES_MIGRATIONS } from "../../src/stores/postgres/migrations.ts";
import { bindSchema } from "../../src/stores/postgres/session.ts";
import { checksumOf } from "../../src/stores/sql/migrator.ts";
import { MIGRATIONS as SQLITE_MIGRATIONS } from "../../src/stores/sqlite/migrations.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { fileFolder } from "../support/folders.ts";
import { curfew } from "./stage.ts";

const OLD = 6;
const COMMANDS = [
  ["ls"],
  ["show", "x"],
  ["why", "x"],
  ["stats"],
  ["queues"],
  ["top", "--once"],
  ["export"],
  ["enqueue", "greet"],
];

const folder = fileFolder();
let database: TestPostgres;
beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
});

/** A file as an older curfew left it. */
function oldFile(name: string): string {
  const path = join(folder, name);
  const file = new Database(path);
  file.exec(
    "create table curfew_migrations (version integer primary key, name text not null, checksum text not null, applied_at integer not null)",
  );
  for (const migration of SQLITE_MIGRATIONS.slice(0, OLD)) {
    file.exec(migration.sql);
    file
      .prepare("insert into curfew_migrations values (?, ?, ?, 0)")
      .run(migration.version, migration.name, checksumOf(migration));
  }
  file.close();
  return path;
}

async function queryPostgres(text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function makeOldSchema(): Promise<void> {
  const bind = bindSchema("curfew");
  const rows = POSTGRES_MIGRATIONS.slice(0, OLD).map(
    (migration) => `(${migration.version}, 'old', '${checksumOf(migration)}', now())`,
  );
  await queryPostgres(
    [
      "create schema curfew",
      "create table curfew.migrations (version int primary key, name text not null, checksum text not null, applied_at timestamptz not null)",
      ...POSTGRES_MIGRATIONS.slice(0, OLD).map(({ sql }) => bind(sql).trim().replace(/;$/, "")),
      `insert into curfew.migrations values ${rows.join(", ")}`,
    ].join(";\n"),
  );
}

const SAYS = /has schema version 6, and this curfew needs version \d+; update it with curfew migrate/;

describe("a command on a store with an old schema", () => {
  it.each(COMMANDS.map((words) => [words.join(" "), words] as const))(
    "%s leaves a SQLite file as it is, and names the command that migrates",
    async (_title, words) => {
      const path = oldFile(`${words[0]}.db`);
      const before = readFileSync(path);
      const ended = await curfew([...words, "--store", `sqlite:${path}`]);
      expect(ended).toMatchObject({ code: 3, stdout: "" });
      expect(ended.stderr).toMatch(SAYS);
      expect(readFileSync(path).equals(before)).toBe(true);
    },
  );

  it("leaves a file of another program as it is", async () => {
    const path = join(folder, "other.db");
    const file = new Database(path);
    file.exec("create table songs (title text)");
    file.close();
    const before = readFileSync(path);
    const { code, stderr } = await curfew(["ls", "--store", `sqlite:${path}`]);
    expect(code).toBe(3);
    expect(stderr).toMatch(/has no tables of curfew; check the address, or make them with curfew migrate/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("works again after curfew migrate", async () => {
    const path = oldFile("migrated.db");
    expect((await curfew(["migrate", "--store", `sqlite:${path}`])).code).toBe(0);
    expect((await curfew(["ls", "--store", `sqlite:${path}`])).code).toBe(0);
  });

  it("leaves a PostgreSQL database as it is, without tables and with old ones", async () => {
    const none = await curfew(["ls", "--store", database.url]);
    expect(none).toMatchObject({ code: 3, stdout: "" });
    expect(none.stderr).toMatch(/has no tables of curfew/);
    const schemas =
      "select count(*)::int as count from information_schema.schemata where schema_name = 'curfew'";
    expect(await queryPostgres(schemas)).toEqual([{ count: 0 }]);
    await makeOldSchema();
    for (const words of [["ls"], ["why", "x"], ["stats"]]) {
      const ended = await curfew([...words, "--store", database.url]);
      expect(ended).toMatchObject({ code: 3, stdout: "" });
      expect(ended.stderr).toMatch(SAYS);
    }
    const newest = "select max(version)::int as version from curfew.migrations";
    expect(await queryPostgres(newest)).toEqual([{ version: OLD }]);
  });

  it("doctor reports the version, changes nothing, and ends with 1", async () => {
    const path = oldFile("doctor.db");
    const before = readFileSync(path);
    const { code, stdout } = await curfew(["doctor", "--json", "--store", `sqlite:${path}`]);
    expect(code).toBe(1);
    const { findings } = JSON.parse(stdout) as { findings: { code: string; sentence: string }[] };
    const found = findings.find((finding) => finding.code === "schema_version");
    expect(found?.sentence).toMatch(/The schema has version 6; this curfew knows version \d+/);
    expect(findings.map((finding) => finding.code)).not.toContain("store_unreachable");
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});
