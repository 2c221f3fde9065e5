import { useEffect, useMemo, useState } from "preact/hooks";
import {
  type BulkTarget,
  JOB_STATES,
  type Job,
  type Page as PageOf,
  type Scanned,
  type Stats,
} from "../../../ojs/replies/wire-replies.ts";
import { api } from "../../api/client.ts";
import { type BulkAction, findJobs } from "../../api/jobs.ts";
import { areRead, type Resource, useOnce, useResource } from "../../api/resource.ts";
import { serverNow } from "../../state/clock.ts";
import { figures } from "../../state/live.ts";
import { href, hrefWith, query, setQuery } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { STATE_LOOKS } from "../../ui/badge.tsx";
import { BulkBar } from "../../ui/bulk-bar.tsx";
import { Button, copyText } from "../../ui/button.tsx";
import { Empty, Failure, Skeleton, StaleNote } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { type Filter, FilterBar } from "../../ui/filter-bar.tsx";
import { countText } from "../../ui/format.ts";
import { PageLinks } from "../../ui/pager.tsx";
import { Table } from "../../ui/table.tsx";
import { type Tab, Tabs } from "../../ui/tabs.tsx";
import { BulkForm } from "./bulk-form.tsx";
import { jobColumns } from "./columns.tsx";
import { ExportButton } from "./csv-export.tsx";
import { filterOf, filtersOf, firedFilters, listOf, listQuery, searchOf, stateOf } from "./filters.ts";
import { FiredList } from "./fired-timeouts.tsx";
import { NearMissList } from "./near-misses.tsx";
import { SavedViews } from "./saved-views.tsx";
import { ScanFoot } from "./scan-foot.tsx";
import { SearchField } from "./search-field.tsx";

/** Jobs over all queues, by any filters at once, and the timeouts among them. What is chosen stands in the URL. */
export function Page() {
  const list = listOf(query.value);
  const stats = useResource(
    `stats ${query.value.get("queue") ?? ""}`,
    (signal) => api.get<Stats>("/admin/stats", { queue: query.value.get("queue") }, signal),
    { live: 3_000 },
  );
  // Numbers that come later would move the tabs under the pointer.
  const isCounted = useOnce(areRead(stats));
  const [types, setTypes] = useState<readonly string[]>([]);
  const [listed, setListed] = useState<Listed>({ state: null, total: undefined });
  const queues = (figures.value?.queues ?? []).map(({ queue }) => queue);
  const filters = filtersOf(queues, types);
  const current = list === "jobs" ? (stateOf(query.value) ?? "all") : list;
  return (
    <>
      <PageHead title="Jobs">
        <SavedViews />
        <Button icon="link" onClick={() => void copyText(location.href, "the link")}>
          Copy link
        </Button>
        {list === "jobs" && <ExportButton />}
      </PageHead>
      <div class={isCounted ? undefined : "unseen"}>
        <Tabs label="Lists" current={current} tabs={tabsOf(stats.data, listed)} />
      </div>
      {list === "timeouts" && (
        <>
          <FilterBar filters={firedFilters(filters)} />
          <FiredList />
        </>
      )}
      {list === "near-misses" && (
        <>
          <FilterBar filters={filters} />
          <NearMissList />
        </>
      )}
      {list === "jobs" && <Jobs filters={filters} onTypes={setTypes} onListed={setListed} />}
    </>
  );
}

interface JobsProps {
  readonly filters: readonly Filter[];
  /** Says which types are on the page, for the filter. */
  readonly onTypes: (types: readonly string[]) => void;
  /** Says how many the list counted, which is newer than the counts of all states. */
  readonly onListed: (listed: Listed) => void;
}

interface Listed {
  readonly state: string | null;
  readonly total: number | undefined;
}

function Jobs({ filters, onTypes, onListed }: JobsProps) {
  const asked = listQuery(query.value, serverNow());
  const isFirstPage = !query.value.has("cursor");
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const isBusy = ids.size > 0;
  const jobs = useResource(
    `jobs ${JSON.stringify({ ...asked, since: query.value.get("last") ?? asked.since })}`,
    (signal) => findJobs(listQuery(query.value, serverNow()), signal),
    {
      // Rows that somebody is choosing from stay where they are.
      // A search reads thousands of rows, so it is made once.
      live: isFirstPage && !isBusy && searchOf(query.value) === null ? 3_000 : false,
    },
  );
  const types = [...new Set(jobs.data?.items.map(({ type }) => type) ?? [])].sort().join(" ");
  useEffect(() => {
    if (types !== "") onTypes(types.split(" "));
  }, [types]);
  const { total, total_is_exact } = jobs.data?.pagination ?? {};
  const state = query.value.get("state");
  useEffect(() => {
    onListed({ state, total: total_is_exact ? total : undefined });
  }, [state, total, total_is_exact]);
  return (
    <>
      <FilterBar filters={filters}>
        <SearchField />
      </FilterBar>
      <StaleNote of={jobs} what="The list" />
      <List jobs={jobs} ids={ids} setIds={setIds} />
    </>
  );
}

function tabsOf(stats: Stats | undefined, listed: Listed): Tab[] {
  // Counts are those of the queue alone: other filters would have to be counted one by one.
  const isCounted = !["type", "last", "since", "until", "search"].some((name) => query.value.has(name));
  const none = { state: null, tab: null, cursor: null, page: null, before: null, kind: null, mode: null };
  const to = (state: string | null) => hrefWith({ ...none, state });
  return [
    { id: "all", title: "All", href: to(null) },
    ...JOB_STATES.map((state) => {
      const isOver = state === "completed" || state === "discarded" || state === "cancelled";
      const own = listed.state === state && !isOver ? listed.total : undefined;
      const count = own ?? stats?.jobs[state];
      const text = count === undefined || !isCounted ? undefined : countText(count);
      const unit = text !== undefined && isOver && count !== 0 ? "in 24 h" : undefined;
      return { id: state, title: STATE_LOOKS[state].word, href: to(state), count: text, unit };
    }),
    {
      id: "timeouts",
      title: "Timeouts",
      href: hrefWith({ ...none, tab: "timeouts", search: null }),
      isApart: true,
    },
    {
      id: "near-misses",
      title: "Near misses",
      href: hrefWith({ ...none, tab: "near-misses", search: null }),
    },
  ];
}

interface ListProps {
  readonly jobs: Resource<Scanned<Job>>;
  readonly ids: ReadonlySet<string>;
  readonly setIds: (ids: ReadonlySet<string>) => void;
}

function List({ jobs, ids, setIds }: ListProps) {
  const [action, setAction] = useState<{ readonly action: BulkAction; readonly target: BulkTarget } | null>(
    null,
  );
  const columns = useMemo(jobColumns, [query.value.get("order")]);
  if (!jobs.data)
    return jobs.error ? (
      <Failure what="The list" error={jobs.error} onRetry={jobs.reload} />
    ) : (
      <div class="tablewrap">
        <Skeleton />
      </div>
    );
  const { items, pagination } = jobs.data;
  const search = searchOf(query.value);
  const foot =
    search === null ? (
      <Foot shown={items.length} pagination={pagination} />
    ) : (
      <ScanFoot
        found={items.length}
        scanned={jobs.data.scanned}
        pagination={pagination}
        what="jobs"
        index={jobs.data.by_index ? "used" : "missing"}
      />
    );
  if (items.length === 0)
    return (
      <>
        <Nothing />
        {search !== null && foot}
      </>
    );
  const start = (name: BulkAction, target: BulkTarget) => setAction({ action: name, target });
  return (
    <>
      <Table
        label="Jobs"
        class="jt"
        rows={items}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`jobs/${id}`)}
        selection={{ ids, set: setIds }}
      />
      {foot}
      <BulkBar
        count={ids.size}
        onClear={() => setIds(new Set())}
        note={<Matching total={pagination.total} onAct={start} />}
      >
        <BulkButtons onAct={(name) => start(name, { job_ids: [...ids] })} />
      </BulkBar>
      {action && (
        <BulkForm
          {...action}
          waiting={waitingOf(items, action.target)}
          onClose={() => setAction(null)}
          onDone={() => {
            setAction(null);
            setIds(new Set());
            jobs.reload();
          }}
        />
      )}
    </>
  );
}

function BulkButtons({ onAct }: { readonly onAct: (action: BulkAction) => void }) {
  return (
    <>
      {(["retry", "cancel", "delete"] as const).map((name) => (
        <Button
          key={name}
          small
          kind={name === "retry" ? "primary" : name === "cancel" ? "danger" : "plain"}
          whyNot={whyNot("operate")}
          onClick={() => onAct(name)}
        >
          {{ retry: "Retry…", cancel: "Cancel…", delete: "Delete…" }[name]}
        </Button>
      ))}
    </>
  );
}

/** The chosen jobs that wait and belong to no workflow; those of a filter are not known one by one. */
function waitingOf(items: readonly Job[], target: BulkTarget): readonly Job[] {
  if (!("job_ids" in target)) return [];
  const ids = new Set(target.job_ids);
  const isWaiting = ({ state }: Job) =>
    state === "available" || state === "scheduled" || state === "pending" || state === "retryable";
  return items.filter((job) => ids.has(job.id) && isWaiting(job) && job.workflow_id === undefined);
}

/** The same action for everything that the filter fits, not only for this page. */
function Matching({
  total,
  onAct,
}: {
  readonly total: number | undefined;
  readonly onAct: (action: BulkAction, target: BulkTarget) => void;
}) {
  const filter = filterOf(query.value, serverNow());
  const { state } = filter;
  const action =
    state === "discarded" ? "retry" : state === "completed" || state === "cancelled" ? "delete" : "cancel";
  if (Object.keys(filter).length === 0 || total === undefined || whyNot("operate")) return null;
  return (
    <button type="button" class="link nowrap" onClick={() => onAct(action, { filter })}>
      or {action} all {countText(total)} that match
    </button>
  );
}

function Foot({
  shown,
  pagination,
}: {
  readonly shown: number;
  readonly pagination: PageOf<Job>["pagination"];
}) {
  const { total, total_is_exact, has_more, next_cursor } = pagination;
  return (
    <div class="foot bare">
      <span>
        {shown} of {total_is_exact ? "" : "more than "}
        {countText(total ?? shown)}
      </span>
      {!total_is_exact && <span>Only the first 10,000 were counted; the list itself is exact.</span>}
      <span class="push rowf">
        <span class="hide-s rowf">
          <kbd>j</kbd> <kbd>k</kbd> move <kbd>x</kbd> select <kbd>Enter</kbd> open
        </span>
        <PageLinks
          next={has_more ? next_cursor : null}
          older={query.value.get("order") === "asc" ? "Newer" : "Older"}
        />
      </span>
    </div>
  );
}

function Nothing() {
  const names = ["search", "state", "queue", "type", "last", "since", "until"].filter((name) =>
    query.value.has(name),
  );
  if (names.length === 0 && !query.value.has("cursor"))
    return (
      <div class="tablewrap">
        <Empty icon="jobs" title="No jobs yet">
          <p>Enqueue one from your code, or over HTTP:</p>
          <div class="code">
            <div>{`curl ${location.origin}/ojs/v1/jobs -H 'Content-Type: application/json' -d '{"type":"hello","args":[]}'`}</div>
          </div>
        </Empty>
      </div>
    );
  return (
    <div class="tablewrap">
      <Empty icon="search" title="No job fits these filters">
        <p class="rowf wrap">
          {names.map((name) => (
            <Button key={name} small onClick={() => setQuery({ [name]: null, cursor: null })}>
              {`Remove ${name}: ${query.value.get(name)?.slice(0, 60)}`}
            </Button>
          ))}
        </p>
      </Empty>
    </div>
  );
}
