import { refuse } from "../core/errors.ts";
import {
  hidePassword,
  OPEN_WITHIN,
  onThisMachine,
  openPostgresStore,
  openStore,
  retryUnreachable,
} from "../open.ts";
import { createLogOutput, type LogOutputOptions } from "./output/log.ts";

export interface MigrateOptions extends LogOutputOptions {
  readonly store: string;
  readonly schema?: string;
}

/** Brings the tables of a store up to date, for a role that may do what those of the workers may not. */
export async function migrate({ store: address, schema, ...rest }: MigrateOptions): Promise<void> {
  const output = createLogOutput(rest);
  const system = onThisMachine();
  const isPostgres = /^postgres(ql)?:/.test(address);
  if (schema !== undefined && !isPostgres)
    throw refuse("invalid_option", "--schema", schema, "only PostgreSQL has schemas: leave it out");
  if (address === "memory:")
    throw refuse("invalid_option", "--store", address, "a store in memory has no tables: name another");
  const open = () =>
    schema === undefined
      ? openStore(address, system)
      : openPostgresStore({ connection: address, schema, system });
  const store = await retryUnreachable(open, OPEN_WITHIN, system, output.logger);
  await store.close();
  const place = hidePassword(address) + (schema === undefined ? "" : `, schema ${schema}`);
  output.say(`${place} is up to date`, { store: place }, "the store is up to date");
}
