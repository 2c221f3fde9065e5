import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { refuse } from "../../core/errors.ts";
import { betterSqlite3 } from "./better-sqlite3.ts";
import type { Binding, DatabaseClass, SqliteFile } from "./binding.ts";
import { installedBetterSqlite3 } from "./find-binding.ts";
import { NodeHandle, nodeSqlite } from "./node-sqlite.ts";
import { type DatabaseHandle, Session } from "./session.ts";
import { isBusy } from "./sqlite-errors.ts";
import { DATABASE_FILE } from "./statements.ts";

/** A connection that you opened, with better-sqlite3 or with `node:sqlite` (of Node 22.16 or later). */
export type SqliteDatabase =
  | { readonly inTransaction: boolean; readonly open: boolean; prepare(text: string): unknown }
  | { readonly isTransaction: boolean; readonly isOpen: boolean; prepare(text: string): unknown };

/** The file of a caller's connection, to be used with the same copy of SQLite. */
export async function fileOfDatabase(database: unknown): Promise<SqliteFile> {
  const field = "database";
  if (!isDatabase(database)) {
    throw refuse(
      "invalid_option",
      field,
      typeof database,
      "pass a database of better-sqlite3 or node:sqlite",
    );
  }
  const handle = asHandle(database);
  if (!handle) throw refuse("invalid_option", field, "a closed database", "open it first");
  const path = new Session(handle).get(DATABASE_FILE)?.[0] as string;
  if (!path) throw refuse("invalid_option", field, "a database in memory", "open one in a file");
  return { path, binding: await bindingOf(database) };
}

async function bindingOf(database: object): Promise<Binding> {
  const Database = database.constructor as DatabaseClass;
  if (isNodeDatabase(database)) return nodeSqlite(Database);
  const found = await installedBetterSqlite3().catch(() => undefined);
  return found && isSameCopy(found, database) ? found : betterSqlite3(Database, false);
}

/** A caller's connection as the store uses it. Undefined for anything else, and for a closed one. */
export function asHandle(value: unknown): DatabaseHandle | undefined {
  if (!isDatabase(value)) return undefined;
  if (isNodeDatabase(value)) return value.isOpen ? new NodeHandle(value) : undefined;
  return "open" in value && value.open ? (value as DatabaseHandle) : undefined;
}

/** Whether a connection is of this copy of SQLite. Tried, if its class does not tell: a class may be derived. */
export function isSameCopy(binding: Binding, database: object): boolean {
  const Database = database.constructor as DatabaseClass;
  if (Database === binding.Database) return true;
  const folder = mkdtempSync(join(tmpdir(), "curfew-locks-"));
  const path = join(folder, "locks.db");
  const ours = binding.open(path);
  let theirs: InstanceType<DatabaseClass> | undefined;
  try {
    ours.exec("begin exclusive");
    theirs = new Database(path, { timeout: 0 });
    theirs.exec("begin exclusive");
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    theirs?.close();
    ours.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A closed one of `node:sqlite` throws when it is asked for its transaction. */
function isDatabase(value: unknown): value is SqliteDatabase {
  if (typeof value !== "object" || value === null) return false;
  const { prepare, open, isOpen } = value as Record<string, unknown>;
  return typeof prepare === "function" && (typeof open === "boolean" || typeof isOpen === "boolean");
}

function isNodeDatabase(value: object): value is DatabaseSync {
  return "isOpen" in value;
}
