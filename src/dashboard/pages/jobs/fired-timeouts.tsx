import { findFiredTimeouts } from "../../api/jobs.ts";
import { useResource } from "../../api/resource.ts";
import type { FiredTimeout } from "../../api/wire-limits.ts";
import { href, query } from "../../state/router.ts";
import { LimitLetter, type LimitName } from "../../ui/badge.tsx";
import { Callout, Empty } from "../../ui/callout.tsx";
import { countText, durationText, limitText, shortId } from "../../ui/format.ts";
import { Mark } from "../../ui/icon.tsx";
import { Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";

const MOST = 200;

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
  {
    id: "job",
    title: "Job",
    phone: "title",
    class: "c-job",
    render: ({ job_id, type }) => (
      <span class="two">
        <a class="name clip" href={href(`jobs/${job_id}`)} title={type ?? ""}>
          {type ?? "unknown type"}
        </a>
        <span class="id">{shortId(job_id)}</span>
      </span>
    ),
  },
  {
    id: "queue",
    title: "Queue",
    hide: "narrow",
    phone: "hide",
    class: "c-queue",
    render: ({ queue }) => <span class="clip">{queue ?? "–"}</span>,
  },
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

/** Every firing of a limit, the newest first. */
export function FiredList() {
  const names = ["queue", "type", "kind", "mode"] as const;
  const asked = Object.fromEntries(names.map((name) => [name, query.value.get(name)]));
  const fired = useResource(
    `fired ${JSON.stringify(asked)}`,
    (signal) => findFiredTimeouts({ ...asked, per_page: MOST }, signal),
    { live: 3_000 },
  );
  return (
    <Shown of={fired} what="The fired timeouts" offers="fired timeouts">
      {({ items, is_recording, scanned = 0, is_complete }) => (
        <>
          {!is_recording && (
            <Callout tone="soft">
              <p>This server records no events now, so timeouts that fire are not listed.</p>
            </Callout>
          )}
          {items.length === 0 ? (
            <div class="tablewrap">
              <Empty icon="timeouts" title="No timeout has fired">
                <p>Every limit was kept, as far as the last {countText(scanned)} events say.</p>
              </Empty>
            </div>
          ) : (
            <Table
              label="Fired timeouts"
              class="jt"
              rows={items}
              columns={COLUMNS}
              idOf={({ id }) => id}
              hrefOf={({ job_id }) => href(`jobs/${job_id}`)}
            />
          )}
          <div class="foot bare">
            <span>
              {countText(items.length)} shown
              {is_complete
                ? ""
                : `; out of the last ${countText(scanned)} recorded events, there may be older ones`}
            </span>
          </div>
        </>
      )}
    </Shown>
  );
}
