import { refuse } from "../core/errors.ts";
import {
  hidePassword,
  isRedisAddress,
  OPEN_WITHIN,
  onThisMachine,
  openPostgresStore,
  openStore,
  planMigrations,
  retryUnreachable,
} from "../open.ts";
import type { Logger } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";
import { createLogOutput, type LogOutputOptions } from "./output/log-output.ts";
import { createOutput } from "./output/output.ts";
import { dim } from "./output/paint.ts";
import { refuseBarePath, unopened } from "./target/target.ts";

export interface MigrateOptions extends LogOutputOptions {
  readonly store: string;
  readonly schema?: string;
  readonly plan?: boolean;
  readonly searchIndex?: "on" | "off";
}

/** Applies pending migrations. For setups in which the role of the workers may not alter tables. */
export async function migrate({
  store: address,
  schema,
  plan: _plan,
  searchIndex,
  ...rest
}: MigrateOptions): Promise<void> {
  const output = createLogOutput(rest);
  const system = onThisMachine();
  checkSchemaOption(address, schema);
  const open = () =>
    schema === undefined
      ? openStore(address, system)
      : openPostgresStore({ connection: address, schema, system });
  const store = await retryUnreachable(open, OPEN_WITHIN, system, output.logger);
  const place = placeOf(address, schema);
  try {
    if (searchIndex !== undefined) await setSearchIndex(store, searchIndex, output.logger);
  } finally {
    await store.close();
  }
  output.say(`${place} is up to date`, { store: place }, "the store is up to date");
}

/** Lines about the progress of a build come once per this many jobs. */
const SAID_EVERY = 50_000;

/** Builds or removes the index of texts in payloads. Processes that work on the store go on meanwhile. */
async function setSearchIndex(store: Store, state: "on" | "off", logger: Logger): Promise<void> {
  if (!store.search)
    throw refuse("invalid_option", "--search-index", state, "this store has no index: leave it out");
  if (state === "off") {
    await store.search.drop();
    logger.info({}, "the search index is removed");
    return;
  }
  let said = 0;
  await store.search.build((jobs) => {
    if (jobs - said < SAID_EVERY) return;
    said = jobs;
    logger.info({ jobs }, "building the search index");
  });
  logger.info({}, "the search index is built; new jobs are added as they come");
}

function checkSchemaOption(address: string, schema: string | undefined): void {
  refuseBarePath(address);
  if (schema !== undefined && !/^postgres(ql)?:/.test(address))
    throw refuse("invalid_option", "--schema", schema, "only PostgreSQL has schemas: leave it out");
  if (address === "memory:")
    throw refuse("invalid_option", "--store", address, "a store in memory has no tables: name another");
  if (isRedisAddress(address))
    throw refuse(
      "invalid_option",
      "--store",
      hidePassword(address),
      "a Redis store has no tables: just open it",
    );
}

const placeOf = (address: string, schema: string | undefined) =>
  hidePassword(address) + (schema === undefined ? "" : `, schema ${schema}`);

/** Prints the SQL of pending migrations, and changes nothing. */
export async function plan({ store: address, schema, json }: MigrateOptions): Promise<void> {
  checkSchemaOption(address, schema);
  const output = createOutput(json === true);
  const { applied, pending } = await output
    .during("reading", () => planMigrations(address, { schema }))
    .catch((error: unknown) => {
      throw unopened(hidePassword(address), error);
    });
  const store = placeOf(address, schema);
  const current = Math.max(0, ...applied.map(({ version }) => version));
  const newest = Math.max(current, ...pending.map(({ version }) => version));
  const steps = pending.map(({ version, name, sql }) => ({ version, name, sql: sql.trim() }));
  output.answer({ store, current, newest, pending: steps }, () =>
    steps.map(({ version, name, sql }) => `${dim(`-- Migration ${version}: ${name}`)}\n${sql}\n`).join("\n"),
  );
  const from = current === 0 ? "has no tables of curfew" : `has version ${current}`;
  output.note(
    steps.length === 0
      ? `${store} is up to date: version ${current}. Nothing would run.`
      : `${store} ${from}; ${steps.length} ${steps.length === 1 ? "migration" : "migrations"} would bring it to version ${newest}. Nothing was changed. Run them with curfew migrate, which also records that they ran.`,
  );
}
