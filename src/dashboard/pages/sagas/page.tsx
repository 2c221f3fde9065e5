import type { Saga } from "../../../ojs/replies/saga-replies.ts";
import { useResource } from "../../api/resource.ts";
import { type Listed, readSagas } from "../../api/sagas-and-timeouts.ts";
import { href, query } from "../../state/router.ts";
import { Badge } from "../../ui/badge.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { plural } from "../../ui/format.ts";
import { Pager } from "../../ui/pager.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { type Column, NAME_COLUMN, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";

export const sagaLook = ({ completed_at, pending, compensation }: Saga) =>
  compensation
    ? compensationLook(completed_at, compensation.failed !== null)
    : completed_at !== null
      ? ({ mark: "done", tone: "done", word: "Completed" } as const)
      : pending.length > 0
        ? ({ mark: "scheduled", tone: "wait", word: "Waits" } as const)
        : ({ mark: "waiting", tone: "wait", word: "Open" } as const);

const compensationLook = (completedAt: string | null, hasFailed: boolean) =>
  completedAt !== null
    ? ({ mark: "cancelled", tone: "off", word: "Compensated" } as const)
    : hasFailed
      ? ({ mark: "discarded", tone: "force", word: "Undo failed" } as const)
      : ({ mark: "running", tone: "soft", word: "Compensating" } as const);

export const sagaHref = (type: string, id: string) =>
  href(`sagas/${encodeURIComponent(type)}/${encodeURIComponent(id)}`);

const ORDERS = {
  desc: "By type and id, the last id first: the newest, where ids grow.",
  asc: "By type and id, the first id first.",
} as const;

/** State that waits for messages and timeouts. */
export function Page() {
  const type = query.value.get("type");
  const cursor = query.value.get("cursor");
  const order = query.value.get("order") === "asc" ? "asc" : "desc";
  const sagas = useResource(
    `sagas ${type} ${order} ${cursor}`,
    (signal) => readSagas({ type, order, cursor }, signal),
    { live: cursor === null ? 6_000 : false },
  );
  const types = [...new Set(sagas.data?.items.map((saga) => saga.type) ?? [])];
  return (
    <>
      <PageHead
        title="Sagas"
        below={`Each keeps a state and waits for messages and timeouts. ${ORDERS[order]}`}
      />
      <FilterBar
        drops={["cursor"]}
        filters={[
          { name: "type", label: "type", options: types.map((one) => [one, one]), isFree: true },
          { name: "order", label: "order", options: [["asc", "first ids first"]] },
        ]}
      />
      <Shown of={sagas} what="The list" offers="sagas">
        {(page) => <List page={page} isFiltered={type !== null} />}
      </Shown>
    </>
  );
}

function List({ page, isFiltered }: { readonly page: Listed<Saga>; readonly isFiltered: boolean }) {
  const { items } = page;
  if (items.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="sagas" title={isFiltered ? "No saga of this type" : "No sagas yet"}>
          {!isFiltered && (
            <>
              <p>A saga is here as soon as a message starts one:</p>
              <Commands lines={['await engine.send(order, "placed", { orderId: "o-77310" });']} />
            </>
          )}
        </Empty>
      </div>
    );
  return (
    <>
      <Table
        label="Sagas"
        rows={items}
        columns={COLUMNS}
        idOf={({ type, id }) => JSON.stringify([type, id])}
        hrefOf={({ type, id }) => sagaHref(type, id)}
      />
      <Pager shown={items.length} next={page.pagination?.next_cursor} />
    </>
  );
}

const COLUMNS: readonly Column<Saga>[] = [
  {
    id: "id",
    title: "Saga",
    ...NAME_COLUMN,
    render: ({ type, id }) => (
      <span class="two">
        <a class="name clip mono" href={sagaHref(type, id)} title={id}>
          {id}
        </a>
        <small class="clip">{type}</small>
      </span>
    ),
  },
  { id: "state", title: "State", phone: "side", render: (saga) => <Badge look={sagaLook(saga)} /> },
  {
    id: "pending",
    title: "Waits for",
    class: "c-tags",
    render: ({ pending }) =>
      pending.length === 0 ? (
        <span class="t3">no timeout</span>
      ) : (
        <span class="tags">
          {pending.slice(0, 3).map(({ id, name }) => (
            <span class="tag" key={id}>
              {name}
            </span>
          ))}
          {pending.length > 3 && <span class="tag">{plural(pending.length - 3, "more", "more")}</span>}
        </span>
      ),
  },
  {
    id: "changed",
    title: "Changed",
    isNumber: true,
    class: "t2 nowrap",
    render: ({ changed_at }) => <Time at={changed_at} />,
  },
  {
    id: "started",
    title: "Started",
    isNumber: true,
    hide: "narrow",
    phone: "hide",
    class: "t2 nowrap",
    render: ({ started_at }) => <Time at={started_at} />,
  },
];
