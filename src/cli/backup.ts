import { existsSync, statSync } from "node:fs";
import { realSystem } from "../engine/runtime/real-system.ts";
import { backupSqlite, restoreSqlite } from "../open.ts";
import { CommandFailed } from "./exit.ts";
import { confirm } from "./output/confirm.ts";
import { createOutput } from "./output/output.ts";
import { relativeTime } from "./output/times.ts";
import { refuseBarePath } from "./target/target.ts";

export interface BackupOptions {
  readonly store: string;
  readonly json?: boolean;
}

export interface RestoreOptions extends BackupOptions {
  readonly yes?: boolean;
}

export async function backup(file: string, { store, json }: BackupOptions): Promise<void> {
  const output = createOutput(json === true);
  const path = pathOf(store, "pg_dump backs up PostgreSQL");
  if (existsSync(file)) throw new CommandFailed("usage", `${file} exists already; name another file`);
  const { bytes } = await output.during(`copying ${path}`, () => backupSqlite(path, file));
  output.answer({ store, file, bytes }, () => `${file}: ${sizeText(bytes)}, a copy of ${path}.`);
}

export async function restore(file: string, { store, json, yes }: RestoreOptions): Promise<void> {
  const output = createOutput(json === true);
  const path = pathOf(store, "pg_restore restores PostgreSQL");
  const made = statSync(file, { throwIfNoEntry: false });
  if (!made?.isFile())
    throw new CommandFailed("usage", `${file}: there is no such file; name what curfew backup wrote`);
  if (existsSync(path)) {
    const age = relativeTime(made.mtimeMs, realSystem.wall());
    await confirm(`Replace ${path} by ${file}, made ${age}? What happened since is lost to it.`, { yes });
  }
  const { kept } = await output.during(`restoring ${path}`, () => restoreSqlite(file, path));
  output.answer({ store, file, kept }, () =>
    kept === null ? `${path} is restored.` : `${path} is restored. The old file is kept as ${kept}.`,
  );
}

function pathOf(store: string, other: string): string {
  refuseBarePath(store);
  const path = store.startsWith("sqlite:") ? store.slice("sqlite:".length) : "";
  if (path !== "") return path;
  throw new CommandFailed(
    "usage",
    `--store: only a SQLite file can be copied so, as in sqlite:jobs.db; ${other}`,
  );
}

function sizeText(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
