import Database from "better-sqlite3";
import { type Binding, type Handle, PAGES_PER_STEP } from "./binding.ts";
import type { DatabaseHandle, StatementHandle } from "./session.ts";

type BetterDatabase = Pick<InstanceType<typeof Database>, "exec" | "backup" | "close" | "inTransaction"> &
  DatabaseHandle;

/** A connection of better-sqlite3. */
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

/** The better-sqlite3 that curfew itself finds. */
export const betterSqlite3: Binding = {
  name: "better-sqlite3",
  open(path) {
    return new BetterHandle(new Database(path, { timeout: 0 }) as unknown as BetterDatabase);
  },
};
