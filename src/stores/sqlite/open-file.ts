import { accessSync, closeSync, constants, openSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { refuse } from "../../core/errors.ts";
import type { System } from "../../ports/system.ts";
import type { Binding, SqliteFile } from "./binding.ts";
import { Connection } from "./connection.ts";
import { resetClockIfAlone } from "./file-clock.ts";
import { defaultBinding } from "./find-binding.ts";
import { migrate } from "./migrate.ts";
import { fileOfDatabase, type SqliteDatabase } from "./own-database.ts";
import { failed } from "./sqlite-errors.ts";

/** A file by its name, or the one that a connection of the caller has open. */
export type FileOptions =
  | {
      /** The file. If it is missing, it is created and only its owner can read it. Its folder must be on a local disk. */
      readonly path: string;
    }
  | {
      /**
       * A connection to the file, which you opened. The store opens another one with the same copy of SQLite, and leaves
       * yours alone.
       */
      readonly database: SqliteDatabase;
    };

/**
 * Opens the file, creates it if it is missing, and applies pending migrations. A `binding` replaces the one that the
 * store would choose for a path.
 */
export async function openFile(options: FileOptions, system: System, binding?: Binding): Promise<Connection> {
  if (system.isVirtual) {
    const fix = 'SQLite waits for a real disk: use the store "memory:", or leave out the system';
    throw refuse("invalid_option", "system", "virtual time", fix);
  }
  const file = await fileGiven(options, binding);
  await resetClockIfAlone(file, system);
  const connection = new Connection(file, system);
  try {
    await connection.whenFree(() => connection.configure());
    await migrate(connection, system);
    connection.undoInMemory();
    await connection.synced();
  } catch (error) {
    await connection.close();
    throw error;
  }
  return connection;
}

async function fileGiven(options: FileOptions, chosen: Binding | undefined): Promise<SqliteFile> {
  if ("database" in options) {
    const { path, binding } = await fileOfDatabase(options.database);
    return { path: realpathSync(path), binding };
  }
  const { path } = options;
  checkPath(path);
  prepareFile(resolve(path));
  // SQLite follows links, and puts the log beside the file itself.
  return { path: realpathSync(path), binding: chosen ?? (await defaultBinding()) };
}

function checkPath(path: unknown): asserts path is string {
  if (typeof path !== "string" || path === "") {
    throw refuse("invalid_option", "path", path, 'name a file, as in "sqlite:curfew.db"');
  }
  if (path.startsWith(":memory:") || path.startsWith("file:")) {
    const fix = path.startsWith("file:")
      ? "write a plain path, not a file: address"
      : 'use the store "memory:", or name a file';
    throw refuse("invalid_option", "path", path, fix);
  }
  if (path.includes("?")) {
    const fix = "leave out the settings: the store chooses those under which no acknowledged write is lost";
    throw refuse("invalid_option", "path", path, fix);
  }
}

/** Finds problems that SQLite would only call "unable to open", and creates a file that only its owner can read. */
function prepareFile(file: string): void {
  const folder = dirname(file);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw failed(file, `cannot be opened: there is no folder ${folder}; create it first`);
  }
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isDirectory()) throw failed(file, "is a folder: name a file in it");
  if (found) {
    checkWritable(file);
    return;
  }
  try {
    // SQLite gives the -wal and -shm files the same permissions.
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    // Another process created the file first. An existing file is never opened here: closing it again would release
    // the locks that other connections of this process hold on it.
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    throw failed(file, `cannot be created: ${(error as Error).message}`, error);
  }
}

function checkWritable(file: string): void {
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    throw failed(file, "cannot be written: give this user the right to write the file and its folder", error);
  }
}
