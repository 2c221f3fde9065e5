import type { PostgresFacts, StoreDiagnosis } from "../../core/doctor/doctor-facts.ts";
import { MIGRATIONS } from "./migrations.ts";
import type { PoolLike, Runner } from "./session.ts";
import { SERVER_FACTS, TABLE_FACTS, WRITE_FACTS } from "./statements.ts";

interface Diagnosed {
  readonly runner: Runner;
  readonly schema: string;
  /** Opens connections by an address; undefined if the caller gave a pool, whose connections may all be lent. */
  readonly pool: PoolLike | undefined;
}

/** What the server says about itself. It writes nothing. */
export async function diagnoseServer({ runner, schema, pool }: Diagnosed): Promise<StoreDiagnosis> {
  const [versions] = await runner.run({ text: "select max(version) from curfew.migrations" });
  const [server] = await runner.run(SERVER_FACTS);
  const tables = await runner.run(TABLE_FACTS, [schema]);
  const [version, fsync, full_page_writes, synchronous_commit, autovacuum, most, used, bytes] = server ?? [];
  const postgres: PostgresFacts = {
    version: String(version),
    settings: {
      fsync: String(fsync),
      full_page_writes: String(full_page_writes),
      synchronous_commit: String(synchronous_commit),
    },
    autovacuum: String(autovacuum),
    hasPooler: pool ? await hasPooler(pool) : null,
    connections: Number(used),
    mostConnections: Number(most),
    bytes: Number(bytes),
    tables: tables.map(([name, live, dead]) => ({
      name: String(name),
      liveRows: Number(live),
      deadRows: Number(dead),
    })),
  };
  return {
    writeProblem: await writeProblem(runner, schema),
    schemaVersion: Number(versions?.[0] ?? 0),
    newestVersion: MIGRATIONS.at(-1)?.version ?? 0,
    postgres,
  };
}

async function writeProblem(runner: Runner, schema: string): Promise<string | null> {
  const [facts] = await runner.run(WRITE_FACTS, [schema]);
  const [isReplica, isReadOnly, role, missing] = facts ?? [];
  if (isReplica === "true") return "this server is a read-only replica";
  if (isReadOnly === "on") return "transactions are read-only on this connection";
  if (missing !== null) return `role "${role}" may not insert, update and delete in table ${missing}`;
  return null;
}

/**
 * The server tells its process id when a connection opens. A pooler answers with a number of its own. Null if nobody knows:
 * a server that has no connection left still says the rest, which is what an operator looks for then.
 */
async function hasPooler(pool: PoolLike): Promise<boolean | null> {
  const client = await pool.connect().catch(() => null);
  if (!client) return null;
  try {
    const announced = (client as { readonly processID?: unknown }).processID;
    if (typeof announced !== "number") return null;
    const types = { getTypeParser: () => (text: string) => text };
    const { rows } = await client.query({ text: "select pg_backend_pid()", rowMode: "array", types });
    return Number(rows[0]?.[0]) !== announced;
  } catch {
    return null;
  } finally {
    client.release(true);
  }
}
