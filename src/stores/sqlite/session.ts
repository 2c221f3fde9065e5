import type { SqlRow } from "../sql/row-codec.ts";
import { KnownRows } from "./known-rows.ts";

/** The part of a better-sqlite3 handle that the store uses. A caller's handle comes in as `tx`. */
export interface DatabaseHandle {
  readonly inTransaction: boolean;
  prepare(text: string): StatementHandle;
}

export interface StatementHandle {
  readonly reader: boolean;
  raw(isRaw?: boolean): StatementHandle;
  safeIntegers(isSafe?: boolean): StatementHandle;
  run(values: Values): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(values: Values): unknown;
  all(values: Values): unknown[];
  iterate(values: Values): IterableIterator<unknown>;
}

/** The parameters of a statement, by position. */
type Values = readonly unknown[];

const NONE: Values = [];

const BOUND_LIMIT = /\b(limit|offset) \?/g;

/**
 * SQLite plans a statement again for each new value of a limit that is a bare parameter, which costs more than most
 * statements do. It does not for an expression.
 */
function plannedOnce(text: string): string {
  return text.replace(BOUND_LIMIT, "$1 (? + 0)");
}

/** One handle with its statements, each prepared at its first use. All calls are synchronous. */
export class Session {
  readonly #handle: DatabaseHandle;
  readonly #statements = new Map<string, StatementHandle>();
  /** Where jobs were when this session claimed them. */
  readonly rows = new KnownRows();

  constructor(handle: DatabaseHandle) {
    this.#handle = handle;
  }

  get inTransaction(): boolean {
    return this.#handle.inTransaction;
  }

  /** Returns how many rows were written. */
  run(text: string, values: Values = NONE): number {
    return this.#statement(text).run(values).changes;
  }

  /** Returns the number of the row that was added. */
  add(text: string, values: Values): number {
    return Number(this.#statement(text).run(values).lastInsertRowid);
  }

  get(text: string, values: Values = NONE): SqlRow | undefined {
    return this.#statement(text).get(values) as SqlRow | undefined;
  }

  all(text: string, values: Values = NONE): SqlRow[] {
    return this.#statement(text).all(values) as SqlRow[];
  }

  /** Row by row, for callers that may stop before the end. Nothing else runs meanwhile. */
  iterate(text: string, values: Values): IterableIterator<SqlRow> {
    return this.#statement(text).iterate(values) as IterableIterator<SqlRow>;
  }

  #statement(text: string): StatementHandle {
    let statement = this.#statements.get(text);
    if (!statement) {
      // A caller's handle may return big integers. All numbers of the store fit into doubles.
      statement = this.#handle.prepare(plannedOnce(text)).safeIntegers(false);
      if (statement.reader) statement.raw(true);
      this.#statements.set(text, statement);
    }
    return statement;
  }
}
