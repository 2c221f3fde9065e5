import type { HistoryPoint, Queue } from "../../api/wire.ts";

/** What the last hour of a queue looked like. */
export interface QueueLines {
  /** About how many jobs waited or ran, at the end of each point. */
  readonly jobs: readonly number[];
  /** How long the slowest one of a hundred had waited when it started; null where none started. */
  readonly waits: readonly (number | null)[];
}

/**
 * How many jobs there were is not kept, but what came and what ended is: counted back from how many there are now, that
 * gives the line. It is off by what was retried by hand or deleted meanwhile, so it is shown as "about".
 */
export function linesOf(queue: Queue, points: readonly HistoryPoint[]): QueueLines {
  const jobs: number[] = [];
  let count = queue.depth + queue.counts.active;
  for (const { enqueued, completed, discarded, cancelled } of [...points].reverse()) {
    jobs.push(Math.max(0, count));
    count -= enqueued - completed - discarded - cancelled;
  }
  return { jobs: jobs.reverse(), waits: points.map(({ wait_p99_ms }) => wait_p99_ms ?? null) };
}
