import { refuse } from "../../core/errors.ts";
import type { EnqueueOptions } from "../../core/job/envelope.ts";
import { TimeoutError } from "../../core/job/reasons.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import type { System } from "../../ports/system.ts";
import { currentAmbient } from "../runtime/ambient.ts";

export interface JobRequestOptions extends EnqueueOptions {
  /** How long the caller waits for the result. */
  readonly within: Duration;
  /**
   * What happens to the job when the time is up: `"go-on"` (the default) lets it run, `"cancel"` ends it. With
   * `"cancel"` the job gets the time as its `total` too, so that it ends on time if this process dies. A job that
   * another caller enqueued (`id` or `unique`) is never cancelled.
   */
  readonly onTimeout?: "go-on" | "cancel";
  /** Ends the wait when the caller gives up. */
  readonly signal?: AbortSignal;
}

/** A handle of an engine or of a client. */
interface RequestedJob<Result> {
  readonly duplicate: boolean;
  result(options: { readonly signal: AbortSignal }): Promise<Result>;
  cancel(): Promise<unknown>;
}

/** What `requestJob` needs from the engine or the client. */
interface Requester<Result> {
  enqueue(options: EnqueueOptions): Promise<RequestedJob<Result>>;
  readonly system: Pick<System, "monotonic" | "after">;
}

/** Enqueues a job and waits for its result (SEMANTICS 10.8). */
export async function requestJob<Result>(
  { enqueue, system }: Requester<Result>,
  options: JobRequestOptions,
): Promise<Result> {
  const { within, onTimeout = "go-on", signal, ...rest } = options;
  if (onTimeout !== "go-on" && onTimeout !== "cancel")
    throw refuse("invalid_option", "request.onTimeout", onTimeout, 'write "go-on" or "cancel"');
  const own = parseDuration(within, "request.within");
  const limit = Math.min(own, Math.floor(currentAmbient()?.remaining() ?? own));
  if (limit < 1) throw new TimeoutError("total", 0, 0, null);
  signal?.throwIfAborted();
  const isCancelled = onTimeout === "cancel";
  const timeouts = { ...(isCancelled && { total: { milliseconds: limit } }), ...rest.timeouts };
  const startedAt = system.monotonic();
  const enqueued = enqueue({ ...rest, ...(isCancelled && { timeouts }) });
  const stop = new AbortController();
  const elapsed = () => system.monotonic() - startedAt;
  const timeout = () => stop.abort(new TimeoutError("total", limit, Math.round(elapsed()), null));
  const timer = system.after(limit, timeout, { keepAlive: true });
  const giveUp = () => stop.abort(signal?.reason);
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    return await untilStopped(stop.signal, async () => (await enqueued).result({ signal: stop.signal }));
  } catch (error) {
    // The job's own `total` may end it at the same instant.
    if (elapsed() >= limit) timeout();
    if (!stop.signal.aborted) throw error;
    if (isCancelled) void cancelOwn(enqueued);
    throw stop.signal.reason;
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", giveUp);
  }
}

/** Settles as `work` does, or rejects when the signal aborts. A store that does not answer must not delay that. */
function untilStopped<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work().then(resolve, reject);
  });
}

/** The caller does not wait for it: the job may have ended, and the store may not answer. Its `total` ends it then. */
async function cancelOwn(enqueued: Promise<RequestedJob<unknown>>): Promise<void> {
  try {
    const job = await enqueued;
    if (!job.duplicate) await job.cancel();
  } catch {}
}
