import { nearestName } from "../../core/nearest-name.ts";
import type { Fields, Target } from "./target.ts";

const MOST = 200;

/** What is known about one name of a queue. */
export interface KnownQueue {
  /** False only if all queues were read, and neither a job nor a live worker knows the name. */
  readonly isKnown: boolean;
  /** Null: the queue is not among those that were read. */
  readonly isPaused: boolean | null;
  /** `; did you mean mail?`, or nothing. */
  readonly hint: string;
}

export async function lookUpQueue(target: Target, queue: string): Promise<KnownQueue> {
  const [queues, workers] = await Promise.all([
    target.get("/ojs/v1/admin/queues", { per_page: MOST }),
    target.get("/ojs/v1/admin/workers", { per_page: MOST }),
  ]);
  const items = queues.items as readonly Fields[];
  const names = new Set(items.map(({ name }) => String(name)));
  for (const worker of workers.items as readonly Fields[])
    for (const name of (worker.queues as readonly string[] | null) ?? []) names.add(name);
  const isAll = [queues, workers].every(({ pagination }) => (pagination as Fields)?.has_more !== true);
  const own = items.find(({ name }) => name === queue);
  const near = nearestName(queue, [...names]);
  return {
    isKnown: names.has(queue) || !isAll,
    isPaused: own ? own.paused === true : null,
    hint: near === undefined ? "" : `; did you mean ${near}?`,
  };
}
