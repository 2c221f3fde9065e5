import { readFile } from "node:fs/promises";
import { type GraphileJob, translateCrontab, translateGraphileJob } from "./graphile-worker-rules.ts";
import type { PostgresSettings } from "./pg-boss.ts";
import * as source from "./postgres-source.ts";

export interface GraphileSettings extends PostgresSettings {
  /** The crontab file: graphile-worker keeps its crons there and not in the database. */
  readonly crontab: string | undefined;
}

const NEEDED = ["job_queue_id", "task_id", "is_available", "max_attempts", "key"];
/** graphile-worker gives a job to another worker if it was locked this long ago. */
const STALE_LOCK = "interval '4 hours'";

export async function graphileQueries(
  client: source.PostgresClient,
  settings: GraphileSettings,
): Promise<source.PostgresQueries> {
  const { schema, only, names, now } = settings;
  await source.jobColumnsOf(client, schema, {
    name: "_private_jobs",
    needed: NEEDED,
    engine: "graphile-worker 0.16 or newer",
  });
  const at = (table: string) => `${source.quotedSchema(schema)}._private_${table}`;
  const chosen = "($1::text[] = '{}' or t.identifier = any($1::text[]))";
  const isFree = `(j.locked_at is null or j.locked_at < now() - ${STALE_LOCK})`;
  const from = `from ${at("jobs")} j join ${at("tasks")} t on t.id = j.task_id`;
  return {
    async counts() {
      const { rows } = await client.query<{ jobs: number; active: number }>(
        `select count(*) filter (where ${isFree})::int as jobs, count(*) filter (where not ${isFree})::int as active
         ${from} where ${chosen}`,
        [only],
      );
      return { ...(rows[0] as { jobs: number; active: number }), crons: (await crons(settings)).length };
    },
    crons: () => crons(settings),
    async page(after, limit, isLocked) {
      const { rows } = await client.query<source.PageRow>(
        `select '' as name, j.id::text, octet_length(j.payload::text) as size ${from}
         where ${chosen} and ${isFree} and j.id > $2::bigint
         order by j.id limit $3 ${isLocked ? "for update of j skip locked" : ""}`,
        [only, after?.id ?? "0", limit],
      );
      return rows;
    },
    async translate(rows) {
      const found = await client.query<Record<string, unknown>>(
        `select j.id::text, t.identifier as task, q.queue_name, j.payload::text, j.priority,
           floor(extract(epoch from j.run_at) * 1000)::float8 as run_at, j.attempts, j.max_attempts, j.last_error,
           floor(extract(epoch from j.created_at) * 1000000)::numeric::text as created_at,
           floor(extract(epoch from j.updated_at) * 1000)::float8 as updated_at, j.key
         ${from} left join ${at("job_queues")} q on q.id = j.job_queue_id where j.id = any($1::bigint[])`,
        [rows.map(({ id }) => id)],
      );
      const context = { schema, names, now: now() };
      return new Map(
        found.rows.map((row) => [
          row.id as string,
          translateGraphileJob(row as unknown as GraphileJob, context),
        ]),
      );
    },
    async remove(rows) {
      const { rowCount } = await client.query(`delete from ${at("jobs")} where id = any($1::bigint[])`, [
        rows.map(({ id }) => id),
      ]);
      return rowCount ?? 0;
    },
  };
}

async function crons({ crontab, names }: GraphileSettings) {
  if (crontab === undefined) return [];
  return translateCrontab(await readFile(crontab, "utf8"), names).map(({ line, ruled }) => ({
    name: `${crontab}:${line}`,
    ruled,
    // The file belongs to the user, and its workers stop with the old system.
    remove: async () => {},
  }));
}
