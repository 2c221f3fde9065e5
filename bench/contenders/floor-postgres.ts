import pg from "pg";
import { type Contender, type Handler, inBatches, type Payload, payload, payloads } from "../contender.ts";

const CLAIM = `
update floor set state = 1 where id = any(array(
  select id from floor where state = 0 order by id limit 200 for update skip locked))
returning id, payload`;

/** The plans are made while the table is empty, and must be right when it is full. */
const SETTINGS = "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off";
const TABLE = `
create table if not exists floor (
  id bigint generated always as identity primary key, state smallint not null default 0, payload text
) with (fillfactor = 70);
create index if not exists floor_ready on floor (id) where state = 0`;

/** What PostgreSQL gives to somebody who wants nothing: no retries, fences, priorities, deadlines or history. */
export const floorPostgres: Contender = {
  name: "raw SQL",
  role: "floor",
  database: "postgres",
  async open(url) {
    const pool = new pg.Pool({ connectionString: url, max: 20, options: SETTINGS });
    await pool.query(TABLE);
    let done = 0;
    return {
      enqueue: (count) =>
        inBatches(count, 1_000, 2, (from, to) => {
          const texts = payloads(from, to).map((each) => JSON.stringify(each));
          const text = "insert into floor (payload) select * from unnest($1::text[])";
          return pool.query({ name: "add", text, values: [texts] });
        }),
      async add(n) {
        const text = "insert into floor (payload) values ($1)";
        await pool.query({ name: "add_one", text, values: [JSON.stringify(payload(n))] });
      },
      async work(_concurrency, handler) {
        let isStopped = false;
        const lane = async () => {
          while (!isStopped) {
            const handled = await runBatch(pool, handler);
            if (handled === 0) return;
            done += handled;
          }
        };
        const ended = Promise.all([lane(), lane()]);
        return async () => {
          isStopped = true;
          await ended;
        };
      },
      isDrained: async (count) => done >= count,
      async clear() {
        await pool.query("truncate floor");
      },
      close: () => pool.end(),
    };
  },
};

async function runBatch(pool: pg.Pool, handler: Handler): Promise<number> {
  const { rows } = await pool.query({ name: "claim", text: CLAIM });
  if (rows.length === 0) return 0;
  for (const row of rows) handler((JSON.parse(row.payload) as Payload).n, () => {});
  const ids = `{${rows.map(({ id }) => id).join(",")}}`;
  const text = "delete from floor where id = any($1::bigint[])";
  await pool.query({ name: "delete", text, values: [ids] });
  return rows.length;
}
