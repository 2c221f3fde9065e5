import type { Fields } from "../target/target.ts";
import type { TopData } from "./data.ts";

export const PANES = ["queues", "workers", "running", "failed"] as const;
export type Pane = (typeof PANES)[number];

/** What a person asked for, after a confirmation where one is needed. */
export type TopAction =
  | { readonly name: "cancel" | "retry"; readonly id: string }
  | { readonly name: "pause" | "resume"; readonly queue: string }
  | { readonly name: "why"; readonly id: string };

/** What a person sees and types. */
export interface TopState {
  readonly pane: Pane;
  /** The selected row of each pane, by its name or id, so that it stays selected when rows move. */
  readonly selected: Readonly<Partial<Record<Pane, string>>>;
  readonly sort: Readonly<Record<Pane, number>>;
  readonly isReversed: boolean;
  readonly filter: string;
  readonly mode: "browse" | "filter" | "confirm" | "help" | "page";
  readonly asked: TopAction | null;
  /** The text of mode `page`. */
  readonly page: string;
  /** The outcome of the last action. */
  readonly message: string;
}

export const START: TopState = {
  pane: "running",
  selected: {},
  sort: { queues: 0, workers: 0, running: 0, failed: 0 },
  isReversed: false,
  filter: "",
  mode: "browse",
  asked: null,
  page: "",
  message: "",
};

interface Order {
  readonly name: string;
  readonly by: (row: Fields) => number | string;
}

const instantOf = (value: unknown, missing: number) =>
  typeof value === "string" ? Date.parse(value) : missing;
const countOf = (queue: Fields, state: string) => Number((queue.counts as Fields)[state]);

/** How each pane can be sorted; the first is how it starts. */
export const ORDERS: Readonly<Record<Pane, readonly Order[]>> = {
  queues: [
    { name: "name", by: ({ name }) => String(name) },
    { name: "ready", by: (queue) => -countOf(queue, "available") },
    { name: "oldest wait", by: ({ oldest_wait_ms }) => -Number(oldest_wait_ms ?? -1) },
  ],
  workers: [
    { name: "id", by: ({ id }) => String(id) },
    { name: "running", by: ({ active_jobs }) => -Number(active_jobs) },
    { name: "last beat", by: ({ last_heartbeat_at }) => instantOf(last_heartbeat_at, 0) },
  ],
  running: [
    { name: "deadline", by: ({ deadline_at }) => instantOf(deadline_at, Number.POSITIVE_INFINITY) },
    { name: "start", by: ({ started_at }) => instantOf(started_at, 0) },
    { name: "type", by: ({ type }) => String(type) },
    { name: "queue", by: ({ queue }) => String(queue) },
  ],
  failed: [
    { name: "newest", by: ({ discarded_at }) => -instantOf(discarded_at, 0) },
    { name: "type", by: ({ type }) => String(type) },
  ],
};

function idOf(pane: Pane, row: Fields): string {
  return String(pane === "queues" ? row.name : row.id);
}

/** The rows of a pane as they are shown: filtered and sorted. */
export function rowsOf(data: TopData, state: TopState, pane: Pane): readonly Fields[] {
  const text = state.filter.toLowerCase();
  const { by } = ORDERS[pane][state.sort[pane]] as Order;
  const factor = state.isReversed && pane === state.pane ? -1 : 1;
  const matches = ({ id, name, type, queue, queues }: Fields) =>
    [id, name, type, queue, queues].some((each) =>
      String(each ?? "")
        .toLowerCase()
        .includes(text),
    );
  return data[pane]
    .filter(matches)
    .map((row) => ({ row, key: by(row), id: idOf(pane, row) }))
    .sort((a, b) => factor * (compare(a.key, b.key) || compare(a.id, b.id)))
    .map(({ row }) => row);
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The index of the selected row; the first if the selected one is gone. */
export function selectedIndex(rows: readonly Fields[], state: TopState, pane: Pane): number {
  const at = rows.findIndex((row) => idOf(pane, row) === state.selected[pane]);
  return Math.max(0, at);
}

export interface Pressed {
  readonly state: TopState;
  /** What to do now. */
  readonly action?: TopAction | "quit" | "refresh";
}

/** What a key does. Keys are as Node's readline names them: "up", "tab", "escape", or the character itself. */
export function press(state: TopState, key: string, data: TopData): Pressed {
  if (state.mode === "filter") return { state: typeFilter(state, key) };
  if (state.mode === "confirm") return confirmed(state, key);
  if (state.mode === "help" || state.mode === "page")
    return { state: { ...state, mode: "browse", page: "" } };
  const moved = { ...state, message: "" };
  const pane = PANES[Number(key) - 1];
  if (pane) return { state: { ...moved, pane } };
  switch (key) {
    case "q":
      return { state, action: "quit" };
    case "tab":
      return { state: { ...moved, pane: PANES[(PANES.indexOf(state.pane) + 1) % PANES.length] as Pane } };
    case "up":
    case "k":
      return { state: move(moved, data, -1) };
    case "down":
    case "j":
      return { state: move(moved, data, 1) };
    case "s": {
      const next = (state.sort[state.pane] + 1) % ORDERS[state.pane].length;
      return { state: { ...moved, sort: { ...state.sort, [state.pane]: next } } };
    }
    case "S":
      return { state: { ...moved, isReversed: !state.isReversed } };
    case "/":
      return { state: { ...moved, mode: "filter" } };
    case "escape":
      return { state: { ...moved, filter: "" } };
    case "?":
    case "h":
      return { state: { ...moved, mode: "help" } };
    case "space":
      return { state: moved, action: "refresh" };
    default:
      return asked(moved, key, data);
  }
}

function move(state: TopState, data: TopData, by: number): TopState {
  const rows = rowsOf(data, state, state.pane);
  const at = Math.min(Math.max(0, selectedIndex(rows, state, state.pane) + by), rows.length - 1);
  const row = rows[at];
  if (!row) return state;
  return { ...state, selected: { ...state.selected, [state.pane]: idOf(state.pane, row) } };
}

function typeFilter(state: TopState, key: string): TopState {
  if (key === "return") return { ...state, mode: "browse" };
  if (key === "escape") return { ...state, mode: "browse", filter: "" };
  if (key === "backspace") return { ...state, filter: state.filter.slice(0, -1) };
  const character = key === "space" ? " " : key;
  return character.length === 1 && state.filter.length < 60
    ? { ...state, filter: state.filter + character }
    : state;
}

/** Actions that change something are confirmed with y; every other key leaves things as they are. */
function confirmed(state: TopState, key: string): Pressed {
  const browsing: TopState = { ...state, mode: "browse", asked: null };
  if (key === "y" && state.asked) return { state: browsing, action: state.asked };
  return { state: { ...browsing, message: "Nothing was changed." } };
}

function asked(state: TopState, key: string, data: TopData): Pressed {
  const { pane } = state;
  const rows = rowsOf(data, state, pane);
  const row = rows[selectedIndex(rows, state, pane)];
  if (!row) return { state };
  const id = idOf(pane, row);
  const isJob = pane === "running" || pane === "failed";
  if (isJob && (key === "return" || key === "w")) return { state, action: { name: "why", id } };
  const action = actionOf(key, pane, row, id);
  if (!action) return { state };
  // The question names this row, so it stays selected even if rows move.
  const selected = { ...state.selected, [pane]: id };
  return { state: { ...state, selected, mode: "confirm", asked: action } };
}

function actionOf(key: string, pane: Pane, row: Fields, id: string): TopAction | undefined {
  if (key === "c" && pane === "running") return { name: "cancel", id };
  if (key === "r" && pane === "failed") return { name: "retry", id };
  if (key === "p" && pane === "queues") return { name: row.paused === true ? "resume" : "pause", queue: id };
  return undefined;
}
