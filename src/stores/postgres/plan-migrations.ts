import type { MigrationPlan } from "../sql/migrator.ts";
import { bindSchema, poolOf } from "./connection.ts";
import { createConnections } from "./connections.ts";
import { planIn } from "./migrate.ts";
import { checkSchemaName } from "./schema-name.ts";

/** Reads what `openPostgresStore` would apply to a schema, and changes nothing. */
export async function planPostgresMigrations(connection: string, schema = "curfew"): Promise<MigrationPlan> {
  checkSchemaName(schema);
  const bind = bindSchema(schema);
  const connections = createConnections({ pool: poolOf(connection), bind });
  try {
    const { applied, pending } = await planIn(connections.inspect, schema);
    return { applied, pending: pending.map((migration) => ({ ...migration, sql: bind(migration.sql) })) };
  } finally {
    await connections.close();
  }
}
