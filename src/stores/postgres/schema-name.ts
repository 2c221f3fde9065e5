import { refuse } from "../../core/errors.ts";

const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;

export function checkSchemaName(schema: unknown): void {
  if (typeof schema === "string" && SCHEMA.test(schema) && !schema.startsWith("pg_")) return;
  const fix = 'use at most 63 lower-case letters, digits and "_", not beginning with a digit or with pg_';
  throw refuse("invalid_name", "schema", schema, fix);
}
