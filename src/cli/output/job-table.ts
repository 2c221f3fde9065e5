import type { Fields } from "../target/target.ts";
import { paintState, printable } from "./paint.ts";
import { type Column, tableText } from "./table.ts";
import { relativeText } from "./times.ts";

/** The state for people: on the wire a job that only its limit holds is `available`. */
export function shownState({ state, held_by }: Fields): string {
  return held_by === undefined ? String(state) : "held";
}

/** When something happens to a job next, what holds it, or when it ended. */
function whenText(job: Fields, now: number): string {
  if (job.held_by !== undefined) return printable(`by limit ${job.held_by}`);
  const { scheduled_at, next_attempt_at, cancelled_at, discarded_at, completed_at, started_at, state } = job;
  const ended = cancelled_at ?? discarded_at ?? completed_at;
  if (ended !== undefined) return `ended ${relativeText(ended, now)}`;
  if (state === "active") return `started ${relativeText(started_at, now)}`;
  const next = next_attempt_at ?? scheduled_at;
  return next === undefined ? "" : `due ${relativeText(next, now)}`;
}

const columns = (now: number): Column<Fields>[] => [
  { title: "ID", show: ({ id }) => String(id) },
  { title: "STATE", show: (job) => paintState(shownState(job)) },
  { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 10 },
  { title: "QUEUE", show: ({ queue }) => printable(String(queue)), shrinkTo: 8, drop: 3 },
  {
    title: "ATTEMPT",
    show: (job) => attemptText(job),
    align: "right",
    drop: 4,
  },
  { title: "CREATED", show: ({ created_at }) => relativeText(created_at, now), drop: 5 },
  { title: "", show: (job) => whenText(job, now), shrinkTo: 16, drop: 1 },
  { title: "ERROR", show: ({ error }) => printable(errorText(error)), shrinkTo: 10, drop: 2 },
];

/** "1/3"; only "1" where nothing that is stored with the job says how many it has. */
export function attemptText({ attempt, max_attempts, max_attempts_assumed }: Fields, between = "/"): string {
  return max_attempts_assumed === true ? String(attempt) : `${attempt}${between}${max_attempts}`;
}

export function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const { code, message } = error as { code?: unknown; message?: unknown };
  return [code, message].filter((part) => typeof part === "string").join(": ");
}

export function jobTable(jobs: readonly Fields[], now: number, width?: number): string {
  const hasErrors = jobs.some(({ error }) => error !== undefined);
  return tableText(hasErrors ? columns(now) : columns(now).slice(0, -1), jobs, width);
}
