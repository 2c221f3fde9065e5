import type { Page as PageOf, UniqueKey } from "../../../ojs/replies/wire-replies.ts";
import { readUniqueKeys } from "../../api/operations.ts";
import { usePage } from "../../api/resource.ts";
import { href } from "../../state/router.ts";
import { Badge, STATE_LOOKS } from "../../ui/badge.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { shortId } from "../../ui/format.ts";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import type { Column } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";

/** Keys that keep other jobs out, and the jobs that hold them. */
export function Page() {
  const keys = usePage("unique keys", readUniqueKeys, 6_000);
  return (
    <>
      <PageHead
        title="Unique keys"
        below="While a job holds a key, another job with the same key is not stored beside it."
      />
      <Shown of={keys} what="The list">
        {(page) => <List page={page} />}
      </Shown>
    </>
  );
}

function List({ page }: { readonly page: PageOf<UniqueKey> }) {
  return (
    <PagedTable
      label="Unique keys"
      page={page}
      isCounted
      columns={COLUMNS}
      idOf={({ key, job_id }) => `${key} ${job_id}`}
      empty={
        <Empty icon="unique" title="No job holds a unique key">
          <p>One job at a time per customer, say:</p>
          <Commands lines={['defineJob({ type: "report.render", unique: { payload: ["customer.id"] } });']} />
        </Empty>
      }
    />
  );
}

const COLUMNS: readonly Column<UniqueKey>[] = [
  {
    id: "key",
    title: "Key",
    phone: "title",
    class: "c-wide",
    render: ({ key }) => (
      <span class="mono clip" title={key}>
        {key}
      </span>
    ),
  },
  {
    id: "job",
    title: "Held by",
    phone: "line",
    class: "c-name",
    render: ({ job_id, type }) => (
      <span class="two">
        <a class="name clip" href={href(`jobs/${job_id}`)}>
          {type ?? "a job that is gone"}
        </a>
        <span class="id">{shortId(job_id)}</span>
      </span>
    ),
  },
  {
    id: "queue",
    title: "Queue",
    phone: "hide",
    class: "c-queue",
    render: ({ queue }) =>
      queue === null ? (
        <span class="t3">–</span>
      ) : (
        <a class="clip" href={href(`queues/${encodeURIComponent(queue)}`)}>
          {queue}
        </a>
      ),
  },
  {
    id: "state",
    title: "State",
    phone: "side",
    render: ({ state }) =>
      state === "gone" ? <span class="t3">gone</span> : <Badge look={STATE_LOOKS[state]} />,
  },
  {
    id: "until",
    title: "Free again",
    class: "t2 nowrap",
    render: ({ locked_until }) =>
      locked_until === undefined ? "when the job ends" : <Time at={locked_until} as="when" />,
  },
];
