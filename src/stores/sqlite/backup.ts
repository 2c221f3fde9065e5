import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { refuse } from "../../core/errors.ts";
import type { Store } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import type { SqliteFile } from "./binding.ts";
import { Connection } from "./connection.ts";
import { syncFolder } from "./disk-sync.ts";
import { defaultBinding } from "./find-binding.ts";
import { checkSchema } from "./migrate.ts";
import { failed, isDamage } from "./sqlite-errors.ts";
import { fileOf } from "./sqlite-store.ts";
import { QUICK_CHECK } from "./statements.ts";

export interface BackupResult {
  /** The size of the copy. */
  readonly bytes: number;
}

export interface RestoreResult {
  /** Where the file that was there before is now, or null if there was none. */
  readonly kept: string | null;
}

/**
 * Copies a file as it is at one moment, while engines of any process work on it. The copy is one file, complete or
 * absent: it gets its name after it is on disk.
 */
export async function backup(from: Store | string, to: string, system: System): Promise<BackupResult> {
  const source = await sourceGiven(from);
  const target = resolve(checked(to, "to"));
  if (existsSync(target)) throw refuse("invalid_option", "to", to, "name a file that does not exist yet");
  const part = await copyOf(source, target, system);
  try {
    // A link refuses a name that exists by now, and a rename would replace that file.
    linkSync(part, target);
    syncFolder(dirname(target));
    return { bytes: statSync(target).size };
  } finally {
    rmSync(part, { force: true });
  }
}

/**
 * Puts a copy in the place of a file, which no process may have open. The file that was there is kept under another
 * name. A crash at any moment leaves either the old file or the new one.
 */
export async function restore(from: string, to: string, system: System): Promise<RestoreResult> {
  const source = resolve(checked(from, "from"));
  const target = resolve(checked(to, "to"));
  if (source === target) throw refuse("invalid_option", "to", to, "name another file than the backup");
  const binding = await defaultBinding();
  const part = await copyOf({ path: source, binding }, target, system);
  try {
    await checkSound({ path: part, binding }, source, system);
    const kept = existsSync(target) ? await replace({ path: target, binding }, part, system) : null;
    if (kept === null) {
      refuseOldLog(target);
      linkSync(part, target);
    }
    syncFolder(dirname(target));
    return { kept };
  } finally {
    rmSync(part, { force: true });
  }
}

async function sourceGiven(from: Store | string): Promise<SqliteFile> {
  if (typeof from === "string")
    return { path: resolve(checked(from, "from")), binding: await defaultBinding() };
  const source = fileOf(from);
  if (source) return source;
  const name = from?.capabilities?.name ?? from;
  throw refuse("invalid_option", "from", name, "pass an engine on a SQLite file, or the path of the file");
}

/** A path, or the address of a store. */
function checked(given: unknown, field: string): string {
  const path = typeof given === "string" ? given.replace(/^sqlite:/, "") : given;
  if (typeof path === "string" && path !== "") return path;
  throw refuse("invalid_option", field, given, 'name a file, as in "curfew-backup.db"');
}

/** A synced copy beside the target, so that it can be renamed. Only its owner can read it. */
async function copyOf(source: SqliteFile, target: string, system: System): Promise<string> {
  const { path } = source;
  const folder = dirname(target);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw failed(target, `cannot be created: there is no folder ${folder}; create it first`);
  }
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) {
    throw failed(path, "cannot be copied: there is no such file; check the path");
  }
  const part = join(folder, `.${basename(target)}.${Math.floor(system.random() * 2 ** 48).toString(36)}`);
  const connection = new Connection(source, system);
  try {
    closeSync(openSync(part, "wx", 0o600));
    await checkSchema(connection);
    await connection.copyTo(part);
    syncFile(part);
    return part;
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  } finally {
    await connection.close();
  }
}

function syncFile(path: string): void {
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** A copy of a damaged file is damaged too, and must not replace anything. */
async function checkSound(part: SqliteFile, source: string, system: System): Promise<void> {
  const connection = new Connection(part, system);
  try {
    const found = await connection.read((session) => session.get(QUICK_CHECK)?.[0]);
    if (found !== "ok") throw failed(source, `is damaged and was not restored: ${found}; use another backup`);
  } finally {
    await connection.close();
  }
}

/** Without its own log beside it, SQLite would read a log that is left of another file into the new one. */
function refuseOldLog(target: string): void {
  const log = `${target}-wal`;
  if (!existsSync(log)) return;
  throw failed(
    target,
    `cannot be restored: ${log} is left of another file; move it away if nothing needs it`,
  );
}

/** Returns the name under which the old file is kept. */
async function replace(file: SqliteFile, part: string, system: System): Promise<string> {
  const target = file.path;
  const kept = freeName(target);
  const connection = new Connection(file, system);
  try {
    takeAlone(connection, kept);
    linkSync(target, kept);
    chmodSync(part, statSync(target).mode);
    renameSync(part, target);
    return kept;
  } finally {
    await connection.close();
  }
}

/** Afterwards the old file has no log that SQLite would read into the new one. */
function takeAlone(connection: Connection, kept: string): void {
  try {
    connection.takeAlone();
  } catch (error) {
    if (!isDamage(error)) throw error;
    // SQLite cannot bring the log of a damaged file into it. Both are kept for a rescue.
    const log = `${connection.path}-wal`;
    if (existsSync(log)) renameSync(log, `${kept}-wal`);
    rmSync(`${connection.path}-shm`, { force: true });
  }
}

function freeName(target: string): string {
  const name = `${target}.before-restore`;
  for (let number = 1; ; number++) {
    const tried = number === 1 ? name : `${name}-${number}`;
    if (!existsSync(tried)) return tried;
  }
}
