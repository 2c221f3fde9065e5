import { refuse } from "../../core/errors.ts";
import type { EnqueueOptions } from "../../core/job/enqueue/envelope.ts";
import { TimeoutError } from "../../core/job/reasons.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import { currentAmbient, hasTimedOut, SIGNAL_WITHIN } from "../../ports/ambient.ts";
import type { System, Timer } from "../../ports/system.ts";

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
  const around = currentAmbient();
  const left = Math.ceil(around?.untilSignal() ?? Number.POSITIVE_INFINITY);
  const limit = Math.min(own, left);
  if (limit < 1) throw new TimeoutError("total", 0, 0, null);
  signal?.throwIfAborted();
  around?.signal.throwIfAborted();
  const isCancelled = onTimeout === "cancel";
  const timeouts = { ...(isCancelled && { total: { milliseconds: limit } }), ...rest.timeouts };
  const startedAt = system.monotonic();
  const enqueued = enqueue({ ...rest, ...(isCancelled && { timeouts }) });
  const stop = new AbortController();
  const elapsed = () => system.monotonic() - startedAt;
  const timeout = () => stop.abort(new TimeoutError("total", limit, Math.round(elapsed()), null));
  let timer: Timer | undefined;
  // The code around may have got more time meanwhile. Its own signal ends the wait.
  const endAfter = (delay: number) => {
    timer = system.after(
      delay,
      () => {
        const more = left > own ? 0 : Math.min(around?.untilSignal() ?? 0, own - elapsed());
        if (more > 0) endAfter(more + SIGNAL_WITHIN);
        else timeout();
      },
      { keepAlive: true },
    );
  };
  endAfter(left > own ? limit : limit + SIGNAL_WITHIN);
  const giveUp = () => stop.abort(signal?.reason);
  const aroundStopped = () => (around && hasTimedOut(around) ? timeout() : stop.abort(around?.signal.reason));
  signal?.addEventListener("abort", giveUp, { once: true });
  around?.signal.addEventListener("abort", aroundStopped, { once: true });
  try {
    return await untilStopped(stop.signal, async () => (await enqueued).result({ signal: stop.signal }));
  } catch (error) {
    // The job's own `total` may end it at the same instant.
    if (elapsed() >= limit && (left > own || around?.signal.aborted)) timeout();
    if (!stop.signal.aborted) throw error;
    if (isCancelled) void cancelOwn(enqueued);
    throw stop.signal.reason;
  } finally {
    timer?.cancel();
    signal?.removeEventListener("abort", giveUp);
    around?.signal.removeEventListener("abort", aroundStopped);
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
