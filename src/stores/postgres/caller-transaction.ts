import { type CurfewError, refuse } from "../../core/errors.ts";
import { asTexts, objectClient } from "./foreign-rows.ts";
import type { ClientLike } from "./session.ts";

/** A caller's transaction as the store uses it. */
export interface CallerTransaction {
  readonly client: ClientLike;
  /** The connection; or the transaction, if its library hides the connection. */
  readonly connection: object;
  /** What the library knows for certain. If it is unknown, the server is asked. */
  readonly status: "open" | "failed" | "unknown";
}

type Found = CallerTransaction | undefined;
type Recognise = (value: Parts) => Found | Promise<Found>;
type Parts = { readonly [name: string]: unknown };
type Call = (...values: unknown[]) => unknown;

/**
 * Finds the connection of a transaction by the form of its object, so that no library has to be installed or loaded.
 * A library that shows its `pg` client is used through it: that gives exact types and the state of the transaction.
 */
export async function callerTransaction(tx: unknown): Promise<CallerTransaction> {
  if ((typeof tx === "object" && tx !== null) || typeof tx === "function") {
    for (const recognise of LIBRARIES) {
      const found = await recognise(tx as unknown as Parts);
      if (found) return found;
    }
  }
  throw refused(
    tx,
    "pass the open transaction: a pg client, or the tx of an ORM, as docs/guides/transactions.md shows",
  );
}

const mikroOrm: Recognise = (em) => {
  if (!isCall(em.getTransactionContext) || !isCall(em.isInTransaction)) return undefined;
  const context = em.getTransactionContext();
  if (context) return callerTransaction(context);
  throw refused("an EntityManager without a transaction", "pass the em of em.transactional(async (em) => …)");
};

const typeOrm: Recognise = async (given) => {
  const isManager = isCall(given.withRepository);
  const isRunner = typeof given.isTransactionActive === "boolean" && isCall(given.connect);
  if (!isManager && !isRunner && !isCall(given.createQueryRunner)) return undefined;
  const runner = (isManager ? given.queryRunner : isRunner ? given : undefined) as Parts | undefined;
  if (!runner?.isTransactionActive) {
    const fix = "pass the manager of dataSource.transaction(async (manager) => …)";
    throw refused("a TypeORM manager without a transaction", fix);
  }
  return ofClient(await (runner.connect as Call).call(runner));
};

const knex: Recognise = async (trx) => {
  const client = trx.client as Parts | undefined;
  if (!isCall(trx.raw) || !client || !isCall(client.acquireConnection)) return undefined;
  const fix = "pass the trx of knex.transaction(async (trx) => …)";
  if (trx.isTransaction !== true) throw refused("knex without a transaction", fix);
  if ((trx.isCompleted as () => boolean)()) throw refused("a completed knex transaction", fix);
  return ofClient(await client.acquireConnection());
};

/** Also the context of MikroORM. */
const kysely: Recognise = (trx) => {
  if (!isCall(trx.executeQuery) || !isCall(trx.withoutPlugins)) return undefined;
  if (trx.isTransaction !== true) {
    throw refused("a Kysely database", "pass the trx of db.transaction().execute(async (trx) => …)");
  }
  const plain = trx.withoutPlugins() as { executeQuery(query: object): Promise<unknown> };
  const run = (sql: string, parameters: (string | null)[]) =>
    plain.executeQuery({ sql, parameters, query: rawNode(sql), queryId: { queryId: "curfew" } });
  return { client: objectClient(run), connection: trx, status: "unknown" };
};

/** What Kysely's `CompiledQuery.raw` makes. */
function rawNode(sql: string): object {
  return { kind: "RawNode", sqlFragments: [sql], parameters: [] };
}

/** Prisma itself refuses queries after the end of the transaction. */
const prisma: Recognise = (tx) => {
  if (!isCall(tx.$queryRawUnsafe)) return undefined;
  if (isCall(tx.$connect)) {
    throw refused("a PrismaClient", "pass the tx of prisma.$transaction(async (tx) => …)");
  }
  const query = tx.$queryRawUnsafe.bind(tx) as (...all: unknown[]) => PromiseLike<unknown>;
  const client = objectClient((text, values) => query(text, ...values));
  return { client, connection: tx, status: "open" };
};

const drizzle: Recognise = async (tx) => {
  if (!isCall(tx.execute) || !isCall(tx.transaction) || typeof tx.dialect !== "object") return undefined;
  if (!isCall(tx.rollback)) {
    throw refused("a Drizzle database", "pass the tx of db.transaction(async (tx) => …)");
  }
  const { client } = (tx.session ?? {}) as { readonly client?: Parts };
  const found = client && (postgresJs(client) ?? pgClient(client));
  if (found) return found;
  const execute = tx.execute.bind(tx) as (query: object) => PromiseLike<unknown>;
  return {
    client: objectClient((sql, params) => execute(drizzleQuery(sql, params))),
    connection: tx,
    status: "unknown",
  };
};

/** What Drizzle asks of a query that is text already. */
function drizzleQuery(sql: string, params: (string | null)[]): object {
  return { getSQL: () => ({ toQuery: () => ({ sql, params }) }) };
}

const postgresJs = (sql: Parts): Found => {
  if (!isCall(sql.unsafe) || !isCall(sql.typed)) return undefined;
  if (!isCall(sql.savepoint) && !isCall(sql.release)) {
    throw refused("postgres.js without a transaction", "pass the sql of sql.begin(async (sql) => …)");
  }
  return { client: postgresJsClient(sql.unsafe as PostgresJsUnsafe), connection: sql, status: "unknown" };
};

type PostgresJsUnsafe = (text: string, values: unknown[]) => { raw(): PromiseLike<PostgresJsRows> };
type PostgresJsRows = (Uint8Array | null)[][] & { readonly columns?: readonly { readonly type: number }[] };

/** Rows as the server sent them, so that no setting of the caller changes them. */
function postgresJsClient(unsafe: PostgresJsUnsafe): ClientLike {
  return {
    async query({ text, values, types }) {
      const answer = await unsafe(text, asTexts(values)).raw();
      const parsers = (answer.columns ?? []).map(({ type }) => types.getTypeParser(type));
      const rows = Array.from(answer, (row) =>
        row.map((bytes, index) =>
          bytes === null ? null : parsers[index]?.(Buffer.from(bytes).toString("utf8")),
        ),
      );
      return { rows };
    },
  };
}

const ownClient: Recognise = (tx) => {
  if (!isCall(tx.rows)) return undefined;
  const rows = tx.rows.bind(tx) as (text: string, values: (string | null)[]) => PromiseLike<unknown>;
  return { client: objectClient(rows), connection: tx, status: "unknown" };
};

const pgClient = (client: Parts): Found => {
  if (!isCall(client.query)) return undefined;
  if ("totalCount" in client) {
    throw refused(
      "a pool",
      'pass one of its clients: const tx = await pool.connect(), then tx.query("begin")',
    );
  }
  // While a query runs, it may be the one that begins or ends the transaction. Older versions of pg know nothing.
  const isIdle = client.readyForQuery === true && isCall(client.getTransactionStatus);
  const state = isIdle ? (client.getTransactionStatus as Call).call(client) : undefined;
  const status = state === "T" ? "open" : state === "E" ? "failed" : "unknown";
  return { client: client as unknown as ClientLike, connection: client, status };
};

/** Those that have calls of others come first. */
const LIBRARIES: readonly Recognise[] = [
  mikroOrm,
  typeOrm,
  knex,
  kysely,
  prisma,
  drizzle,
  postgresJs,
  ownClient,
  pgClient,
];

function ofClient(client: unknown): CallerTransaction {
  const found = pgClient(client as Parts);
  if (found) return found;
  throw refused("a transaction of another database", "use one on the PostgreSQL database of the store");
}

function isCall(value: unknown): value is Call {
  return typeof value === "function";
}

function refused(value: unknown, fix: string, caught?: { readonly cause: unknown }): CurfewError {
  const shown = typeof value === "object" && value !== null ? "an object" : value;
  return refuse("invalid_option", "options.tx", shown, fix, caught);
}

/** What the server says about a statement that needs a transaction. */
export function refusedBy(state: "none" | "failed", caught?: { readonly cause: unknown }): CurfewError {
  return state === "none"
    ? refused(
        "a client without a transaction",
        'begin one first, and await it: await client.query("begin")',
        caught,
      )
    : refused("a failed transaction", "roll it back, and repeat it from its beginning", caught);
}
