import { refuseUnknownKeys } from "../core/errors.ts";
import { TimeoutError } from "../core/job/reasons.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import { type Ambient, currentAmbient, hasTimedOut, SIGNAL_WITHIN } from "../ports/ambient.ts";
import { checkName, checkSignal } from "./check-options.ts";
import { Deadline } from "./deadline-list.ts";
import type { CallDeps, StreamEnd } from "./running-call.ts";
import { type Source, type StreamSource, sourceOf } from "./stream-source.ts";

/** The limits of a stream. Each counts only while the consumer waits for the source (SEMANTICS 10.7). */
export interface StreamOptions {
  /** For counters and warnings. Default `"stream"`. */
  readonly name?: string;
  /** Until the first item. Default: `idle`. */
  readonly first?: Duration | "none";
  /** Between two items. Default none. */
  readonly idle?: Duration | "none";
  /** For all items together. Default none. */
  readonly total?: Duration | "none";
  /** How long the source may take to clean up before it counts as stuck. Default 5 s. */
  readonly grace?: Duration;
  /** Ends the stream when the caller gives up. */
  readonly signal?: AbortSignal;
}

interface Limits {
  readonly name: string;
  readonly first: number;
  readonly idle: number;
  readonly total: number;
  readonly grace: number;
}

const KEYS = ["name", "first", "idle", "total", "grace", "signal"];
const BUILT_IN_GRACE = 5_000;
const NONE = Number.POSITIVE_INFINITY;

function parseLimits(options: StreamOptions): Limits {
  refuseUnknownKeys(options, "limitStream", KEYS);
  const limit = (name: "first" | "idle" | "total") => {
    const value = options[name];
    return value === undefined || value === "none" ? NONE : parseDuration(value, `limitStream.${name}`);
  };
  const { grace, name = "stream", signal } = options;
  checkName(name, "limitStream.name");
  if (signal !== undefined) checkSignal(signal, "limitStream.signal");
  const idle = limit("idle");
  return {
    name,
    first: options.first === undefined ? idle : limit("first"),
    idle,
    total: limit("total"),
    grace: grace === undefined ? BUILT_IN_GRACE : parseDuration(grace, "limitStream.grace", { zero: true }),
  };
}

export function limitedStream<Item>(
  host: CallDeps,
  options: StreamOptions,
  source: StreamSource<Item>,
): AsyncIterableIterator<Item> {
  return new LimitedStream(host, parseLimits(options), source, options.signal);
}

interface WaitLimit {
  /** By the monotonic clock; Infinity for none. */
  readonly until: number;
  readonly kind: "first" | "idle" | "total";
  readonly limit: number;
  /** The limit is that of the code around. */
  readonly isAround: boolean;
}

interface Waiting<Item> extends WaitLimit {
  readonly since: number;
  readonly resolve: (result: IteratorResult<Item, undefined>) => void;
  readonly reject: (reason: unknown) => void;
}

const DONE = { done: true, value: undefined } as const;

class LimitedStream<Item> extends Deadline implements AsyncIterableIterator<Item, undefined> {
  readonly #host: CallDeps;
  readonly #limits: Limits;
  readonly #controller = new AbortController();
  readonly #source: Source<Item>;
  readonly #ambient: Ambient | undefined;
  readonly #signal: AbortSignal | undefined;
  #waiting: Waiting<Item> | undefined;
  /** The last `next` that was asked for. Consumers may ask ahead; the source is asked one at a time. */
  #last: Promise<unknown> | undefined;
  #hasItem = false;
  #isOver = false;
  /** Why the stream ended before its source did; undefined if the consumer itself returned. */
  #stoppedBy: { readonly reason: unknown } | undefined;
  #hasReported = false;
  /** How long the consumer has waited for the source, in all. */
  #used = 0;

  constructor(host: CallDeps, limits: Limits, source: StreamSource<Item>, signal: AbortSignal | undefined) {
    super();
    this.#host = host;
    this.#limits = limits;
    this.#source = sourceOf(source, { signal: this.#controller.signal });
    this.#signal = signal;
    this.#ambient = currentAmbient();
    for (const other of [signal, this.#ambient?.signal]) {
      if (this.#isOver) break;
      if (other?.aborted) this.#stopBy(other);
      else other?.addEventListener("abort", this.#onAbort, { once: true });
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    const asked = this.#last ? this.#last.then(() => this.#ask()) : this.#ask();
    const settled = asked.then(
      () => {},
      () => {},
    );
    this.#last = settled;
    void settled.then(() => {
      if (this.#last === settled) this.#last = undefined;
    });
    return asked;
  }

  /** The consumer stops early. */
  async return(): Promise<IteratorResult<Item, undefined>> {
    if (this.#isOver) return DONE;
    const waiting = this.#takeWaiting();
    const stopped = this.#end(undefined, "stopped");
    waiting?.resolve(DONE);
    await stopped;
    return DONE;
  }

  async throw(error: unknown): Promise<IteratorResult<Item, undefined>> {
    await this.return();
    throw error;
  }

  readonly #onAbort = (event: Event): void => this.#stopBy(event.target as AbortSignal);

  #stopBy(signal: AbortSignal): void {
    if (this.#isOver) return;
    // At the deadline of the code around the timeout names our limit.
    const around = signal === this.#ambient?.signal ? this.#ambient : undefined;
    if (around && this.#waiting?.isAround && hasTimedOut(around)) this.expire();
    else this.#stop(signal.reason, "stopped");
  }

  /** Ends the stream for a reason that the consumer hears once: now if it waits, else when it asks again. */
  #stop(reason: unknown, end: StreamEnd): void {
    const waiting = this.#takeWaiting();
    this.#stoppedBy = { reason };
    this.#hasReported = waiting !== undefined;
    void this.#end(reason, end);
    waiting?.reject(reason);
  }

  #ask(): Promise<IteratorResult<Item, undefined>> {
    if (this.#isOver) {
      if (!this.#stoppedBy || this.#hasReported) return Promise.resolve(DONE);
      this.#hasReported = true;
      return Promise.reject(this.#stoppedBy.reason);
    }
    return new Promise((resolve, reject) => {
      const since = this.#host.system.monotonic();
      const waiting = { since, ...this.#limitOf(since), resolve, reject };
      this.#waiting = waiting;
      if (waiting.until <= since) {
        this.expire();
        return;
      }
      this.#arm(waiting);
      this.#source.next().then(
        (result) => this.#received(result),
        (error) => this.#failed(error),
      );
    });
  }

  /** The limit of a wait that began then. */
  #limitOf(since: number): WaitLimit {
    const own = this.#hasItem ? this.#limits.idle : this.#limits.first;
    const now = this.#host.system.monotonic();
    const around = now - since + (this.#ambient?.untilSignal() ?? NONE);
    const left = Math.min(this.#limits.total - this.#used, around);
    const isTotal = left <= own;
    return {
      until: since + Math.min(own, left),
      kind: isTotal ? "total" : this.#hasItem ? "idle" : "first",
      limit: isTotal ? Math.round(this.#used + left) : own,
      isAround: around <= Math.min(own, left) && around !== NONE,
    };
  }

  #arm({ until, isAround }: WaitLimit): void {
    if (until !== NONE) this.#host.deadlines.set(this, isAround ? until + SIGNAL_WITHIN : until);
  }

  /** The code around has got more time than it had when the wait began. */
  #isExtended(waiting: Waiting<Item>): boolean {
    if (!waiting.isAround || this.#ambient?.signal.aborted) return false;
    const limit = this.#limitOf(waiting.since);
    if (limit.until <= this.#host.system.monotonic()) return false;
    this.#waiting = { ...waiting, ...limit };
    this.#arm(limit);
    return true;
  }

  #received(result: IteratorResult<Item, undefined>): void {
    this.#expireIfDue();
    const waiting = this.#takeWaiting();
    if (!waiting) {
      // An item that came after the limit is dropped.
      if (!result.done && this.#stoppedBy) this.#host.ignored(this.#limits.name);
      return;
    }
    this.#hasItem = true;
    if (!result.done) waiting.resolve(result);
    else {
      this.#close("completed");
      waiting.resolve(DONE);
    }
  }

  #failed(error: unknown): void {
    this.#expireIfDue();
    const waiting = this.#takeWaiting();
    if (!waiting) return;
    this.#close("failed");
    waiting.reject(error);
  }

  /** If the event loop was blocked, an item may come before the timer of its limit fires. */
  #expireIfDue(): void {
    if (!this.#waiting || this.#host.system.monotonic() < this.#waiting.until) return;
    if (!this.#waiting.isAround || this.#ambient?.signal.aborted) this.expire();
  }

  #takeWaiting(): Waiting<Item> | undefined {
    const waiting = this.#waiting;
    if (!waiting) return undefined;
    this.#waiting = undefined;
    this.#host.deadlines.clear(this);
    this.#used += this.#host.system.monotonic() - waiting.since;
    return waiting;
  }

  /** A limit has passed. The consumer goes on, and the source gets its grace. */
  override expire(): void {
    const waiting = this.#waiting as Waiting<Item>;
    if (this.#isExtended(waiting)) return;
    const { since, kind, limit } = waiting;
    const waited = this.#host.system.monotonic() - since;
    const elapsed = Math.round(kind === "total" ? this.#used + waited : waited);
    this.#stop(new TimeoutError(kind, limit, elapsed, null), kind);
  }

  /** Stops the source, and waits for it no longer than the grace. */
  #end(reason: unknown, end: StreamEnd): Promise<void> {
    this.#close(end);
    this.#controller.abort(reason);
    const stopping = new Stopping(this.#host, this.#limits.name);
    if (this.#limits.grace > 0) {
      const graceEnd = this.#host.system.monotonic() + this.#limits.grace;
      this.#host.deadlines.set(stopping, graceEnd);
    }
    this.#source.stop(reason).then(
      () => stopping.done(),
      () => stopping.done(),
    );
    if (this.#limits.grace === 0) stopping.expire();
    return stopping.promise;
  }

  #close(end: StreamEnd): void {
    this.#isOver = true;
    this.#host.streamEnded(this.#limits.name, end);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#ambient?.signal.removeEventListener("abort", this.#onAbort);
  }
}

/** A source that was asked to stop. After the grace it counts as stuck until it has stopped. */
class Stopping extends Deadline {
  readonly promise: Promise<void>;
  readonly #host: CallDeps;
  readonly #name: string;
  #resolve!: () => void;
  #isStuck = false;
  #isDone = false;

  constructor(host: CallDeps, name: string) {
    super();
    this.#host = host;
    this.#name = name;
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  override expire(): void {
    if (this.#isDone) return;
    this.#isStuck = true;
    this.#host.stuck(this.#name);
    this.#resolve();
  }

  done(): void {
    this.#isDone = true;
    this.#host.deadlines.clear(this);
    if (this.#isStuck) this.#host.unstuck(this.#name);
    this.#resolve();
  }
}
