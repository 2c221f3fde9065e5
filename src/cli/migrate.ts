import { refuse } from "../core/errors.ts";
import {
  hidePassword,
  OPEN_WITHIN,
  onThisMachine,
  openPostgresStore,
  openStore,
  patiently,
} from "../open.ts";
import { createLogOutput, type LogOutputOptions } from "./output/log.ts";

export interface MigrateOptions extends LogOutputOptions {
  readonly store: string;
  readonly schema?: string;
}

/** Applies pending migrations. For setups in which the role of the workers may not alter tables. */
export async function migrate({ store: address, schema, ...rest }: MigrateOptions): Promise<void> {
  const output = createLogOutput(rest);
  const system = onThisMachine();
  const isPostgres = /^postgres(ql)?:/.test(address);
  if (schema !== undefined && !isPostgres)
    throw refuse("invalid_option", "--schema", schema, "only PostgreSQL has schemas: omit it");
  if (address === "memory:")
    throw refuse("invalid_option", "--store", address, "a store in memory has no tables: pass another store");
  const open = () =>
    schema === undefined
      ? openStore(address, system)
      : openPostgresStore({ connection: address, schema, system });
  const store = await patiently(open, OPEN_WITHIN, system, output.logger);
  await store.close();
  const place = hidePassword(address) + (schema === undefined ? "" : `, schema ${schema}`);
  output.say(`${place} is up to date`, { store: place }, "the store is up to date");
}
