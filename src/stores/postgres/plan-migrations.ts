import type { System } from "../../ports/system.ts";
import type { MigrationPlan } from "../sql/migrator.ts";
import { Peers } from "./connection.ts";
import { createConnections } from "./connections.ts";
import { OwnPool } from "./dial.ts";
import { planIn } from "./migrate.ts";
import { checkSchemaName } from "./schema-name.ts";
import { bindSchema } from "./session.ts";

/** Reads what `openPostgresStore` would apply to a schema, and changes nothing. */
export async function planPostgresMigrations(
  connection: string,
  system: Pick<System, "after">,
  schema = "curfew",
): Promise<MigrationPlan> {
  checkSchemaName(schema);
  const bind = bindSchema(schema);
  const pool = await OwnPool.load(connection);
  const connections = createConnections({ pool, bind, system, peers: new Peers() });
  try {
    const { applied, pending } = await planIn(connections.inspect, schema);
    return { applied, pending: pending.map((migration) => ({ ...migration, sql: bind(migration.sql) })) };
  } finally {
    await connections.close();
    pool.close();
  }
}
