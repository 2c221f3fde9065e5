import { type CurfewError, refuse } from "../../core/errors.ts";

type Parts = { readonly [name: string]: unknown };
interface KyselyTransaction {
  executeQuery(query: object): Promise<unknown>;
}

/**
 * The handle below a transaction of an ORM; anything else is returned as it is. `database` is the one that the store was
 * opened with.
 */
export async function callerHandle(tx: unknown, database: object | undefined): Promise<unknown> {
  if ((typeof tx !== "object" && typeof tx !== "function") || tx === null) return tx;
  const parts = tx as Parts;
  if (typeof parts.executeQuery === "function" && typeof parts.withoutPlugins === "function")
    return ofKysely(parts, database);
  // Drizzle: a database shows its handle, and a transaction has it in its session.
  if (parts.$client) return parts.$client;
  const { client } = (parts.session ?? {}) as Parts;
  return client ?? tx;
}

let proofs = 0;

/** Kysely hides its handle. A savepoint that one of them opens and the other ends proves that both are the same. */
async function ofKysely(trx: Parts, database: object | undefined): Promise<object> {
  if (trx.isTransaction !== true) {
    throw refusedHandle("a Kysely database", "pass the trx of db.transaction().execute(async (trx) => …)");
  }
  const fix = "open the store with the database of Kysely's dialect: openSqliteStore({ database })";
  if (!database) throw refusedHandle("a Kysely transaction", fix);
  const name = `curfew_proof_${++proofs}`;
  const plain = (trx.withoutPlugins as () => KyselyTransaction).call(trx);
  const run = (sql: string) =>
    plain.executeQuery({
      sql,
      parameters: [],
      query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
      queryId: { queryId: name },
    });
  await run(`savepoint ${name}`);
  try {
    (database as { exec(script: string): unknown }).exec(`release ${name}`);
  } catch (cause) {
    await run(`release ${name}`);
    throw refusedHandle("a Kysely transaction on another database", fix, { cause });
  }
  return database;
}

export function refusedHandle(
  value: unknown,
  fix: string,
  caught?: { readonly cause: unknown },
): CurfewError {
  return refuse("invalid_option", "options.tx", value, fix, caught);
}
