import type { Fields } from "../target/target.ts";
import { paintState, printable } from "./paint.ts";
import type { Column } from "./table.ts";
import { relativeText } from "./times.ts";

/** Workers in a table. `shrinkTo` is for their ids. Without `dropQueues` their queues are always shown. */
export function workerColumns(
  now: number,
  { shrinkTo, dropQueues }: { readonly shrinkTo: number; readonly dropQueues?: number },
): Column<Fields>[] {
  return [
    { title: "WORKER", show: ({ id }) => printable(String(id)), shrinkTo },
    { title: "STATE", show: ({ state }) => paintState(String(state)) },
    { title: "RUNS", show: ({ active_jobs }) => String(active_jobs), align: "right" },
    { title: "LAST BEAT", show: ({ last_heartbeat_at }) => relativeText(last_heartbeat_at, now), drop: 1 },
    {
      title: "QUEUES",
      show: ({ queues }) => printable((queues as readonly string[]).join(", ")),
      shrinkTo: 10,
      ...(dropQueues !== undefined && { drop: dropQueues }),
    },
  ];
}
