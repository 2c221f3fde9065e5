import { CurfewError, refuse } from "../../core/errors.ts";
import type { EnqueueOptions } from "../../core/job/envelope.ts";
import { TimeoutError } from "../../core/job/reasons.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import { currentAmbient } from "../runtime/ambient.ts";
import type { JobHandle } from "./job-handle.ts";

export interface JobRequestOptions extends EnqueueOptions {
  /** How long the caller waits for the result. */
  readonly within: Duration;
  /**
   * What happens to the job when the time is up: `"go-on"` (the default) lets it run, `"cancel"` ends it. With
   * `"cancel"` the job gets the time as its `total` too, so that it ends on time if this process dies.
   */
  readonly onTimeout?: "go-on" | "cancel";
  /** Ends the wait when the caller gives up. */
  readonly signal?: AbortSignal;
}

/** What `requestJob` needs from the engine. */
interface Requester<Result> {
  enqueue(options: EnqueueOptions): Promise<JobHandle<Result>>;
  monotonic(): number;
}

/** Enqueues a job and waits for its result (SEMANTICS 10.8). */
export async function requestJob<Result>(
  requester: Requester<Result>,
  options: JobRequestOptions,
): Promise<Result> {
  const { within, onTimeout = "go-on", signal, ...rest } = options;
  if (onTimeout !== "go-on" && onTimeout !== "cancel")
    throw refuse("invalid_option", "request.onTimeout", onTimeout, 'write "go-on" or "cancel"');
  const own = parseDuration(within, "request.within");
  const limit = Math.min(own, Math.floor(currentAmbient()?.remaining() ?? own));
  if (limit < 1) throw new TimeoutError("total", own, own, null);
  signal?.throwIfAborted();
  const startedAt = requester.monotonic();
  const isCancelled = onTimeout === "cancel";
  const timeouts = { ...(isCancelled && { total: { milliseconds: limit } }), ...rest.timeouts };
  const job = await requester.enqueue({ ...rest, ...(isCancelled && { timeouts }) });
  const left = limit - (requester.monotonic() - startedAt);
  try {
    if (left <= 0) throw new CurfewError("result_timeout", "request: the enqueue took all of the time");
    return await job.result({
      within: { milliseconds: Math.ceil(left) },
      ...(signal && { signal }),
    });
  } catch (error) {
    const isOver = error instanceof CurfewError && error.code === "result_timeout";
    if (!isOver && !signal?.aborted) throw error;
    // It may have ended in this moment, which leaves nothing to cancel.
    if (isCancelled) await job.cancel().catch(() => {});
    if (!isOver) throw error;
    throw new TimeoutError("total", limit, Math.round(requester.monotonic() - startedAt), null, error);
  }
}
