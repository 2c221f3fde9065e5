import { JOB_STATES, type JobState } from "../../../ojs/replies/wire-replies.ts";
import type { Query } from "../../api/client.ts";
import type { Filter } from "../../ui/filter-bar.tsx";

/** What the list can be filtered by. The names are those in the URL. Except `last`, they are also those of the interface. */
export function filtersOf(queues: readonly string[], types: readonly string[]): readonly Filter[] {
  return [
    { name: "queue", label: "queue", options: queues.map((name) => [name, name]), isFree: true },
    {
      name: "type",
      label: "type",
      options: types.map((name) => [name, name]),
      isFree: true,
      placeholder: "report.render",
    },
    {
      name: "last",
      label: "created",
      verb: "in the last",
      options: [
        ["15m", "15 m"],
        ["1h", "1 h"],
        ["6h", "6 h"],
        ["1d", "24 h"],
        ["7d", "7 d"],
      ],
    },
    { name: "since", label: "created", verb: "from", placeholder: "2026-11-02T15:00:00Z" },
    { name: "until", label: "created", verb: "before", placeholder: "2026-11-02T16:00:00Z" },
  ];
}

const SPANS: Readonly<Record<string, number>> = {
  "15m": 900_000,
  "1h": 3_600_000,
  "6h": 21_600_000,
  "1d": 86_400_000,
  "7d": 604_800_000,
};

export function stateOf(query: URLSearchParams): JobState | undefined {
  const state = query.get("state") as JobState | null;
  return state !== null && JOB_STATES.includes(state) ? state : undefined;
}

/** The filter as the interface takes it, for the list and for bulk actions. */
export function filterOf(query: URLSearchParams, now: number): Readonly<Record<string, string>> {
  const last = SPANS[query.get("last") ?? ""];
  const since =
    last === undefined
      ? query.get("since")
      : new Date(Math.floor((now - last) / 60_000) * 60_000).toISOString();
  const all: Record<string, string | null | undefined> = {
    state: stateOf(query),
    queue: query.get("queue"),
    type: query.get("type"),
    since,
    until: query.get("until"),
  };
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}

/** Lists beside that of the jobs; each has an address of its own. */
export type ListName = "jobs" | "timeouts" | "near-misses";

export function listOf(query: URLSearchParams): ListName {
  const tab = query.get("tab");
  return tab === "timeouts" || tab === "near-misses" ? tab : "jobs";
}

const KINDS = [
  ["execution", "attempt"],
  ["total", "total"],
  ["enqueue_ttl", "wait"],
  ["stalled", "heartbeat"],
] as const;

/** What the list of fired timeouts can be filtered by. */
export function firedFilters(filters: readonly Filter[]): readonly Filter[] {
  return [
    ...filters.filter(({ name }) => name === "queue" || name === "type"),
    { name: "kind", label: "limit", options: KINDS },
    {
      name: "mode",
      label: "mode",
      options: [
        ["fail", "fail: may be retried"],
        ["discard", "discard: ends the job"],
      ],
    },
  ];
}

/** A text that is too short is found in nearly every payload, so the server refuses it. */
const SHORTEST_SEARCH = 2;

export function searchOf(query: URLSearchParams): string | null {
  const text = query.get("search")?.trim() ?? "";
  return text.length < SHORTEST_SEARCH ? null : text;
}

const PER_PAGE = 50;

export function listQuery(query: URLSearchParams, now: number): Query {
  const order = query.get("order") === "asc" ? "asc" : "desc";
  const search = searchOf(query);
  return { ...filterOf(query, now), search, per_page: PER_PAGE, cursor: query.get("cursor"), order };
}
