import type { JobId } from "../../core/job/job.ts";

import { SEARCHED_LENGTH, type SearchIndex, type SearchStep } from "../../ports/search.ts";
import { trigramsOf } from "../sql/trigrams.ts";
import type { Connection } from "./connection.ts";

/** Jobs that are indexed in one transaction: writers wait no longer than that. */
const BATCH = 200;

/**
 * What of a job is searched: its payload, or the pairs of names and values that its `redact` does not hide. A path hides
 * every place whose names contain the names of the path in order, so it may hide more than it names, and never less.
 */
const searched = (row: string) => `substr(case when instr(${row}.options, '"redact":') > 0 then coalesce((
  select group_concat(json_quote(leaf.key) || ':' || json_quote(leaf.atom)) from json_tree(${row}.payload) as leaf
  where leaf.atom is not null and not exists (
    select 1 from json_each(${row}.options, '$.redact') as path
    where json_extract(path.value, '$[0]') = 'payload' and leaf.fullkey glob '*' || coalesce((
      select group_concat(replace(replace(replace(name.value, '[', '?'), ']', '?'), '"', '?'), '*')
      from json_each(path.value) as name where name.key > 0 and name.value <> '*'), '') || '*'))
  , '') else ${row}.payload end, 1, ${SEARCHED_LENGTH})`;

/** A position that sorts by creation and fits a rowid: 2^20 jobs of one millisecond have room. */
const position = (row: string) => `coalesce((select max(pos) from curfew_search_jobs
  where pos >= ${row}.created_at << 20 and pos < (${row}.created_at + 1) << 20), (${row}.created_at << 20) - 1) + 1`;

const add = (row: string) => `
  insert into curfew_search_jobs (pos, id) values (${position(row)}, ${row}.id);
  insert into curfew_search (rowid, payload)
    select pos, ${searched(row)} from curfew_search_jobs where id = ${row}.id;`;

const isNew = (row: string) =>
  `${row}.queue not glob 'curfew.*' and not exists (select 1 from curfew_search_jobs where id = ${row}.id)`;

const remove = (row: string) => `
  delete from curfew_search where rowid = (select pos from curfew_search_jobs where id = ${row}.id);
  delete from curfew_search_jobs where id = ${row}.id;`;

/** A job moves between the tables when it ends and when it is retried: only one that leaves both is forgotten. */
const CREATE = `
create table if not exists curfew_search_state (built integer not null);
insert into curfew_search_state select 0 where not exists (select 1 from curfew_search_state);
create table if not exists curfew_search_jobs (pos integer primary key, id text not null unique);
create virtual table if not exists curfew_search
  using fts5(payload, content='', contentless_delete=1, detail=none, tokenize="trigram case_sensitive 1");
create trigger if not exists curfew_search_added after insert on curfew_jobs when ${isNew("new")} begin ${add("new")} end;
create trigger if not exists curfew_search_removed after delete on curfew_jobs
  when not exists (select 1 from curfew_done where id = old.id) begin ${remove("old")} end;
create trigger if not exists curfew_search_pruned after delete on curfew_done
  when not exists (select 1 from curfew_jobs where id = old.id) begin ${remove("old")} end;
create trigger if not exists curfew_search_imported after insert on curfew_done when ${isNew("new")} begin ${add("new")} end;`;

const DROP = `
drop trigger if exists curfew_search_added;
drop trigger if exists curfew_search_removed;
drop trigger if exists curfew_search_pruned;
drop trigger if exists curfew_search_imported;
drop table if exists curfew_search;
drop table if exists curfew_search_jobs;
drop table if exists curfew_search_state;`;

const HAS_STATE = "select 1 from sqlite_master where name = 'curfew_search_state'";
const IS_BUILT = "select built from curfew_search_state";
const FIND = `select j.id, cast(s.rowid as text) from curfew_search s join curfew_search_jobs j on j.pos = s.rowid
 where s.curfew_search match ? and s.rowid < cast(? as integer) order by s.rowid desc limit ?`;
const LAST_POSITION = "9223372036854775807";

const TABLES = ["curfew_jobs", "curfew_done"] as const;
const next = (table: string) => `select id from ${table} where id > ? order by id limit ?`;
const addOne = (table: string): readonly [string, string] => [
  `insert into curfew_search_jobs (pos, id) select ${position("j")}, j.id from ${table} j where j.id = ? and ${isNew("j")}`,
  `insert into curfew_search (rowid, payload) select s.pos, ${searched("j")} from ${table} j join curfew_search_jobs s on s.id = j.id
    where j.id = ?`,
];

/** An index of trigrams in an FTS5 table, which triggers keep: it fits whatever process writes. */
export function createSearchIndex(connection: Connection): SearchIndex {
  return {
    find(text, before, limit) {
      return connection.read((session): SearchStep | null => {
        if (!session.get(HAS_STATE) || session.get(IS_BUILT)?.[0] !== 1) return null;
        const terms = trigramsOf(text).map((gram) => `"${gram.replaceAll('"', '""')}"`);
        const rows = session.all(FIND, [terms.join(" AND "), before ?? LAST_POSITION, limit]);
        const candidates = rows.map(([id, cursor]) => ({ id: id as JobId, cursor: cursor as string }));
        return { candidates, next: candidates.length < limit ? null : (candidates.at(-1)?.cursor ?? null) };
      });
    },
    async build(onStep) {
      await connection.write(() => connection.execute(CREATE));
      let done = 0;
      for (const table of TABLES) {
        const [place, text] = addOne(table);
        for (let after = ""; ; ) {
          const ids = await connection.write((session) => {
            const found = session.all(next(table), [after, BATCH]).map(([id]) => id as JobId);
            for (const id of found) if (session.run(place, [id]) > 0) session.run(text, [id]);
            return found;
          });
          done += ids.length;
          onStep(done);
          if (ids.length < BATCH) break;
          after = ids.at(-1) as JobId;
        }
      }
      await connection.write((session) => session.run("update curfew_search_state set built = 1"));
      await connection.synced();
    },
    async drop() {
      await connection.write(() => connection.execute(DROP));
      await connection.synced();
    },
  };
}
