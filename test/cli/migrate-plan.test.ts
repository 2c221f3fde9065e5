import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { createDatabase } from "../postgres.ts";
import { fileFolder } from "../support/folders.ts";
import { type Answer, answer, curfew } from "./stage.ts";

const folder = fileFolder();

type Plan = Answer & {
  pending: { version: number; name: string; sql: string }[];
  current: number;
  newest: number;
};

const planOf = async (...flags: string[]) => (await answer(["migrate", "--plan", ...flags])) as Plan;

describe("migrate --plan", () => {
  it("prints the SQL for a new SQLite file and does not create it", async () => {
    const path = join(folder, "new.db");
    const { code, stdout, stderr } = await curfew(["migrate", "--plan", "--store", `sqlite:${path}`]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^-- Migration 1: .*\n/);
    expect(stdout).toContain("create table curfew_jobs");
    expect(stderr).toContain("Nothing was changed");
    expect(existsSync(path)).toBe(false);
  });

  it("prints only what is missing, which brings a SQLite file up to date", async () => {
    const path = join(folder, "old.db");
    const { pending } = await planOf("--store", `sqlite:${path}`);
    await curfew(["migrate", "--store", `sqlite:${path}`]);
    expect(await planOf("--store", `sqlite:${path}`)).toMatchObject({ pending: [], current: pending.length });
    const database = new DatabaseSync(path);
    database.prepare("delete from curfew_migrations where version = ?").run(pending.length);
    database.close();
    const before = readFileSync(path);
    const plan = await planOf("--store", `sqlite:${path}`);
    expect(plan).toMatchObject({ current: pending.length - 1, newest: pending.length });
    expect(plan.pending).toEqual(pending.slice(-1));
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("prints SQL that PostgreSQL takes, with the schema that was named, and creates nothing", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    const { pending } = await planOf("--store", database.url, "--schema", "other");
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      const schemas =
        "select count(*)::int as count from information_schema.schemata where schema_name = 'other'";
      expect((await client.query(schemas)).rows).toEqual([{ count: 0 }]);
      await client.query("create schema other");
      for (const { sql } of pending) {
        expect(sql).not.toMatch(/\bcurfew\./);
        await client.query(sql);
      }
    } finally {
      await client.end();
    }
    await curfew(["migrate", "--store", database.url]);
    expect((await planOf("--store", database.url)).pending).toEqual([]);
  });

  it.each([
    ["memory:", 2, /has no tables/],
    ["postgres://127.0.0.1:9/x", 3, /cannot be opened: .*ECONNREFUSED/],
    ["mysql://h/x", 2, /write "memory:"/],
  ])("refuses %s", async (store, code, says) => {
    const ended = await curfew(["migrate", "--plan", "--store", store]);
    expect(ended.stderr).toMatch(says);
    expect(ended).toMatchObject({ code, stdout: "" });
  });

  it("refuses a file that is no database, and a folder that is not there", async () => {
    const path = join(folder, "text.db");
    writeFileSync(path, "hello ".repeat(200));
    expect((await curfew(["migrate", "--plan", "--store", `sqlite:${path}`])).code).toBe(3);
    const nowhere = await curfew(["migrate", "--plan", "--store", `sqlite:${join(folder, "no", "x.db")}`]);
    expect(nowhere).toMatchObject({ code: 3, stdout: "" });
  });
});
