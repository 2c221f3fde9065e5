import { statSync } from "node:fs";
import { dirname } from "node:path";
import type { System } from "../../ports/system.ts";
import type { MigrationPlan } from "../sql/migrator.ts";
import { Connection } from "./connection.ts";
import { defaultBinding } from "./find-binding.ts";
import { planIn } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { failed } from "./sqlite-errors.ts";

/** Reads what `openSqliteStore` would apply to a file, and changes nothing. A missing file needs everything. */
export async function planSqliteMigrations(path: string, system: System): Promise<MigrationPlan> {
  if (!statSync(path, { throwIfNoEntry: false })) {
    const folder = dirname(path);
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw failed(path, `cannot be created: there is no folder ${folder}; create it first`);
    return { applied: [], pending: MIGRATIONS };
  }
  const connection = new Connection({ path, binding: await defaultBinding() }, system);
  try {
    return await planIn(connection);
  } finally {
    await connection.close();
  }
}
