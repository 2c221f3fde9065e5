import { CurfewError, refuse } from "../../core/errors.ts";
import type { Instant } from "../../core/time.ts";
import {
  type AppliedMigration,
  checksumOf,
  type Migration,
  type MigrationPlan,
  pendingMigrations,
} from "../sql/migrator.ts";
import type { ConnectionGroup } from "./connection.ts";
import { MIGRATIONS } from "./migrations.ts";
import { type Runner, type Session, sqlState } from "./session.ts";
import { ADD_MIGRATION, CLOCK, DURABILITY } from "./statements.ts";

/** A number that no other program on the same server is likely to lock. */
const ADVISORY_LOCK = 7_239_405_611;

/**
 * Applies pending migrations. Processes that start together wait for each other. If nothing is pending, it costs one
 * read.
 */
export async function migrate(
  connection: ConnectionGroup,
  schema: string,
  known: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const applied = await readApplied(connection, schema);
  // Checked before anything is locked or created, so that a role that may not create tables can run jobs.
  if (applied && pendingMigrations(known, applied).length === 0) return;
  await applyPending(connection, schema, known).catch((error: unknown) => {
    if (sqlState(error) !== NO_RIGHT) throw error;
    throw new CurfewError(
      "store_failed",
      `PostgreSQL: this role cannot migrate schema "${schema}"; run \`curfew migrate\` once with a role that can create and alter tables there`,
      { cause: error },
    );
  });
}

/** The SQLSTATE of a missing privilege. */
const NO_RIGHT = "42501";

async function applyPending(
  connection: ConnectionGroup,
  schema: string,
  known: readonly Migration[],
): Promise<void> {
  await connection.transaction((session) =>
    session.patiently(MIGRATION_LIMIT, () => applyIn(session, schema, known)),
  );
}

/** Another process may be migrating large tables, and this one waits for it. */
const MIGRATION_LIMIT = 30 * 60_000;

async function applyIn(session: Session, schema: string, known: readonly Migration[]): Promise<void> {
  // For this transaction only: a limit that the role or the database sets must not stop a migration half way.
  await session.execute("set local statement_timeout = 0; set local lock_timeout = 0");
  await session.run({ text: "select pg_advisory_xact_lock($1::bigint)" }, [ADVISORY_LOCK]);
  await session.execute(`create schema if not exists "${schema}"`);
  await session.run({
    text: `create table if not exists curfew.migrations (
        version int primary key, name text not null, checksum text not null, applied_at timestamptz not null)`,
  });
  const [clock] = await session.run(CLOCK);
  for (const migration of pendingMigrations(known, (await readApplied(session, schema)) ?? [])) {
    await apply(session, migration, clock?.[0] as Instant);
  }
}

async function apply(session: Session, migration: Migration, now: Instant): Promise<void> {
  await session.execute(migration.sql);
  const { version, name } = migration;
  await session.run(ADD_MIGRATION, [version, name, checksumOf(migration), now]);
}

/** Reads what is applied and what is pending, and changes nothing. */
export async function planIn(runner: Runner, schema: string): Promise<MigrationPlan> {
  const applied = (await readApplied(runner, schema)) ?? [];
  return { applied, pending: pendingMigrations(MIGRATIONS, applied) };
}

/** The applied migrations; undefined if the schema has no tables yet. */
async function readApplied(runner: Runner, schema: string): Promise<AppliedMigration[] | undefined> {
  const [table] = await runner.run({ text: "select to_regclass($1)::text" }, [`"${schema}".migrations`]);
  if (table?.[0] === null) return undefined;
  const rows = await runner.run({ text: "select version, checksum from curfew.migrations order by version" });
  return rows.map(([version, checksum]) => ({ version: version as number, checksum: checksum as string }));
}

/** Refuses a server that may lose what it has acknowledged. */
export async function checkDurability(runner: Runner): Promise<void> {
  for (const [name, setting] of await runner.run(DURABILITY)) {
    if (setting !== "off") continue;
    throw refuse(
      "invalid_option",
      `PostgreSQL setting ${name}`,
      setting,
      "turn it on: with it off, jobs that were acknowledged can be lost in a crash",
    );
  }
}
