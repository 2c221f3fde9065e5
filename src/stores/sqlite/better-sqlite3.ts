import { type Binding, type DatabaseClass, type Handle, PAGES_PER_STEP } from "./binding.ts";
import type { DatabaseHandle, StatementHandle } from "./session.ts";

/** The part of a connection of better-sqlite3 that the store uses. */
interface BetterDatabase extends DatabaseHandle {
  exec(script: string): unknown;
  backup(path: string, options: { readonly progress: () => number }): Promise<unknown>;
  close(): unknown;
}

class BetterHandle implements Handle {
  readonly #database: BetterDatabase;

  constructor(database: BetterDatabase) {
    this.#database = database;
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction;
  }

  prepare(text: string): StatementHandle {
    return this.#database.prepare(text);
  }

  exec(script: string): void {
    this.#database.exec(script);
  }

  async copyTo(path: string): Promise<void> {
    await this.#database.backup(path, { progress: () => PAGES_PER_STEP });
  }

  close(): void {
    this.#database.close();
  }
}

/** A copy of better-sqlite3, by its class. */
export function betterSqlite3(Database: DatabaseClass, isShared: boolean): Binding {
  return {
    name: "better-sqlite3",
    isShared,
    Database,
    open: (path) => new BetterHandle(new Database(path, { timeout: 0 }) as unknown as BetterDatabase),
  };
}
