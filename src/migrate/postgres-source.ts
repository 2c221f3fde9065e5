import { randomInt } from "node:crypto";
import pg from "pg";
import { refuse } from "../core/errors.ts";
import type { JobLine } from "../core/job/transfer/job-line.ts";
import type { Source, SourceBatch, SourceCounts, SourceCron, SourceJob } from "./source.ts";
import { applyRules, type Ruled, refused } from "./translate.ts";

const BATCH_JOBS = 500;
/** The most characters of documents in a batch. One row may be larger. */
const BATCH_CHARACTERS = 4_000_000;
/** Documents of a row that are larger are not even read: curfew's limit is 1 MB unless the engine was given another. */
const LONGEST_DOCUMENT = 16_000_000;
const CONNECT_WITHIN = 10_000;

export type PostgresClient = pg.Client;
type Row = Record<string, unknown>;

/** A row of a page: enough to continue after it, and to decide how many rows are read whole. */
export interface PageRow extends Row {
  readonly id: string;
  /** The queue of pg-boss, whose ids are unique only within it; empty for graphile-worker. */
  readonly name: string;
  readonly size: number;
}

/** The statements of one engine. */
export interface PostgresQueries {
  readonly counts: () => Promise<SourceCounts>;
  readonly crons: () => Promise<readonly SourceCron[]>;
  /** The next rows after a position, in its order; locked, if asked for, and without those that others hold. */
  readonly page: (after: PageRow | null, limit: number, isLocked: boolean) => Promise<PageRow[]>;
  /** The whole rows, in any order, and what the rules make of each. */
  readonly translate: (rows: readonly PageRow[]) => Promise<ReadonlyMap<string, Ruled<JobLine>>>;
  /** Deletes rows that are locked. Returns how many there were. */
  readonly remove: (rows: readonly PageRow[]) => Promise<number>;
}

export interface PostgresJob extends SourceJob {
  readonly row: PageRow;
}

export async function connect(address: string): Promise<PostgresClient> {
  const client = new pg.Client({
    connectionString: address,
    application_name: "curfew import",
    connectionTimeoutMillis: CONNECT_WITHIN,
  });
  // Without a listener a lost connection would end the process. The next query fails and says why.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/**
 * Whether both are the same database, whatever their addresses look like: one takes an advisory lock that the other
 * looks for. Also asks whether the role of the old system may write there.
 */
export async function canShareTransaction(
  client: PostgresClient,
  store: string,
  schema: string,
): Promise<boolean> {
  if (!/^postgres(ql)?:\/\//.test(store)) return false;
  const [high, low] = [randomInt(2 ** 31), randomInt(2 ** 31)];
  const other = await connect(store);
  try {
    await client.query("select pg_advisory_lock($1::int, $2::int)", [high, low]);
    const found = await other.query(
      `select 1 from pg_locks where locktype = 'advisory' and classid = $1::int8 and objid = $2::int8
         and database = (select oid from pg_database where datname = current_database())`,
      [high, low],
    );
    if (found.rowCount === 0) return false;
    const may = await client.query<{ may: boolean | null }>(
      "select has_schema_privilege(oid, 'usage') as may from pg_namespace where nspname = $1",
      [schema],
    );
    return may.rows[0]?.may === true;
  } finally {
    await client.query("select pg_advisory_unlock_all()").catch(() => {});
    await other.end();
  }
}

/** Jobs in a PostgreSQL database. Rows are locked until their batch ends, so no worker there gets them. */
export class PostgresSource implements Source {
  readonly name: string;
  readonly isAtomic: boolean;
  readonly #client: PostgresClient;
  readonly #queries: PostgresQueries;

  constructor(name: string, client: PostgresClient, queries: PostgresQueries, isAtomic: boolean) {
    this.name = name;
    this.#client = client;
    this.#queries = queries;
    this.isAtomic = isAtomic;
  }

  counts(): Promise<SourceCounts> {
    return this.#queries.counts();
  }

  crons(): Promise<readonly SourceCron[]> {
    return this.#queries.crons();
  }

  notes(): readonly string[] {
    return [];
  }

  async *pass({
    isDry,
  }: {
    readonly isDry: boolean;
  }): AsyncGenerator<SourceBatch<PostgresJob>, void, undefined> {
    for (let after: PageRow | null = null; ; ) {
      if (!isDry) await this.#client.query("begin");
      const page = await this.#queries.page(after, BATCH_JOBS, !isDry);
      const rows = withinSize(page);
      const batch = await this.#batch(rows, isDry);
      yield batch;
      // The rest of the page is unlocked with the batch, and read again.
      after = rows.at(-1) ?? null;
      if (after === null) return;
    }
  }

  async #batch(rows: readonly PageRow[], isDry: boolean): Promise<SourceBatch<PostgresJob>> {
    const client = this.#client;
    const small = rows.filter(({ size }) => size <= LONGEST_DOCUMENT);
    const ruled = small.length === 0 ? new Map() : await this.#queries.translate(small);
    const jobs = rows.map((row): PostgresJob => {
      const tooLarge = () => applyRules(() => refused("too_large", `${row.size} characters`));
      return {
        name: row.name === "" ? row.id : `${row.name}:${row.id}`,
        row,
        ruled: ruled.get(row.id) ?? tooLarge(),
      };
    });
    const end = async (how: "commit" | "rollback") => {
      if (!isDry) await client.query(how);
    };
    return {
      jobs,
      ...(this.isAtomic && !isDry && { tx: client }),
      remove: async (gone) => {
        const count = gone.length === 0 ? 0 : await this.#queries.remove(gone.map(({ row }) => row));
        if (count !== gone.length)
          throw new Error(`${gone.length} locked rows were to be removed, and ${count} were there`);
        await end("commit");
        return [];
      },
      release: () => end("rollback"),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }
}

/** The first rows that fit into one batch; at least one. */
function withinSize(rows: readonly PageRow[]): readonly PageRow[] {
  let size = 0;
  const end = rows.findIndex((row, index) => {
    size += Math.min(row.size, LONGEST_DOCUMENT);
    return size > BATCH_CHARACTERS && index > 0;
  });
  return end < 0 ? rows : rows.slice(0, end);
}

/** A schema as it is written in SQL. */
export function quotedSchema(schema: string): string {
  return pg.escapeIdentifier(schema);
}

/** The columns of a table; empty if there is no such table. */
export async function columnsOf(client: PostgresClient, schema: string, table: string): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    "select column_name as name from information_schema.columns where table_schema = $1 and table_name = $2",
    [schema, table],
  );
  return new Set(rows.map(({ name }) => name));
}

/** The columns of the table of jobs. Refuses a schema without the table, and one of a version that is too old. */
export async function jobColumnsOf(
  client: PostgresClient,
  schema: string,
  table: { readonly name: string; readonly needed: readonly string[]; readonly engine: string },
): Promise<Set<string>> {
  const { name, needed, engine } = table;
  const columns = await columnsOf(client, schema, name);
  const missing = needed.filter((column) => !columns.has(column));
  if (missing.length === 0) return columns;
  const fix =
    columns.size === 0
      ? `there is no table ${name}: pass the schema of ${engine}`
      : `its table ${name} has no ${missing.join(", ")}: use ${engine}`;
  throw refuse("invalid_option", "--schema", schema, fix);
}
