import { stripVTControlCharacters } from "node:util";
import { attemptText, errorText } from "../output/job-table.ts";
import { dim, paint, paintState, printable } from "../output/paint.ts";
import { type Column, tableText } from "../output/table.ts";
import { terminalWidth } from "../output/terminal-width.ts";
import { relativeText, spanText } from "../output/times.ts";
import { cutTo, displayWidth } from "../output/width.ts";
import { workerColumns } from "../output/worker-columns.ts";
import { wrapText } from "../output/wrap.ts";
import type { Fields } from "../target/target.ts";
import type { TopData } from "./data.ts";
import { ORDERS, PANES, type Pane, rowsOf, selectedIndex, type TopAction, type TopState } from "./state.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

const BAR = 8;

/** How much of its time a running job has used: `████░░░░ 12s left`. */
export function deadlineText(job: Fields, now: number): string {
  const { deadline_at, started_at } = job;
  if (typeof deadline_at !== "string") return dim("no timeout");
  const end = Date.parse(deadline_at);
  const left = end - now;
  if (left <= 0) return paint("red", `${"█".repeat(BAR)} ${spanText(-left)} over`);
  const start = typeof started_at === "string" ? Date.parse(started_at) : now;
  const share = end === start ? 1 : Math.min(1, Math.max(0, (now - start) / (end - start)));
  const filled = Math.floor(share * BAR);
  const text = `${"█".repeat(filled)}${"░".repeat(BAR - filled)} ${spanText(left)} left`;
  return share > 0.8 ? paint("yellow", text) : text;
}

const count =
  (state: string): Column<Fields>["show"] =>
  (queue) =>
    String((queue.counts as Fields)[state]);

const wait = (value: unknown) => (typeof value === "number" ? spanText(value) : "-");

const WHICH_JOB: readonly Column<Fields>[] = [
  { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 12 },
  { title: "QUEUE", show: ({ queue }) => printable(String(queue)), shrinkTo: 8, drop: 1 },
  { title: "TRY", show: (job) => attemptText(job), align: "right", drop: 3 },
];

const COLUMNS: Readonly<Record<Pane, (now: number) => readonly Column<Fields>[]>> = {
  queues: () => [
    { title: "QUEUE", show: ({ name }) => printable(String(name)), shrinkTo: 12 },
    { title: "STATE", show: ({ paused }) => paintState(paused ? "paused" : "active") },
    { title: "READY", show: count("available"), align: "right" },
    { title: "LATER", show: count("scheduled"), align: "right", drop: 3 },
    { title: "RETRY", show: count("retryable"), align: "right", drop: 2 },
    { title: "RUNS", show: count("active"), align: "right" },
    { title: "OLDEST WAIT", show: ({ oldest_wait_ms }) => wait(oldest_wait_ms), align: "right", drop: 1 },
    {
      title: "PER MINUTE",
      show: ({ throughput }) => String((throughput as Fields).processed_per_minute ?? 0),
      align: "right",
      drop: 4,
    },
    { title: "", show: ({ unattended }) => (unattended ? paint("yellow", "no worker takes it") : "") },
  ],
  workers: (now) => [...workerColumns(now, { shrinkTo: 14 })],
  running: (now) => [
    { title: "DEADLINE", show: (job) => deadlineText(job, now) },
    ...WHICH_JOB,
    { title: "RUNS FOR", show: ({ started_at }) => sinceText(started_at, now), align: "right", drop: 2 },
    { title: "ID", show: ({ id }) => String(id), shrinkTo: 14 },
  ],
  failed: (now) => [
    { title: "FAILED", show: ({ discarded_at }) => relativeText(discarded_at, now) },
    ...WHICH_JOB,
    { title: "ERROR", show: ({ error }) => paint("red", printable(errorText(error))), shrinkTo: 16 },
    { title: "ID", show: ({ id }) => String(id), shrinkTo: 14 },
  ],
};

function sinceText(at: unknown, now: number): string {
  return typeof at === "string" ? spanText(Math.max(0, now - Date.parse(at))) : "-";
}

/** One line of figures: jobs, pace, and how late deadlines fire. */
function summaryText(data: TopData): string {
  const { stats } = data;
  const jobs = stats.jobs as Fields;
  const { processed_per_minute, failed_per_minute } = stats.throughput as Fields;
  const timeouts = Object.values(stats.timeouts_per_minute as Fields).reduce<number>(
    (sum, each) => sum + Number(each),
    0,
  );
  const { total, sum_ms } = stats.deadline_lateness as Fields;
  // Only a process that fires deadlines knows how late they are: a server or worker, not this command.
  const late = Number(total) === 0 ? [] : [`late ${spanText(Number(sum_ms) / Number(total))}`];
  const over = data.running.filter(
    ({ deadline_at }) => typeof deadline_at === "string" && Date.parse(deadline_at) < data.at,
  ).length;
  return [
    `ready ${jobs.available}`,
    `running ${jobs.active}`,
    over === 0 ? "overdue 0" : paint("red", `overdue ${over}`),
    `done ${processed_per_minute}/m`,
    Number(failed_per_minute) === 0 ? "failed 0/m" : paint("yellow", `failed ${failed_per_minute}/m`),
    `timeouts ${Math.round(timeouts * 100) / 100}/m`,
    ...late,
  ].join("  ");
}

const NOTHING: Readonly<Record<Pane, string>> = {
  queues: "no queues",
  workers: "no workers: nothing runs jobs",
  running: "no job runs now",
  failed: "no job was discarded lately",
};

function paneLines(data: TopData, state: TopState, pane: Pane, now: number, size: Size): string[] {
  const rows = rowsOf(data, state, pane);
  const isFocused = pane === state.pane;
  const order = `by ${ORDERS[pane][state.sort[pane]]?.name}${isFocused && state.isReversed ? ", reversed" : ""}`;
  const name = `${PANES.indexOf(pane) + 1} ${pane.toUpperCase()} ${rows.length}`;
  const title = `${isFocused ? paint(["bold", "cyan"], name) : paint("bold", name)} ${dim(order)}`;
  if (rows.length === 0) return [title, dim(`  ${NOTHING[pane]}`)];
  const [head = "", ...lines] = tableText(COLUMNS[pane](now), rows, size.columns - 2).split("\n");
  const room = Math.max(1, size.rows - 2);
  const at = selectedIndex(rows, state, pane);
  const from = Math.min(Math.max(0, at - room + 1), Math.max(0, lines.length - room));
  const shown = lines.slice(from, from + room).map((line, index) => {
    if (!isFocused || from + index !== at) return `  ${line}`;
    const text = `▸ ${stripVTControlCharacters(line)}`;
    return paint("inverse", text + " ".repeat(Math.max(0, size.columns - displayWidth(text))));
  });
  return [title, `  ${head}`, ...shown];
}

/** Rows for each pane: the focused one and the jobs get what the others leave. */
function heights(data: TopData, state: TopState, rows: number): readonly (readonly [Pane, number])[] {
  const jobs: Pane = state.pane === "failed" ? "failed" : "running";
  const shown: readonly Pane[] = ["queues", "workers", jobs];
  const wanted = (pane: Pane) => 2 + Math.max(1, rowsOf(data, state, pane).length);
  const least = Math.max(3, Math.floor(rows / 5));
  const kept = new Map(shown.map((pane) => [pane, Math.min(wanted(pane), least)]));
  let left = rows - [...kept.values()].reduce((sum, each) => sum + each, 0);
  for (const pane of [state.pane, jobs, ...shown]) {
    const more = Math.min(left, wanted(pane) - (kept.get(pane) ?? 0));
    if (more <= 0) continue;
    kept.set(pane, (kept.get(pane) ?? 0) + more);
    left -= more;
  }
  return shown.map((pane) => [pane, kept.get(pane) ?? 0]);
}

const HELP = [
  "1 2 3 4, tab   choose queues, workers, running or failed jobs",
  "↑ ↓, j k       select a row",
  "s              sort by the next column;  S reverses the order",
  "/              filter by name, type, queue or id;  esc clears it",
  "enter, w       why does the selected job not run, not end, or why did it fail",
  "c              cancel the selected running job",
  "r              retry the selected failed job",
  "p              pause or resume the selected queue",
  "space          read again now",
  "q, Ctrl-C      leave",
];

const ACTIONS: Readonly<Record<Pane, string>> = {
  queues: "p pause/resume",
  workers: "",
  running: "enter why  c cancel",
  failed: "enter why  r retry",
};

function questionText(action: TopAction): string {
  if ("queue" in action) return `${action.name} queue ${printable(action.queue)}?`;
  return `${action.name} job ${action.id}?`;
}

function footerText(state: TopState): string {
  if (state.mode === "filter")
    return `filter: ${printable(state.filter)}▏ ${dim("enter keeps it, esc clears it")}`;
  if (state.mode === "confirm" && state.asked)
    return paint("yellow", `${questionText(state.asked)} y does it, any other key does not`);
  if (state.mode !== "browse") return dim("any key goes back");
  const filter = state.filter === "" ? "/ filter" : `filter "${printable(state.filter)}" (esc clears)`;
  const keys = [ACTIONS[state.pane], "s sort", filter, "tab next", "? help", "q quit"].filter(
    (each) => each !== "",
  );
  return dim(keys.join("  "));
}

export interface ScreenOptions extends Size {
  readonly name: string;
  readonly now: number;
  /** Why the last read failed; null if it did not. */
  readonly problem: string | null;
}

/** The whole screen: exactly as many lines as the terminal has. */
export function screenLines(data: TopData, state: TopState, options: ScreenOptions): string[] {
  const { columns, rows, now, problem, name } = options;
  const age = now - data.at;
  const status =
    problem === null
      ? dim(age < 5_000 ? name : `${name}, read ${spanText(age)} ago`)
      : paint("red", `no answer for ${spanText(age)}: ${printable(problem)}`);
  const head = [`${paint("bold", "curfew top")}  ${status}`, summaryText(data), ""];
  const footer = [state.message === "" ? "" : printable(state.message), footerText(state)];
  const room = Math.max(3, rows - head.length - footer.length);
  const body =
    state.mode === "help"
      ? HELP
      : state.mode === "page"
        ? state.page.split("\n")
        : heights(data, state, room).flatMap(([pane, height]) =>
            paneLines(data, state, pane, now, { columns, rows: height }),
          );
  const filled = [
    ...body.slice(0, room),
    ...Array.from({ length: Math.max(0, room - body.length) }, () => ""),
  ];
  return [...head, ...filled, ...footer].slice(0, rows).map((line) => cutTo(line, columns));
}

/** Everything as plain text, for a file or a program that reads no JSON. */
export function onceText(data: TopData, state: TopState, width = terminalWidth()): string {
  const panes = PANES.map((pane) => {
    const rows = rowsOf(data, state, pane);
    const title = paint("bold", `${pane.toUpperCase()} ${rows.length}`);
    return rows.length === 0
      ? `${title}\n${dim(NOTHING[pane])}`
      : `${title}\n${tableText(COLUMNS[pane](data.at), rows, width)}`;
  });
  return [wrapText(summaryText(data), "", "", width), ...panes].join("\n\n");
}
