import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Binding, type DatabaseClass, type Handle, PAGES_PER_STEP } from "./binding.ts";
import { builtinSqlite } from "./builtin-sqlite.ts";
import type { DatabaseHandle, StatementHandle } from "./session.ts";

type Value = null | number | bigint | string | Uint8Array;

/** A statement of `node:sqlite` with the calls of one of better-sqlite3. */
class NodeStatement implements StatementHandle {
  readonly reader: boolean;
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
    this.reader = statement.columns().length > 0;
  }

  raw(isRaw = true): this {
    this.#statement.setReturnArrays(isRaw);
    return this;
  }

  safeIntegers(isSafe = true): this {
    this.#statement.setReadBigInts(isSafe);
    return this;
  }

  run(values: readonly unknown[]) {
    const { changes, lastInsertRowid } = this.#statement.run(...(values as Value[]));
    return { changes: Number(changes), lastInsertRowid };
  }

  get(values: readonly unknown[]): unknown {
    return this.#statement.get(...(values as Value[]));
  }

  all(values: readonly unknown[]): unknown[] {
    return this.#statement.all(...(values as Value[]));
  }

  iterate(values: readonly unknown[]): IterableIterator<unknown> {
    return this.#statement.iterate(...(values as Value[]));
  }
}

/** A connection of `node:sqlite`, also one of the caller's. */
export class NodeHandle implements DatabaseHandle {
  protected readonly database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.database = database;
  }

  get inTransaction(): boolean {
    return this.database.isTransaction;
  }

  prepare(text: string): StatementHandle {
    return new NodeStatement(this.database.prepare(text));
  }
}

class OpenedHandle extends NodeHandle implements Handle {
  exec(script: string): void {
    this.database.exec(script);
  }

  async copyTo(path: string): Promise<void> {
    await builtinSqlite()?.backup(this.database, path, { rate: PAGES_PER_STEP });
  }

  close(): void {
    this.database.close();
  }
}

/** The SQLite of Node itself, by its class. */
export function nodeSqlite(Database: DatabaseClass): Binding {
  return {
    name: "node:sqlite",
    isShared: true,
    Database,
    open: (path) => new OpenedHandle(new Database(path, { timeout: 0 }) as unknown as DatabaseSync),
  };
}
