import type { NearMiss } from "../../../ojs/replies/timeout-replies.ts";
import { findNearMisses } from "../../api/jobs.ts";
import { useResource } from "../../api/resource.ts";
import { serverNow } from "../../state/clock.ts";
import { href, query } from "../../state/router.ts";
import { Empty } from "../../ui/callout.tsx";
import { DeadlineBar } from "../../ui/deadline-bar.tsx";
import { limitText, percentText } from "../../ui/format.ts";
import { Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { namingColumns } from "./columns.tsx";
import { filterOf } from "./filters.ts";
import { ScanFoot } from "./scan-foot.tsx";

const PER_PAGE = 50;

const nameOf = ({ kind }: NearMiss) => (kind === "total" ? "total" : "attempt");

const COLUMNS: readonly Column<NearMiss>[] = [
  ...namingColumns<NearMiss>(({ job }) => job),
  {
    id: "limit",
    title: "Limit",
    phone: "line",
    class: "c-dl",
    render: (row) => (
      <DeadlineBar
        view={{
          name: nameOf(row),
          used: Math.min(row.late ? 1.2 : 1, row.used),
          look: row.late ? "late" : "near",
          hasGrace: row.kind === "execution",
          text: `${percentText(row.used)} of ${limitText(asSet(row.limit_ms))}`,
        }}
      />
    ),
  },
  {
    id: "how",
    title: "How near",
    class: "t2",
    render: ({ late, used }) =>
      late ? "completed after the signal, within its grace" : `${percentText(1 - used)} to spare`,
  },
  {
    id: "at",
    title: "Completed",
    isNumber: true,
    class: "t2 nowrap",
    render: ({ job }) => <Time at={job.completed_at} />,
  },
];

/** The server counts from the stored start, which is some milliseconds off; nobody sets a limit of 2,004 ms. */
function asSet(limit: number): number {
  const step = limit >= 1_000 ? 100 : 1;
  return Math.round(limit / step) * step;
}

/** Jobs that completed, and nearly did not: the limits to raise before they fire. */
export function NearMissList() {
  const asked = () => {
    const { state: _state, ...filter } = filterOf(query.value, serverNow());
    return { ...filter, per_page: PER_PAGE, cursor: query.value.get("cursor") };
  };
  const isFirstPage = !query.value.has("cursor");
  const near = useResource(
    `near ${query.value.toString()}`,
    (signal) => findNearMisses(asked(), signal),
    // A request reads thousands of rows, so it is repeated rarely.
    { live: isFirstPage ? 15_000 : false },
  );
  return (
    <Shown of={near} what="The near misses" offers="near misses">
      {({ items, scanned, pagination }) => (
        <>
          {items.length === 0 ? (
            <div class="tablewrap">
              <Empty icon="advice" title="No job came near a limit">
                <p>
                  Listed are jobs that completed with more than 80 % of a limit used, or after their signal.
                </p>
              </Empty>
            </div>
          ) : (
            <Table
              label="Near misses"
              class="jt"
              rows={items}
              columns={COLUMNS}
              idOf={({ job }) => job.id}
              hrefOf={({ job }) => href(`jobs/${job.id}`)}
            />
          )}
          <ScanFoot found={items.length} scanned={scanned} pagination={pagination} what="completed jobs" />
        </>
      )}
    </Shown>
  );
}
