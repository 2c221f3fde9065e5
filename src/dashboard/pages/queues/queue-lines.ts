import type { HistoryPoint } from "../../../ojs/replies/history-replies.ts";
import type { Queue } from "../../../ojs/replies/wire-replies.ts";
import { fromFirstJob } from "../../ui/history.ts";

/** What the last hour of a queue looked like. */
export interface QueueLines {
  /** About how many jobs waited or ran, at the end of each point. */
  readonly jobs: readonly number[];
  /** How long the oldest job had waited; null where nobody looked. */
  readonly oldest: readonly (number | null)[];
  /** How long the slowest one of a hundred had waited when it started; null where none started. */
  readonly waits: readonly (number | null)[];
}

/**
 * How many jobs there were is counted back from how many there are now, what came and what ended. It is off by what was
 * retried by hand or deleted meanwhile, so it is shown as "about". What an engine saw once a minute is never exceeded
 * downwards.
 */
export function linesOf(queue: Queue, points: readonly HistoryPoint[]): QueueLines {
  const jobs: number[] = [];
  let count = queue.depth + queue.counts.active;
  for (const { enqueued, completed, discarded, cancelled, waiting = 0 } of [...points].reverse()) {
    jobs.push(Math.max(0, waiting, count));
    count -= enqueued - completed - discarded - cancelled;
  }
  return {
    jobs: jobs.reverse(),
    oldest: points.map(({ oldest_wait_ms }) => oldest_wait_ms ?? null),
    waits: points.map(({ wait_p99_ms }) => wait_p99_ms ?? null),
  };
}

/** How many points all histories have before the first job: a store that is minutes old would show an empty hour. */
export function quietStart(histories: readonly (readonly HistoryPoint[])[]): number {
  const starts = histories.map((points) => points.length - fromFirstJob(points).length);
  return starts.length === 0 ? 0 : Math.min(...starts);
}
