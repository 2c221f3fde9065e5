import { createHash } from "node:crypto";
import { CurfewError } from "../../core/errors.ts";

/** One step of a schema. Steps are only added: existing databases have already run the others. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export interface AppliedMigration {
  readonly version: number;
  readonly checksum: string;
}

/** What a database has, and what it still needs. */
export interface MigrationPlan {
  readonly applied: readonly AppliedMigration[];
  readonly pending: readonly Migration[];
}

export function checksumOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}

/**
 * The steps that a database still needs. Refuses tables that newer code has made, and tables made by a text that has
 * changed since.
 */
export function pendingMigrations(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  const newest = known.at(-1)?.version ?? 0;
  const ahead = applied.find(({ version }) => version > newest);
  if (ahead) {
    throw new CurfewError(
      "store_failed",
      `the store's schema has version ${ahead.version}, and this curfew knows versions up to ${newest}; update curfew in this process, or open another schema`,
    );
  }
  const checksums = new Map(applied.map(({ version, checksum }) => [version, checksum]));
  for (const migration of known) {
    const checksum = checksums.get(migration.version);
    if (checksum === undefined || checksum === checksumOf(migration)) continue;
    throw new CurfewError(
      "store_failed",
      `migration ${migration.version} (${migration.name}) was applied with another text; open a schema that a released curfew has made`,
    );
  }
  return known.filter(({ version }) => !checksums.has(version));
}
