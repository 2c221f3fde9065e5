import type { JobId } from "../../core/job/job.ts";
import { SEARCHED_LENGTH, type SearchIndex, type SearchStep } from "../../ports/search.ts";
import type { ConnectionGroup } from "./connection.ts";
import type { Statement } from "./statements.ts";

/** Jobs that one statement of a build reads. */
const BATCH = 2_000;
/** A text that more jobs have is common: enough of them are found by looking at the newest. */
const MOST_HITS = 5_000;
/** Jobs that are looked at before the index is asked, and where the text is too common for it. */
const FIRST_LOOK = 2_000;
const LONG_LOOK = 20_000;
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
  "create index if not exists search_newest on curfew.search (created_at, id)",
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
/** $1 pattern. All jobs with the text, at most one more than the most that the index reads. */
const FIND: Statement = {
  text: `select found_at, found::text from curfew.search_find($1::text, ${MOST_HITS + 1})`,
};
/** $1 pattern, $2 and $3 the position (or null), $4 how many jobs to look at. Returns the hits, and the last position. */
const LOOK: Statement = {
  text: `
with page as materialized (
  select created_at, id, payload like $1::text as hit from curfew.search
  where $2::bigint is null or (created_at, id) < ($2::bigint, $3::uuid)
  order by created_at desc, id desc limit $4::int)
select created_at, id::text, hit::int from page where hit
union all
select created_at, id::text, 0 from (select created_at, id from page order by created_at, id limit 1) as last
 where (select count(*) from page) = $4::int`,
};
const IS_BUILT: Statement = { text: "select built from curfew.search_state" };
const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/** An index of trigrams (pg_trgm) on a table of its own, which triggers keep: it fits whatever process writes. */
export function createSearchIndex(connection: ConnectionGroup): SearchIndex {
  // The pages of one search follow each other. What is newer than the first page does not belong to the next ones.
  let last: { readonly text: string; readonly hits: readonly Hit[] | null } | undefined;
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
      const pattern = `%${text.replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`;
      // Many jobs have a common text, and the newest of them are found without the index.
      const near = await look(connection, pattern, before, FIRST_LOOK);
      if (near.hits.length >= limit || near.next === null) return stepOf(near.hits, limit, near.next);
      if (before === null || last?.text !== text) last = { text, hits: await allHits(connection, pattern) };
      if (last.hits)
        return stepOf(
          last.hits.filter((hit) => isBefore(hit, before)),
          limit,
          null,
        );
      const far = await look(connection, pattern, before, LONG_LOOK);
      return stepOf(far.hits, limit, far.next);
    },
    async build(onStep) {
      await all(["create extension if not exists pg_trgm", ...CREATE]);
      let done = 0;
      for (const table of ["jobs", "done"])
        for (let after = FIRST_ID; ; ) {
          const [count, last] = await filled(connection, table, after);
          done += count;
          onStep(done);
          if (count < BATCH || last === null) break;
          after = last;
        }
      const [extension] = await connection.run({ text: EXTENSION });
      await connection.use((session) =>
        session.patiently(BUILD_LIMIT, async () => {
          // An index that is built beside others cannot be built in a transaction, where the setting would be local.
          const [usual] = await session.run({ text: "show statement_timeout" });
          await session.execute("set statement_timeout = 0");
          try {
            for (const text of find(extension?.[0] as string)) await session.execute(text);
            await session.execute("analyze curfew.search");
            await session.execute("update curfew.search_state set built = true");
          } finally {
            await session.execute(`set statement_timeout = '${usual?.[0]}'`);
          }
        }),
      );
    },
    drop: () => all(DROP),
  };
}

/** A job with the text: its creation and its id. */
type Hit = readonly [createdAt: number, id: JobId];

const cursorOf = ([createdAt, id]: Hit) => `${createdAt}.${id}`;

function isBefore([createdAt, id]: Hit, position: string | null): boolean {
  if (position === null) return true;
  const [at, from = ""] = position.split(".");
  return createdAt < Number(at) || (createdAt === Number(at) && id < from);
}

/** `next` continues where fewer than `limit` hits were found. */
function stepOf(hits: readonly Hit[], limit: number, next: string | null): SearchStep {
  const candidates = hits.slice(0, limit).map((hit) => ({ id: hit[1], cursor: cursorOf(hit) }));
  return { candidates, next: hits.length > limit ? (candidates.at(-1)?.cursor ?? null) : next };
}

/** Looks at the next jobs one by one, the newest first. */
async function look(connection: ConnectionGroup, pattern: string, before: string | null, count: number) {
  const [at = null, id = null] = before?.split(".") ?? [];
  const rows = (await connection.run(LOOK, [pattern, at, id, count])) as [number, JobId, number][];
  const hits = rows.filter(([, , isHit]) => isHit === 1).map(([createdAt, job]): Hit => [createdAt, job]);
  const end = rows.find(([, , isHit]) => isHit === 0);
  return { hits: hits.sort(newestFirst), next: end ? cursorOf([end[0], end[1]]) : null };
}

/** All jobs with the text by the index; null if there are more than it reads. */
async function allHits(connection: ConnectionGroup, pattern: string): Promise<readonly Hit[] | null> {
  const rows = (await connection.run(FIND, [pattern])) as [number, JobId][];
  return rows.length > MOST_HITS ? null : rows.map(([at, id]): Hit => [at, id]).sort(newestFirst);
}

function newestFirst(a: Hit, b: Hit): number {
  return b[0] - a[0] || (a[1] < b[1] ? 1 : -1);
}

/** Indexes the next jobs of a table. Returns how many, and the last of them. */
function filled(
  connection: ConnectionGroup,
  table: string,
  after: string,
): Promise<readonly [count: number, last: string | null]> {
  return connection.transaction((session) =>
    session.patiently(BUILD_LIMIT, async () => {
      await session.execute("set local statement_timeout = 0");
      const [row] = await session.run(fill(table), [after, BATCH]);
      return row as [number, string | null];
    }),
  );
}

/** The name stands in a text here, which the binding of the schema reaches too. */
async function isBuilt(connection: ConnectionGroup): Promise<boolean> {
  const [state] = await connection.run(HAS_STATE);
  if (state?.[0] !== "t" && state?.[0] !== true) return false;
  const [built] = await connection.run(IS_BUILT);
  return built?.[0] === "t" || built?.[0] === true;
}
