import type { Instant } from "../core/time.ts";
import {
  type PgBossJob,
  type PgBossSchedule,
  translatePgBossJob,
  translatePgBossSchedule,
} from "./pg-boss-rules.ts";
import * as source from "./postgres-source.ts";
import type { NameRules } from "./translate.ts";

export interface PostgresSettings {
  readonly schema: string;
  /** Only these queues of pg-boss or tasks of graphile-worker; empty for all. */
  readonly only: readonly string[];
  readonly names: NameRules;
  readonly now: () => Instant;
}

/** pg-boss's own queues begin so. */
const INTERNAL = "\\_\\_pgboss\\_\\_%";
const MILLISECONDS = (column: string) => `floor(extract(epoch from ${column}) * 1000)::float8`;
/** The columns that older versions lack. */
const NEEDED = [
  "policy",
  "retry_delay_max",
  "deletion_seconds",
  "dead_letter",
  "singleton_on",
  "expire_seconds",
];

export async function pgBossQueries(
  client: source.PostgresClient,
  settings: PostgresSettings,
): Promise<source.PostgresQueries> {
  const { schema, only, names, now } = settings;
  const columns = await source.jobColumnsOf(client, schema, {
    name: "job",
    needed: NEEDED,
    engine: "a current pg-boss",
  });
  const job = `${source.quotedSchema(schema)}.job`;
  const chosen = `j.name not like '${INTERNAL}' and ($1::text[] = '{}' or j.name = any($1::text[]))`;
  const taken = `j.state in ('created', 'retry', 'failed')`;
  const select = selectJobs(job, columns);
  const size = "octet_length(coalesce(data::text, '')) + octet_length(coalesce(output::text, ''))";
  return {
    async counts() {
      const { rows } = await client.query<{ jobs: number; active: number; crons: number }>(
        `select count(*) filter (where ${taken})::int as jobs, count(*) filter (where j.state = 'active')::int as active,
           (select count(*) from ${source.quotedSchema(schema)}.schedule j where ${chosen})::int as crons
         from ${job} j where ${chosen}`,
        [only],
      );
      return rows[0] as { jobs: number; active: number; crons: number };
    },
    crons: () => schedules(client, settings),
    async page(after, limit, isLocked) {
      const { rows } = await client.query<source.PageRow>(
        `select j.name, j.id::text, ${size} as size from ${job} j
         where ${chosen} and ${taken} and ($2::text is null or (j.name, j.id) > ($2::text, $3::uuid))
         order by j.name, j.id limit $4 ${isLocked ? "for update skip locked" : ""}`,
        [only, after?.name ?? null, after?.id ?? null, limit],
      );
      return rows;
    },
    async translate(rows) {
      const found = await client.query<Record<string, unknown>>(select, [
        rows.map(({ name }) => name),
        rows.map(({ id }) => id),
      ]);
      const at = now();
      return new Map(
        found.rows.map((row) => [
          row.id as string,
          translatePgBossJob(row as unknown as PgBossJob, { schema, names, now: at }),
        ]),
      );
    },
    async remove(rows) {
      const { rowCount } = await client.query(
        `delete from ${job} j using unnest($1::text[], $2::uuid[]) as k(name, id) where j.name = k.name and j.id = k.id`,
        [rows.map(({ name }) => name), rows.map(({ id }) => id)],
      );
      return rowCount ?? 0;
    },
  };
}

/** Whole rows by queue and id. Columns that older versions lack are null. */
function selectJobs(job: string, columns: ReadonlySet<string>): string {
  const has = (column: string, otherwise: string) =>
    columns.has(column) ? column : `${otherwise} as ${column}`;
  const dependencies = columns.has("blocked") ? "(blocked or blocking or pending_dependencies > 0)" : "false";
  return `
    select j.id::text, j.name, j.priority, j.state::text, data::text, output::text, retry_limit, retry_count, retry_delay,
      retry_backoff, retry_delay_max, expire_seconds as expire, ${columns.has("heartbeat_seconds") ? "heartbeat_seconds" : "null::int"} as heartbeat, singleton_key,
      singleton_on is not null as has_slot, ${has("group_id", "null::text")}, ${MILLISECONDS("start_after")} as start_after,
      floor(extract(epoch from created_on) * 1000000)::numeric::text as created_on,
      ${MILLISECONDS("completed_on")} as completed_on, ${MILLISECONDS("keep_until")} as keep_until, dead_letter, policy,
      ${dependencies} as has_dependencies, ${has("source_name", "null::text")}, ${has("source_retry_count", "null::int")},
      ${columns.has("source_output") ? "source_output::text" : "null::text as source_output"}
    from ${job} j join unnest($1::text[], $2::uuid[]) as k(name, id) on j.name = k.name and j.id = k.id`;
}

async function schedules(client: source.PostgresClient, { schema, only, names }: PostgresSettings) {
  const table = `${source.quotedSchema(schema)}.schedule`;
  const columns = await source.columnsOf(client, schema, "schedule");
  const key = columns.has("key") ? "key" : "''::text as key";
  const kind = columns.has("kind") ? "kind" : "null::text as kind";
  const { rows } = await client.query<PgBossSchedule>(
    `select name, ${key}, ${kind}, cron, timezone, data::text, options from ${table}
     where $1::text[] = '{}' or name = any($1::text[]) order by name limit 10000`,
    [only],
  );
  const where = columns.has("key") ? "name = $1 and key = $2" : "name = $1 and $2::text = ''";
  return rows.map((row) => ({
    name: row.key === "" ? row.name : `${row.name}/${row.key}`,
    ruled: translatePgBossSchedule(row, names),
    remove: async () => {
      await client.query(`delete from ${table} where ${where}`, [row.name, row.key]);
    },
  }));
}
