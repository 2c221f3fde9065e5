import { createHash } from "node:crypto";
import { CurfewError } from "../../core/errors.ts";

/** One step of a schema. Steps are only ever added: a database out there has already run the others. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export interface AppliedMigration {
  readonly version: number;
  readonly checksum: string;
}

export function checksumOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}

/**
 * The steps a database still needs, or a refusal: code must not run on tables that newer code has made, nor on
 * tables made by a text that has been changed since.
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
      `the store's schema is at version ${ahead.version} and this curfew knows only ${newest}: update curfew in this process, or open another schema`,
    );
  }
  const checksums = new Map(applied.map(({ version, checksum }) => [version, checksum]));
  for (const migration of known) {
    const checksum = checksums.get(migration.version);
    if (checksum === undefined || checksum === checksumOf(migration)) continue;
    throw new CurfewError(
      "store_failed",
      `migration ${migration.version} (${migration.name}) was applied with another text: this is not a schema that curfew has made, so it is left alone`,
    );
  }
  return known.filter(({ version }) => !checksums.has(version));
}
