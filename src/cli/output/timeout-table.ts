import type { Fields } from "../target/target.ts";
import { paintState, printable } from "./paint.ts";
import { type Column, tableText } from "./table.ts";
import { relativeText } from "./times.ts";

const columns = (now: number): Column<Fields>[] => [
  { title: "ID", show: ({ id }) => printable(String(id)), shrinkTo: 36 },
  { title: "STATE", show: ({ state }) => paintState(String(state)) },
  { title: "DUE", show: ({ due_at }) => relativeText(due_at, now) },
  { title: "TRIES", show: ({ tries }) => String(tries), align: "right", drop: 4 },
  { title: "DESTINATION", show: ({ destination }) => printable(String(destination)), shrinkTo: 11, drop: 3 },
  { title: "FOR", show: (timeout) => printable(subjectText(timeout)), shrinkTo: 10, drop: 2 },
  { title: "ERROR", show: ({ error }) => printable(String(error ?? "")), shrinkTo: 10, drop: 1 },
];

/** The saga and the name of the timeout, or its key. */
function subjectText({ saga, name, key }: Fields): string {
  if (saga === null || saga === undefined) return String(key ?? "");
  const { type, id } = saga as Fields;
  return `${type} ${id}${name === null ? "" : ` ${name}`}`;
}

export function timeoutTable(timeouts: readonly Fields[], now: number): string {
  return tableText(columns(now), timeouts);
}
