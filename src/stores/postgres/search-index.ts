import type { JobId } from "../../core/job/job.ts";
import { SEARCHED_LENGTH, type SearchIndex } from "../../ports/search.ts";
import type { ConnectionGroup } from "./connection.ts";
import type { Statement } from "./statements.ts";

/** Jobs that one statement of a build reads. */
const BATCH = 2_000;
/** A text that more jobs have is common: a scan finds enough of them among the newest. */
const MOST_HITS = 5_000;
/** Building an index of a large table takes long. */
const BUILD_LIMIT = 60 * 60_000;

/**
 * What of a job is searched: its payload, or the pairs of names and values that its `redact` does not hide. A path hides
 * every place whose names contain the names of the path in order, so it may hide more than it names, and never less.
 * What is not JSON to PostgreSQL, such as a NUL in a text, is not searched.
 */
const SEARCHED = `
create or replace function curfew.search_text(payload text, options text) returns text
 language plpgsql immutable set search_path = pg_catalog, pg_temp as $body$
begin
  if options is null or position('"redact":' in options) = 0 then return left(payload, ${SEARCHED_LENGTH}); end if;
  return (with recursive
    paths as (
      select coalesce((select string_agg(regexp_replace(name.value, '([\\\\%_])', '\\\\\\1', 'g'), '%' order by name.n)
        from jsonb_array_elements_text(path.value) with ordinality as name(value, n)
        where name.n > 1 and name.value <> '*'), '') as pattern
      from jsonb_array_elements((options::jsonb) -> 'redact') as path(value) where path.value ->> 0 = 'payload'),
    places(path, name, value) as (
      select '', '', payload::jsonb
      union all
      select places.path || '.' || inner_.name, inner_.name, inner_.value from places, lateral (
        select key as name, value from jsonb_each(case jsonb_typeof(places.value) when 'object' then places.value else '{}' end)
        union all
        select (n - 1)::text, value from jsonb_array_elements(
          case jsonb_typeof(places.value) when 'array' then places.value else '[]' end) with ordinality as item(value, n)
      ) as inner_)
    select left(coalesce(string_agg(to_json(places.name)::text || ':' || places.value::text, ','), ''), ${SEARCHED_LENGTH})
    from places where jsonb_typeof(places.value) not in ('object', 'array')
      and not exists (select 1 from paths where places.path like '%' || paths.pattern || '%'));
exception when others then return '';
end $body$`;

/** The rights of the owner: workers and servers need none on the index. */
const TRIGGER = "language plpgsql security definer set search_path = pg_catalog, pg_temp";

const CREATE = [
  "create table if not exists curfew.search_state (built boolean not null)",
  "insert into curfew.search_state select false where not exists (select 1 from curfew.search_state)",
  "create table if not exists curfew.search (id uuid primary key, created_at bigint not null, payload text not null)",
  SEARCHED,
  `create or replace function curfew.search_add() returns trigger ${TRIGGER} as $body$
begin
  insert into curfew.search (id, created_at, payload)
    select id, created_at, curfew.search_text(payload, options) from added where queue not like 'curfew' || '.%'
    on conflict (id) do nothing;
  return null;
end $body$`,
  `create or replace function curfew.search_remove() returns trigger ${TRIGGER} as $body$
begin
  delete from curfew.search s using removed r where s.id = r.id
    and not exists (select 1 from curfew.jobs j where j.id = r.id)
    and not exists (select 1 from curfew.done d where d.id = r.id);
  return null;
end $body$`,
  ...["jobs", "done"].flatMap((table) => [
    `create or replace trigger curfew_search_added after insert on curfew.${table}
 referencing new table as added for each statement execute function curfew.search_add()`,
    `create or replace trigger curfew_search_removed after delete on curfew.${table}
 referencing old table as removed for each statement execute function curfew.search_remove()`,
  ]),
];

const find = (operators: string) => [
  // The settings make the planner use the index of trigrams: a table scan must never stand behind a search field.
  `create or replace function curfew.search_find(pattern text, most int) returns table (found_at bigint, found uuid)
 language plpgsql stable security definer set search_path = pg_catalog, pg_temp
 set enable_seqscan = off set enable_indexscan = off set plan_cache_mode = force_custom_plan as $body$
begin
  return query select s.created_at, s.id from curfew.search s where s.payload like pattern limit most;
end $body$`,
  `create index concurrently if not exists search_payload on curfew.search using gin (payload "${operators}".gin_trgm_ops)`,
];

const DROP = [
  ...["jobs", "done"].flatMap((table) => [
    `drop trigger if exists curfew_search_added on curfew.${table}`,
    `drop trigger if exists curfew_search_removed on curfew.${table}`,
  ]),
  "drop function if exists curfew.search_find(text, int)",
  "drop function if exists curfew.search_add()",
  "drop function if exists curfew.search_remove()",
  "drop table if exists curfew.search",
  "drop table if exists curfew.search_state",
  "drop function if exists curfew.search_text(text, text)",
];

const EXTENSION = `select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm'`;

const fill = (table: string): Statement => ({
  text: `
with page as materialized (select id, created_at, payload, options, queue from curfew.${table}
  where id > $1::uuid order by id limit $2::int),
added as (insert into curfew.search (id, created_at, payload)
  select id, created_at, curfew.search_text(payload, options) from page where queue not like 'curfew' || '.%'
  on conflict (id) do nothing)
select count(*)::int, max(id::text) from page`,
});

const HAS_STATE: Statement = { text: "select to_regclass('curfew.search_state') is not null" };
const FIND: Statement = {
  text: `
with hits as materialized (select found_at, found from curfew.search_find($1::text, ${MOST_HITS + 1}))
select h.found::text, h.found_at, (select count(*)::int from hits) from hits h
where $2::bigint is null or (h.found_at, h.found) < ($2::bigint, $3::uuid)
order by h.found_at desc, h.found desc limit $4::int`,
};
const IS_BUILT: Statement = { text: "select built from curfew.search_state" };
const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/** An index of trigrams (pg_trgm) on a table of its own, which triggers keep: it fits whatever process writes. */
export function createSearchIndex(connection: ConnectionGroup): SearchIndex {
  const all = (texts: readonly string[]) =>
    connection.transaction((session) =>
      session.patiently(BUILD_LIMIT, async () => {
        await session.execute("set local statement_timeout = 0");
        for (const text of texts) await session.execute(text);
      }),
    );
  return {
    async find(text, before, limit) {
      if (!(await isBuilt(connection))) return null;
      const [at = null, id = null] = before?.split(".") ?? [];
      const pattern = `%${text.replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`;
      const rows = await connection.run(FIND, [pattern, at, id, limit]);
      // Too many, or the text is so common that the newest jobs have it.
      if (((rows[0]?.[2] as number | undefined) ?? 0) > MOST_HITS) return null;
      return rows.map(([job, createdAt]) => ({ id: job as JobId, cursor: `${createdAt}.${job}` }));
    },
    async build(onStep) {
      await all(["create extension if not exists pg_trgm", ...CREATE]);
      let done = 0;
      for (const table of ["jobs", "done"])
        for (let after = FIRST_ID; ; ) {
          const [row] = await connection.run(fill(table), [after, BATCH]);
          const [count, last] = row as [number, string | null];
          done += count;
          onStep(done);
          if (count < BATCH || last === null) break;
          after = last;
        }
      const [extension] = await connection.run({ text: EXTENSION });
      await connection.use((session) =>
        session.patiently(BUILD_LIMIT, async () => {
          for (const text of find(extension?.[0] as string)) await session.execute(text);
          await session.execute("analyze curfew.search");
          await session.execute("update curfew.search_state set built = true");
        }),
      );
    },
    drop: () => all(DROP),
  };
}

/** The name stands in a text here, which the binding of the schema reaches too. */
async function isBuilt(connection: ConnectionGroup): Promise<boolean> {
  const [state] = await connection.run(HAS_STATE);
  if (state?.[0] !== "t" && state?.[0] !== true) return false;
  const [built] = await connection.run(IS_BUILT);
  return built?.[0] === "t" || built?.[0] === true;
}
