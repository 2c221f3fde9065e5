/**
 * An open transaction of the caller, on the database of the store. What is written in it exists if and only if it
 * commits. The types name what each library has only in a transaction, so that a pool does not compile.
 */
export type Transaction =
  | PgClient
  | PostgresJsTransaction
  | DrizzleTransaction
  | PrismaTransaction
  | KnexTransaction
  | KyselyTransaction
  | TypeOrmTransaction
  | MikroOrmTransaction
  | SqliteHandle
  | DrizzleOnSqlite
  | TransactionClient;

/** A transaction of any other library on PostgreSQL. */
export interface TransactionClient {
  /** Runs one statement with parameters `$1`, `$2` … in the transaction, and gives its rows with their columns by name. */
  rows(text: string, values: readonly (string | null)[]): Promise<readonly object[]>;
}

/** A client of `pg`, or of a pool of it. */
interface PgClient {
  query(text: string, values: unknown[]): unknown;
  escapeLiteral(text: string): string;
}

/** `sql` in `sql.begin((sql) => …)` or `sql.savepoint(…)`, or a reserved connection. */
type PostgresJsTransaction = { unsafe(text: string): unknown } & (
  | { savepoint(work: never): unknown }
  | { release(): void }
);

/** `tx` in `db.transaction(async (tx) => …)`. */
interface DrizzleTransaction {
  execute(query: string): unknown;
  rollback(): never;
}

/** `tx` in `prisma.$transaction(async (tx) => …)`. */
interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): unknown;
  readonly $connect?: never;
}

/** `trx` in `knex.transaction(async (trx) => …)`. */
interface KnexTransaction {
  isCompleted(): boolean;
  readonly executionPromise: Promise<unknown>;
}

/** `trx` in `db.transaction().execute(async (trx) => …)`, on PostgreSQL or SQLite. */
interface KyselyTransaction {
  readonly isTransaction: true;
  withoutPlugins(): { executeQuery(query: never): Promise<unknown> };
}

/** `manager` in `dataSource.transaction(async (manager) => …)`, or a query runner. */
type TypeOrmTransaction =
  | { readonly queryRunner?: object; withRepository(repository: never): unknown }
  | { readonly isTransactionActive: boolean; connect(): Promise<unknown> };

/** `em` in `em.transactional(async (em) => …)`, or between `em.begin()` and `em.commit()`. */
interface MikroOrmTransaction {
  getTransactionContext(): unknown;
  isInTransaction(): boolean;
}

/** A database of better-sqlite3 or `node:sqlite`. */
type SqliteHandle = { prepare(text: string): unknown } & (
  | { readonly inTransaction: boolean }
  | { readonly isTransaction: boolean }
);

/** A Drizzle database on better-sqlite3, between `begin` and `commit`. */
interface DrizzleOnSqlite {
  readonly $client: SqliteHandle;
}
