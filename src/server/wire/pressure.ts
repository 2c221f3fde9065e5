import { DEFAULT_QUEUE } from "../../core/job/job-definition.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RemoteJob } from "../../engine/remote/service.ts";
import { HttpError, type PlainHeaders } from "../http/http-error.ts";

const NONE: PlainHeaders = {};

/** Headers of a queue that is full or nearly full. */
function depthHeaders(depth: number, bound: number): PlainHeaders {
  return { "X-OJS-Queue-Depth": String(depth), "X-OJS-Queue-Bound": String(bound) };
}

/** Warns producers of a nearly full queue, by the counts of this process. */
export function pressureHeaders(queue: string, { engine }: { readonly engine: Engine }): PlainHeaders {
  const pressure = engine.queues.pressureOf(queue);
  if (!pressure) return NONE;
  const { waiting, most } = pressure;
  return { ...depthHeaders(waiting, most), "X-OJS-Queue-Pressure": (waiting / most).toFixed(2) };
}

/**
 * Refuses a batch that does not fit as a whole, so that no client must find out which part was stored. If another client
 * fills the queue after this check, the store takes the jobs that fit, and the error says so.
 */
export async function refuseTooMany(
  jobs: readonly RemoteJob[],
  { engine }: { readonly engine: Engine },
): Promise<void> {
  const wanted = new Map<string, number>();
  for (const { options } of jobs) {
    const queue = options?.queue ?? DEFAULT_QUEUE;
    if (engine.queues.boundOf(queue)?.onFull === "reject") wanted.set(queue, (wanted.get(queue) ?? 0) + 1);
  }
  if (wanted.size === 0) return;
  const live = await engine.store.inspect.live();
  for (const [queue, count] of wanted) {
    const most = engine.queues.boundOf(queue)?.most ?? Number.POSITIVE_INFINITY;
    const waiting = live
      .filter((one) => one.queue === queue && one.state !== "active")
      .reduce((sum, one) => sum + one.count, 0);
    if (waiting + count <= most) continue;
    const message = `queue: "${queue}" has room for ${Math.max(0, most - waiting)} of these ${count} jobs, and nothing was stored`;
    engine.queues.announceFull(queue, waiting, most);
    throw new HttpError(429, "QUEUE_FULL", message, {
      retryable: count <= most,
      headers: { "Retry-After": "1", ...depthHeaders(waiting, most) },
      details: { queue, depth: waiting, bound: most, refused: count },
    });
  }
}
