import type { FiredTimeout, FiredTimeouts } from "../../../ojs/replies/timeout-replies.ts";
import { findFiredTimeouts } from "../../api/jobs.ts";
import { useResource } from "../../api/resource.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { LimitLetter } from "../../ui/badge.tsx";
import { Callout, Empty } from "../../ui/callout.tsx";
import { countText, durationText, limitText, plural } from "../../ui/format.ts";
import { Icon, Mark } from "../../ui/icon.tsx";
import type { LimitName } from "../../ui/look.ts";
import { Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { namingColumns } from "./columns.tsx";

const PER_PAGE = 50;

const LIMITS: Readonly<Record<string, LimitName>> = {
  execution: "attempt",
  total: "total",
  enqueue_ttl: "wait",
  stalled: "heartbeat",
  visibility: "heartbeat",
};

/** What the timeout did, in the words of the timeline. */
function outcomeOf({ kind, forced, mode, elapsed_ms, limit_ms }: FiredTimeout): string {
  if (kind === "enqueue_ttl") return "never started";
  if (kind === "stalled") return "no beat in time";
  const over = elapsed_ms !== null && limit_ms !== null ? elapsed_ms - limit_ms : 0;
  const end = forced ? "ended by force" : "the handler stopped";
  const after = over > 0 ? `, ${durationText(over)} after the limit` : "";
  return `${end}${after}${mode === "discard" ? "; discarded at once" : ""}`;
}

const COLUMNS: readonly Column<FiredTimeout>[] = [
  {
    id: "kind",
    title: "Limit",
    phone: "side",
    render: ({ kind }) => {
      const name = LIMITS[kind ?? ""];
      return name ? (
        <span class="rowf">
          <LimitLetter name={name} as="fired" /> {kind === "visibility" ? kind : name}
        </span>
      ) : (
        (kind ?? "unknown")
      );
    },
  },
  ...namingColumns<FiredTimeout>(({ job_id, type, queue }) => ({ id: job_id, type, queue })),
  {
    id: "attempt",
    title: "Attempt",
    isNumber: true,
    phone: "hide",
    render: ({ attempt }) => (attempt === null || attempt === 0 ? "–" : attempt),
  },
  {
    id: "limit",
    title: "Limit was",
    isNumber: true,
    render: ({ limit_ms }) => (limit_ms === null ? "–" : limitText(limit_ms)),
  },
  {
    id: "ran",
    title: "It took",
    isNumber: true,
    phone: "hide",
    render: ({ elapsed_ms }) => (elapsed_ms === null ? "–" : durationText(elapsed_ms)),
  },
  {
    id: "what",
    title: "What happened",
    phone: "line",
    class: "t2",
    render: (row) => (
      <span class="rowf">
        <Mark name={row.forced ? "discarded" : "grace"} />
        <span class="clip">{outcomeOf(row)}</span>
      </span>
    ),
  },
  { id: "at", title: "Fired", isNumber: true, class: "t2 nowrap", render: ({ at }) => <Time at={at} /> },
];

/** Every firing of a limit, the newest first. Beyond the newest events it is searched step by step, as far as the viewer asks. */
export function FiredList() {
  const names = ["queue", "type", "kind", "mode", "before"] as const;
  const asked = Object.fromEntries(names.map((name) => [name, query.value.get(name)]));
  const page = Math.max(1, Number(query.value.get("page")) || 1);
  const isNewest = page === 1 && asked.before === null;
  const fired = useResource(
    `fired ${page} ${JSON.stringify(asked)}`,
    (signal) => findFiredTimeouts({ ...asked, page, per_page: PER_PAGE }, signal),
    { live: isNewest ? 3_000 : false },
  );
  return (
    <Shown of={fired} what="The fired timeouts" offers="fired timeouts">
      {(found) => (
        <>
          {!found.is_recording && (
            <Callout tone="soft">
              <p>This server records no events now, so timeouts that fire are not listed.</p>
            </Callout>
          )}
          {found.items.length === 0 ? (
            <div class="tablewrap">
              <Empty
                icon="timeouts"
                title={found.before == null ? "No timeout has fired" : "No timeout fired in this time"}
              >
                <p>Every limit was kept, as far as {countText(found.scanned ?? 0)} recorded events say.</p>
              </Empty>
            </div>
          ) : (
            <Table
              label="Fired timeouts"
              class="jt"
              rows={found.items}
              columns={COLUMNS}
              idOf={({ id }) => id}
              hrefOf={({ job_id }) => href(`jobs/${job_id}`)}
            />
          )}
          <FiredFoot found={found} page={page} isNewest={isNewest} />
        </>
      )}
    </Shown>
  );
}

interface FootProps {
  readonly found: FiredTimeouts;
  readonly page: number;
  readonly isNewest: boolean;
}

function FiredFoot({ found, page, isNewest }: FootProps) {
  const { items, scanned = 0, pagination, searched_from, before } = found;
  const first = (page - 1) * PER_PAGE + 1;
  const last = first + items.length - 1;
  const isPart = before != null || pagination.total_is_exact === false;
  return (
    <div class="foot bare">
      <span>
        {pagination.total === undefined
          ? plural(items.length, "timeout")
          : items.length > 0 && `${countText(first)} to ${countText(last)} of ${countText(pagination.total)}`}
        {items.length > 0 || pagination.total === undefined ? ", " : ""}
        {isPart ? (
          <>
            out of {plural(scanned, "event")}
            {searched_from && (
              <>
                , back to <Time at={searched_from} />
              </>
            )}
          </>
        ) : (
          "nothing older is recorded"
        )}
      </span>
      <span class="push rowf">
        {!isNewest && (
          <a class="btn small" href={hrefWith({ before: null, page: page > 2 ? String(page - 1) : null })}>
            {page > 1 ? "Newer" : "Newest"}
          </a>
        )}
        {pagination.has_more && (
          <a class="btn small" href={hrefWith({ page: String(page + 1) })}>
            Older
            <Icon name="right" small />
          </a>
        )}
        {before != null && (
          <a class="btn small" href={hrefWith({ before, page: null })}>
            Look further back
            <Icon name="right" small />
          </a>
        )}
      </span>
    </div>
  );
}
