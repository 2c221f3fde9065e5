import type { Queue, QueueConfiguration, Worker } from "../../../ojs/replies/wire-replies.ts";
import { countText, limitText } from "../../ui/format.ts";

/** The rules of a queue as people say them: `4 at once`, `wait 5m`. */
export function rulesOf(configuration: QueueConfiguration): string[] {
  const { concurrency, backpressure, fair, timeouts = {} } = configuration;
  const limits = [
    ["wait", timeouts.enqueue_ttl_ms],
    ["attempt", timeouts.timeout_ms],
    ["grace", timeouts.grace_period_ms],
    ["heartbeat", timeouts.heartbeat_timeout_ms],
    ["total", timeouts.total_timeout_ms],
  ] as const;
  return [
    ...(concurrency === undefined ? [] : [`${concurrency} at once`]),
    ...(fair ? ["fair turns"] : []),
    ...(backpressure ? [`${countText(backpressure.max_depth)} wait at most`] : []),
    ...limits.flatMap(([name, value]) =>
      value === undefined ? [] : [`${name} ${typeof value === "number" ? limitText(value) : value}`],
    ),
  ];
}

/** Jobs that do not wait for a worker yet: for their time, for their limit or for other jobs. */
export const laterOf = ({ counts }: Queue): number => counts.scheduled + counts.pending + counts.retryable;

export function laterWords({ counts }: Queue): string {
  const all = [
    [counts.scheduled, "scheduled"],
    [counts.retryable, "to be retried"],
    [counts.pending, "pending"],
  ] as const;
  return all.flatMap(([count, word]) => (count > 0 ? [`${countText(count)} ${word}`] : [])).join(", ");
}

/** Who takes jobs of a queue. A worker that names no queues takes from all of them. */
export function workersOf(queue: string, workers: readonly Worker[]): Worker[] {
  return workers.filter(({ queues }) => queues.length === 0 || queues.includes(queue));
}

export function takersOf(queue: string, workers: readonly Worker[]): Worker[] {
  return workersOf(queue, workers).filter(({ state }) => state === "running");
}

/** What the queue needs: the worst thing first. */
export type Need = "no worker" | "paused" | "full" | "nearly full" | null;

export function needOf(queue: Queue, takers: number): Need {
  const { backpressure } = queue.configuration as QueueConfiguration;
  if (takers === 0 && queue.counts.available > 0 && !queue.paused) return "no worker";
  if (queue.paused) return "paused";
  if (backpressure?.state === "critical") return "full";
  return backpressure?.state === "warning" ? "nearly full" : null;
}

const ORDER: readonly Need[] = ["no worker", "full", "paused", "nearly full", null];

/** Those that need somebody stand first, then those with most to do, then the names. */
export function sortedQueues(queues: readonly Queue[], workers: readonly Worker[]): Queue[] {
  const rank = (queue: Queue) => ORDER.indexOf(needOf(queue, takersOf(queue.name, workers).length));
  return [...queues].sort((a, b) => rank(a) - rank(b) || b.depth - a.depth || (a.name < b.name ? -1 : 1));
}
