import type { AuditEntry, Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import { readAudit } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { shortId } from "../../ui/format.ts";
import { Pager } from "../../ui/pager.tsx";
import { Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { detailsText, jobsText, namedTarget } from "./details-text.ts";

const PER_PAGE = 50;
const ACTIONS = [
  "job.*",
  "queue.*",
  "worker.*",
  "cron.*",
  "limit.*",
  "maintenance.*",
  "timeout.*",
  "saga.*",
  "webhook.*",
  "schema.*",
  "calendar.*",
  "tenant.*",
] as const;
const FILTERS = ["actor", "action", "queue", "job"] as const;

/** What people did, and why. */
export function Page() {
  const value = (name: string) => query.value.get(name);
  const filter = Object.fromEntries(FILTERS.map((name) => [name, value(name)]));
  const cursor = value("cursor");
  const entries = useResource(
    `audit ${JSON.stringify(filter)} ${cursor}`,
    (signal) => readAudit(filter, cursor, PER_PAGE, signal),
    { live: cursor === null ? 6_000 : false },
  );
  return (
    <>
      <PageHead
        title="Audit"
        below="Who did what, when and why. An entry is written in the commit of the action itself."
      />
      <FilterBar
        filters={[
          { name: "actor", label: "who", isFree: true },
          { name: "action", label: "action", options: ACTIONS.map((one) => [one, one]), isFree: true },
          { name: "queue", label: "queue", isFree: true },
          { name: "job", label: "job", isFree: true, placeholder: "the id of a job" },
        ]}
      />
      <Shown of={entries} what="The list">
        {(page) => <List page={page} isFiltered={FILTERS.some((name) => value(name) !== null)} />}
      </Shown>
    </>
  );
}

function List({ page, isFiltered }: { readonly page: PageOf<AuditEntry>; readonly isFiltered: boolean }) {
  const { items, pagination } = page;
  return (
    <>
      {items.length === 0 ? (
        <div class="tablewrap">
          <Empty
            icon="audit"
            title={isFiltered ? "No entry fits these filters" : "Nobody has done anything yet"}
          >
            {!isFiltered && (
              <p>
                Every retry, cancel, pause and change by a person is entered here, with the reason they gave.
              </p>
            )}
          </Empty>
        </div>
      ) : (
        <Table label="Audit" rows={items} columns={COLUMNS} idOf={({ id }) => id} />
      )}
      <Pager shown={items.length} next={pagination.next_cursor} older="Older" />
    </>
  );
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  {
    id: "at",
    title: "When",
    phone: "side",
    class: "nowrap t2",
    render: ({ at }) => <Time at={at} as="when" />,
  },
  {
    id: "actor",
    title: "Who",
    phone: "title",
    class: "c-queue",
    render: ({ actor }) => (
      <a class="name clip" href={hrefWith({ actor, cursor: null })}>
        {actor}
      </a>
    ),
  },
  {
    id: "action",
    title: "Did",
    phone: "line",
    render: ({ action }) => (
      <a href={hrefWith({ action, cursor: null })}>
        <code>{action}</code>
      </a>
    ),
  },
  { id: "what", title: "To", phone: "line", class: "c-name", render: (entry) => <Target entry={entry} /> },
  {
    id: "details",
    title: "Details",
    phone: "hide",
    class: "c-details t2",
    render: (entry) => {
      const text = detailsText(entry);
      return text ? (
        <span class="clip small" title={text}>
          {text}
        </span>
      ) : null;
    },
  },
  {
    id: "reason",
    title: "Why",
    phone: "line",
    class: "c-wide",
    render: ({ reason }) =>
      reason ? <span class="anywhere">{reason}</span> : <span class="t3">no reason given</span>,
  },
];

function Target({ entry }: { readonly entry: AuditEntry }) {
  const { job_id, queue } = entry;
  if (job_id)
    return (
      <a class="id" href={href(`jobs/${job_id}`)}>
        {shortId(job_id)}
      </a>
    );
  if (queue)
    return (
      <a class="clip" href={href(`queues/${encodeURIComponent(queue)}`)}>
        {queue}
      </a>
    );
  const named = namedTarget(entry);
  if (named)
    return (
      <a class="clip" href={href(named.path)} title={named.name}>
        {named.name}
      </a>
    );
  return <span class="t3">{jobsText(entry)}</span>;
}
