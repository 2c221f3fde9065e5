import { ifMissing } from "../../core/load-package.ts";
import { betterSqlite3 } from "./better-sqlite3.ts";
import type { Binding, DatabaseClass } from "./binding.ts";
import { builtinSqlite } from "./builtin-sqlite.ts";
import { nodeSqlite } from "./node-sqlite.ts";

/** The copy of SQLite for files that are named by their path: Node's own, or better-sqlite3 if this Node has none. */
export async function defaultBinding(): Promise<Binding> {
  const builtin = builtinSqlite();
  if (builtin) return nodeSqlite(builtin.DatabaseSync as unknown as DatabaseClass);
  return installedBetterSqlite3();
}

/** The better-sqlite3 that curfew itself finds. */
export async function installedBetterSqlite3(): Promise<Binding> {
  const user = `The SQLite store on Node ${process.versions.node}, which has no complete node:sqlite,`;
  const { default: Database } = await import("better-sqlite3").catch(ifMissing("better-sqlite3", user));
  return betterSqlite3(Database as unknown as DatabaseClass, true);
}
