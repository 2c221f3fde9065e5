import pg from "pg";
import { type Contender, inBatches, payload } from "../contender.ts";

const CLAIM = `
update floor set state = 1 where id = any(array(
  select id from floor where state = 0 order by id limit 200 for update skip locked))
returning id, payload`;

/** The plans are made while the table is empty, and must be right when it is full. */
const SETTINGS = "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off";

/** What PostgreSQL gives to somebody who wants nothing: no retries, fences, priorities, deadlines or history. */
export const floor: Contender = {
  name: "raw SQL",
  async open(url) {
    const pool = new pg.Pool({ connectionString: url, max: 3, options: SETTINGS });
    await pool.query(`
      create table floor (id bigint generated always as identity primary key, state smallint not null default 0, payload text)
        with (fillfactor = 70);
      create index on floor (id) where state = 0`);
    return {
      async enqueue(count) {
        await inBatches(count, 1_000, 2, async (from, to) => {
          const payloads = [];
          for (let n = from; n < to; n++) payloads.push(JSON.stringify(payload(n)));
          const text = "insert into floor (payload) select * from unnest($1::text[])";
          await pool.query({ name: "add", text, values: [payloads] });
        });
      },
      async drain(count, _concurrency, begin) {
        begin();
        let done = 0;
        const lane = async () => {
          while (done < count) {
            const { rows } = await pool.query({ name: "claim", text: CLAIM });
            if (rows.length === 0) return;
            for (const row of rows) JSON.parse(row.payload);
            const ids = `{${rows.map(({ id }) => id).join(",")}}`;
            await pool.query({
              name: "delete",
              text: "delete from floor where id = any($1::bigint[])",
              values: [ids],
            });
            done += rows.length;
          }
        };
        await Promise.all([lane(), lane()]);
        return async () => {};
      },
      async clear() {
        await pool.query("truncate floor");
      },
      async close() {
        await pool.end();
      },
    };
  },
};
