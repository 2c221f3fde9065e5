import { DatabaseSync } from "node:sqlite";
import Database from "better-sqlite3";
import type { SqliteDatabase } from "../../src/index.ts";
import type { SqlRow } from "../../src/stores/sql/row-codec.ts";
import { betterSqlite3 } from "../../src/stores/sqlite/better-sqlite3.ts";
import type { Binding, DatabaseClass } from "../../src/stores/sqlite/binding.ts";
import { nodeSqlite } from "../../src/stores/sqlite/node-sqlite.ts";
import { asHandle } from "../../src/stores/sqlite/own-database.ts";
import { type DatabaseHandle, Session } from "../../src/stores/sqlite/session.ts";

/** A library that the SQLite store runs on. */
export interface SqliteDriver {
  readonly name: string;
  readonly binding: Binding;
  /** A connection of the user's own. */
  open(path: string): OwnDatabase;
  openWithBigIntegers(path: string): OwnDatabase;
}

type OwnDatabase = SqliteDatabase & { exec(script: string): unknown; close(): unknown };

export const NODE_SQLITE: SqliteDriver = {
  name: "node:sqlite",
  binding: nodeSqlite(DatabaseSync as unknown as DatabaseClass),
  open: (path) => new DatabaseSync(path),
  openWithBigIntegers: (path) => new DatabaseSync(path, { readBigInts: true }),
};

export const BETTER_SQLITE3: SqliteDriver = {
  name: "better-sqlite3",
  binding: betterSqlite3(Database as unknown as DatabaseClass, true),
  open: (path) => new Database(path),
  openWithBigIntegers: (path) => new Database(path).defaultSafeIntegers(true),
};

export const SQLITE_DRIVERS = [NODE_SQLITE, BETTER_SQLITE3];

/** Rows as arrays, from a connection of either library. */
export function rowsOf(database: SqliteDatabase, text: string, values?: readonly unknown[]): SqlRow[] {
  return new Session(asHandle(database) as DatabaseHandle).all(text, values);
}

/** The first column of the first row. */
export function firstValue(database: SqliteDatabase, text: string): unknown {
  return rowsOf(database, text)[0]?.[0];
}
