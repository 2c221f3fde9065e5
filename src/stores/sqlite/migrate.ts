import { CurfewError } from "../../core/errors.ts";
import type { System } from "../../ports/system.ts";
import {
  type AppliedMigration,
  checksumOf,
  type Migration,
  type MigrationPlan,
  pendingMigrations,
} from "../sql/migrator.ts";
import type { Connection } from "./connection.ts";
import { MIGRATIONS } from "./migrations.ts";
import type { Session } from "./session.ts";
import { failed } from "./sqlite-errors.ts";
import { ADD_MIGRATION, APPLIED_MIGRATIONS, CREATE_MIGRATIONS, HAS_MIGRATIONS } from "./statements.ts";

/**
 * Applies pending migrations. Processes that start together wait for each other. If nothing is pending, it costs one
 * read.
 */
export async function migrate(
  connection: Connection,
  system: Pick<System, "wall">,
  known: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const pending = (session: Session) => pendingIn(connection, readApplied(session), known);
  if ((await connection.read(pending)).length === 0) return;
  await connection.write((session) => {
    session.run(CREATE_MIGRATIONS);
    for (const migration of pending(session)) {
      connection.execute(migration.sql);
      const { version, name } = migration;
      session.run(ADD_MIGRATION, [version, name, checksumOf(migration), Math.floor(system.wall())]);
    }
  });
}

/** Reads what is applied and what is pending, and changes nothing. */
export function planIn(connection: Connection): Promise<MigrationPlan> {
  return connection.read((session) => {
    const applied = readApplied(session);
    return { applied, pending: pendingIn(connection, applied, MIGRATIONS) };
  });
}

/** Refuses a file that this code cannot open: one that no curfew has made, and one of a newer version. */
export function checkSchema(connection: Connection): Promise<void> {
  return connection.read((session) => {
    const applied = readApplied(session);
    if (applied.length === 0) throw failed(connection.path, "was not made by curfew: check the path");
    pendingIn(connection, applied, MIGRATIONS);
  });
}

function pendingIn(
  connection: Connection,
  applied: readonly AppliedMigration[],
  known: readonly Migration[],
) {
  try {
    return pendingMigrations(known, applied);
  } catch (error) {
    throw error instanceof CurfewError
      ? failed(connection.path, `cannot be used: ${error.message}`, error)
      : error;
  }
}

function readApplied(session: Session): AppliedMigration[] {
  if (!session.get(HAS_MIGRATIONS)) return [];
  return session
    .all(APPLIED_MIGRATIONS)
    .map(([version, checksum]) => ({ version: version as number, checksum: checksum as string }));
}
