import Database from "better-sqlite3";
import { type Contender, inBatches, type Payload, payload, payloads } from "../contender.ts";

const TABLE = `
create table if not exists floor (id integer primary key, state integer not null default 0, payload text);
create index if not exists floor_ready on floor (id) where state = 0`;

/** What SQLite gives to somebody who wants nothing, with the setting of plainjob: no commit waits for the disk. */
export const floorSqlite: Contender = {
  name: "raw SQL",
  role: "floor",
  database: "sqlite",
  async open(path) {
    const database = new Database(path);
    database.pragma("journal_mode = wal");
    database.pragma("synchronous = normal");
    database.exec(TABLE);
    const insert = database.prepare("insert into floor (payload) values (?)");
    const claim = database.prepare(
      "update floor set state = 1 where id in (select id from floor where state = 0 order by id limit 500) returning id, payload",
    );
    const remove = database.prepare("delete from floor where id = ?");
    const addAll = database.transaction((jobs: readonly Payload[]) => {
      for (const job of jobs) insert.run(JSON.stringify(job));
    });
    const removeAll = database.transaction((rows: readonly { id: number }[]) => {
      for (const { id } of rows) remove.run(id);
    });
    let done = 0;
    return {
      enqueue: (count) => inBatches(count, 500, 1, async (from, to) => addAll(payloads(from, to))),
      async add(n) {
        insert.run(JSON.stringify(payload(n)));
      },
      async work(_concurrency, handler) {
        let isStopped = false;
        const lane = async () => {
          while (!isStopped) {
            const rows = claim.all() as { id: number; payload: string }[];
            if (rows.length === 0) return;
            for (const row of rows) handler((JSON.parse(row.payload) as Payload).n, () => {});
            removeAll(rows);
            done += rows.length;
            await new Promise((resolve) => setImmediate(resolve));
          }
        };
        const ended = lane();
        return async () => {
          isStopped = true;
          await ended;
        };
      },
      isDrained: async (count) => done >= count,
      async clear() {
        database.exec("delete from floor");
      },
      async close() {
        database.close();
      },
    };
  },
};
