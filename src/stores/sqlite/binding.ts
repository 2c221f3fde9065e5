import type { DatabaseHandle } from "./session.ts";

/**
 * One copy of SQLite in this process. Copies do not see each other's locks, because the system counts locks per
 * process: everything that this process does with a file must go through one copy.
 */
export interface Binding {
  readonly name: "better-sqlite3" | "node:sqlite";
  /** Whether another thread of curfew finds the same copy under this name. */
  readonly isShared: boolean;
  /** The class of its connections. */
  readonly Database: DatabaseClass;
  /** The connection never waits for a lock. A missing file is created. */
  open(path: string): Handle;
}

/** Both libraries have such a class. */
export type DatabaseClass = new (
  path: string,
  options: { readonly timeout: number },
) => { exec(script: string): unknown; close(): unknown };

/** A file, and the copy of SQLite with which this process uses it. */
export interface SqliteFile {
  readonly path: string;
  readonly binding: Binding;
}

/** A connection that the store opened. */
export interface Handle extends DatabaseHandle {
  exec(script: string): void;
  /** Copies what this connection sees into a new file, in steps between which the event loop runs. */
  copyTo(path: string): Promise<void>;
  close(): void;
}

/** Pages that one step of a copy takes: 1 MB, about 2 ms. */
export const PAGES_PER_STEP = 256;
