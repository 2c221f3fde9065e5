import type { CallPolicy } from "../core/call/call-policy.ts";
import { TimeoutError } from "../core/job/reasons.ts";
import { backoffDelay, isExcepted } from "../core/job/retry.ts";
import { describeError, isInstance, isThenable } from "../core/user-values.ts";
import { type Ambient, currentAmbient, runInside } from "../engine/runtime/ambient.ts";
import type { System } from "../ports/system.ts";
import { Deadline, type DeadlineList } from "./deadline-list.ts";

/** What the function of a call gets. */
export interface CallContext {
  /** Aborts at the soft deadline, or when the caller gives up, with the reason. */
  readonly signal: AbortSignal;
  /** Milliseconds until the signal; Infinity for none. */
  readonly remaining: () => number;
  /** 1 for the first try. */
  readonly attempt: number;
}

export type CallFunction<Value> = (context: CallContext) => Value | PromiseLike<Value>;

/** How a call ended, for counters, traces and advice. */
export interface CallEnd {
  readonly name: string;
  readonly policy: CallPolicy;
  readonly outcome: "ok" | "late" | "failed" | "timeout" | "stopped";
  /** Which limit ended it. */
  readonly kind?: "execution" | "total";
  /** The limit of the last try in milliseconds; null for none. */
  readonly limit: number | null;
  /** How long the last try took, and how long the call. */
  readonly took: number;
  readonly total: number;
  readonly attempts: number;
  readonly error?: unknown;
}

/** What a call needs from its `Calls`. */
export interface CallHost {
  readonly system: System;
  readonly deadlines: DeadlineList;
  ended(end: CallEnd): void;
  /** A function ended after its verdict. */
  ignored(name: string): void;
  /** A function still runs after its verdict, until `unstuck`. */
  stuck(name: string): void;
  unstuck(name: string): void;
}

export interface CallInput<Value> {
  readonly name: string;
  readonly policy: CallPolicy;
  readonly run: CallFunction<Value>;
  /** The caller's own signal. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the call ignores the deadline of the code around it. */
  readonly isDetached?: boolean;
}

/** Where a call stands between two events. */
type Phase = "trying" | "grace" | "backoff" | "over";

/** One call through all its tries (SEMANTICS 10). */
export class RunningCall<Value> extends Deadline {
  readonly promise: Promise<Value>;
  readonly #host: CallHost;
  readonly #input: CallInput<Value>;
  readonly #ambient: Ambient | undefined;
  readonly #startedAt: number;
  /** By the monotonic clock; Infinity for none. */
  readonly #totalAt: number;
  #resolve!: (value: Value) => void;
  #reject!: (reason: unknown) => void;
  #phase: Phase = "trying";
  #try: Try<Value> | undefined;
  #tries = 0;
  #timeout: TimeoutError | undefined;

  constructor(host: CallHost, input: CallInput<Value>) {
    super();
    this.#host = host;
    this.#input = input;
    this.#startedAt = host.system.monotonic();
    this.#ambient = input.isDetached ? undefined : currentAmbient();
    const own = input.policy.total === null ? Number.POSITIVE_INFINITY : this.#startedAt + input.policy.total;
    this.#totalAt = this.#ambient ? Math.min(own, this.#startedAt + this.#ambient.remaining()) : own;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Enters the function for the first time. */
  start(): Promise<Value> {
    const { signal } = this.#input;
    if (signal?.aborted) {
      this.#stop(signal.reason);
      return this.promise;
    }
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    // The code around may end before its deadline: cancelled, shut down, or its own caller gave up.
    const around = this.#ambient?.signal;
    if (around?.aborted) this.#onAmbientAbort();
    else around?.addEventListener("abort", this.#onAmbientAbort, { once: true });
    if (this.#phase !== "over") this.#begin();
    return this.promise;
  }

  readonly #onAbort = (): void => this.#stop(this.#input.signal?.reason);

  readonly #onAmbientAbort = (): void => {
    const reason = this.#ambient?.signal.reason;
    // At its deadline ours is due too, and the timeout names our limit.
    if (!isInstance(reason, TimeoutError)) this.#stop(reason);
  };

  #begin(): void {
    const { system, deadlines } = this.#host;
    const { attempt } = this.#input.policy;
    const now = system.monotonic();
    const softAt = Math.min(attempt === null ? Number.POSITIVE_INFINITY : now + attempt, this.#totalAt);
    this.#tries += 1;
    const current = new Try<Value>(this.#host, this.#input.name, this.#tries, now, softAt);
    this.#try = current;
    this.#phase = "trying";
    if (softAt <= now) {
      this.#expireTry(current);
      return;
    }
    if (softAt !== Number.POSITIVE_INFINITY) deadlines.set(this, softAt);
    current.enter(this.#input.run, (isOk, value) => this.#settled(isOk, value));
  }

  override expire(): void {
    const current = this.#try as Try<Value>;
    if (this.#phase === "backoff") this.#begin();
    else if (this.#phase === "trying") this.#expireTry(current);
    else if (this.#phase === "grace") this.#force(current);
  }

  /** The soft deadline: the signal, and the end of the wait after the grace. */
  #expireTry(current: Try<Value>): void {
    const { system, deadlines } = this.#host;
    const { grace } = this.#input.policy;
    const now = system.monotonic();
    const kind = current.softAt >= this.#totalAt ? "total" : "execution";
    const from = kind === "total" ? this.#startedAt : current.startedAt;
    this.#timeout = new TimeoutError(kind, Math.round(current.softAt - from), Math.round(now - from), null);
    this.#phase = "grace";
    if (grace > 0 && current.isEntered) deadlines.set(this, current.softAt + grace);
    current.abort(this.#timeout);
    // A listener of the signal may have ended the call.
    if (this.#phase === "grace" && (grace === 0 || !current.isEntered)) this.#force(current);
  }

  /** The hard deadline: the caller goes on, whatever the function does. */
  #force(current: Try<Value>): void {
    current.leave();
    this.#failed(this.#timeout, true);
  }

  #settled(isOk: boolean, value: unknown): void {
    const isTimedOut = this.#phase === "grace";
    if (isOk) this.#finish(isTimedOut ? "late" : "ok", () => this.#resolve(value as Value));
    else if (isTimedOut) this.#failed(this.#timeoutCausedBy(value), true);
    else this.#failed(value, false);
  }

  #timeoutCausedBy(cause: unknown): TimeoutError {
    const timeout = this.#timeout as TimeoutError;
    const { kind, limit, elapsed, deadline } = timeout;
    return cause === timeout ? timeout : new TimeoutError(kind, limit, elapsed, deadline, cause);
  }

  /** One try failed. Decides between a retry and the end. */
  #failed(error: unknown, isTimeout: boolean): void {
    this.#host.deadlines.clear(this);
    const delay = this.#retryDelay(error, isTimeout);
    if (delay === undefined) {
      const outcome = isTimeout ? "timeout" : "failed";
      this.#finish(outcome, () => this.#reject(error), error);
      return;
    }
    this.#phase = "backoff";
    this.#timeout = undefined;
    this.#host.deadlines.set(this, this.#host.system.monotonic() + delay);
  }

  #retryDelay(error: unknown, isTimeout: boolean): number | undefined {
    const { attempts, backoff, except, retryFit, mode, attempt } = this.#input.policy;
    if (this.#tries >= attempts || (isTimeout && mode === "discard")) return undefined;
    if (isExcepted(except, isTimeout ? "timeout" : (describeError(error)?.name ?? "Error"))) return undefined;
    const delay = backoffDelay(backoff, this.#tries, this.#host.system.random);
    const needed = retryFit === "full" ? (attempt ?? 0) : 1;
    const endsAt = this.#host.system.monotonic() + delay + needed;
    return endsAt > this.#totalAt ? undefined : delay;
  }

  /** The caller gave up, or the code around the call was stopped. */
  #stop(reason: unknown): void {
    if (this.#phase === "over") return;
    const current = this.#try;
    const wasTrying = this.#phase !== "backoff";
    this.#finish("stopped", () => this.#reject(reason), reason);
    if (!current || !wasTrying) return;
    current.abort(reason);
    current.leave();
  }

  #finish(outcome: CallEnd["outcome"], settle: () => void, error?: unknown): void {
    this.#phase = "over";
    this.#host.deadlines.clear(this);
    this.#input.signal?.removeEventListener("abort", this.#onAbort);
    this.#ambient?.signal.removeEventListener("abort", this.#onAmbientAbort);
    settle();
    const now = this.#host.system.monotonic();
    const current = this.#try;
    const limit =
      current && current.softAt !== Number.POSITIVE_INFINITY ? current.softAt - current.startedAt : null;
    this.#host.ended({
      name: this.#input.name,
      policy: this.#input.policy,
      outcome,
      limit,
      took: current ? now - current.startedAt : 0,
      total: now - this.#startedAt,
      attempts: this.#tries,
      ...(outcome === "timeout" && this.#timeout && { kind: this.#timeout.kind as "execution" | "total" }),
      ...(error !== undefined && { error }),
    });
  }
}

/** One try of a call: its function, its signal, and whether anybody still waits for it. */
class Try<Value> implements CallContext, Ambient {
  readonly attempt: number;
  readonly startedAt: number;
  readonly softAt: number;
  isEntered = false;
  readonly #host: CallHost;
  readonly #name: string;
  #controller: AbortController | undefined;
  #reason: { readonly value: unknown } | undefined;
  #hasEnded = false;
  /** The verdict stands: what the function returns now is dropped. */
  #isLeft = false;

  constructor(host: CallHost, name: string, attempt: number, startedAt: number, softAt: number) {
    this.#host = host;
    this.#name = name;
    this.attempt = attempt;
    this.startedAt = startedAt;
    this.softAt = softAt;
  }

  /** Made on first use, because a controller costs more than the rest of a call. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason.value);
    }
    return this.#controller.signal;
  }

  readonly remaining = (): number => Math.max(0, this.softAt - this.#host.system.monotonic());

  abort(reason: unknown): void {
    if (this.#reason) return;
    this.#reason = { value: reason };
    this.#controller?.abort(reason);
  }

  enter(run: CallFunction<Value>, settled: (isOk: boolean, value: unknown) => void): void {
    this.isEntered = true;
    const done = (isOk: boolean, value: unknown): void => {
      this.#hasEnded = true;
      if (!this.#isLeft) {
        this.#isLeft = true;
        settled(isOk, value);
        return;
      }
      this.#host.unstuck(this.#name);
      this.#host.ignored(this.#name);
    };
    try {
      const returned = runInside(this, () => run(this));
      if (isThenable(returned))
        returned.then(
          (value) => done(true, value),
          (error) => done(false, error),
        );
      else done(true, returned);
    } catch (error) {
      done(false, error);
    }
  }

  /** The verdict was given without the function. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    if (this.isEntered && !this.#hasEnded) this.#host.stuck(this.#name);
  }
}
