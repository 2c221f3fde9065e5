import type { CallPolicy } from "../core/call/call-policy.ts";
import { backoffDelay, isExcepted } from "../core/job/policy/retry.ts";
import { TimeoutError } from "../core/job/reasons.ts";
import { describeError, isThenable, readKey } from "../core/user-values.ts";
import {
  type Ambient,
  captureContext,
  currentAmbient,
  hasTimedOut,
  runInside,
  SIGNAL_WITHIN,
} from "../ports/ambient.ts";
import type { System } from "../ports/system.ts";
import type { CallTrace } from "../ports/trace.ts";
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

/** How a stream ended, for counters: by itself, by its consumer, or by a limit. */
export type StreamEnd = "completed" | "failed" | "stopped" | "first" | "idle" | "total";

/** What a call needs from its `Calls`. */
export interface CallDeps {
  readonly system: System;
  readonly deadlines: DeadlineList;
  /** The span of a call that begins; undefined without a tracer. */
  trace(name: string): CallTrace | undefined;
  ended(end: CallEnd): void;
  streamEnded(name: string, end: StreamEnd): void;
  /** A try was cut off by its own limit. */
  wasCut(name: string, policy: CallPolicy): void;
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

interface Failure {
  readonly error: unknown;
  readonly isTimeout: boolean;
}

/** One call through all its tries (SEMANTICS 10). */
export class RunningCall<Value> extends Deadline {
  readonly promise: Promise<Value>;
  readonly #host: CallDeps;
  readonly #input: CallInput<Value>;
  readonly #ambient: Ambient | undefined;
  readonly #trace: CallTrace | undefined;
  readonly #startedAt: number;
  /** When the time of the code around is up, by the monotonic clock; Infinity for none. It may be extended. */
  #aroundAt = Number.POSITIVE_INFINITY;
  #resolve!: (value: Value) => void;
  #reject!: (reason: unknown) => void;
  #phase: Phase = "trying";
  #try: Try<Value> | undefined;
  #tries = 0;
  #timeout: TimeoutError | undefined;
  /** How the last try failed. */
  #failure: Failure | undefined;
  /** The caller's async context, for retries: a timer that all calls share begins them. */
  readonly #inContext: ReturnType<typeof captureContext> | undefined;

  constructor(host: CallDeps, input: CallInput<Value>) {
    super();
    this.#host = host;
    this.#input = input;
    this.#startedAt = host.system.monotonic();
    this.#ambient = input.isDetached ? undefined : currentAmbient();
    if (this.#ambient) this.#aroundAt = this.#startedAt + this.#ambient.untilSignal();
    this.#trace = host.trace(input.name);
    if (input.policy.attempts > 1) this.#inContext = captureContext();
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** The end of all tries, by the monotonic clock; Infinity for none. */
  get #totalAt(): number {
    const { total } = this.#input.policy;
    return total === null ? this.#aroundAt : Math.min(this.#startedAt + total, this.#aroundAt);
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
    const around = this.#ambient as Ambient;
    if (!hasTimedOut(around)) {
      this.#stop(around.signal.reason);
      return;
    }
    // Its time is up, so ours is too, and the timeout names our limit. In the grace the try has timed out already.
    this.#aroundAt = Math.min(this.#aroundAt, this.#host.system.monotonic());
    const current = this.#try;
    if (!current || this.#phase !== "trying") return;
    current.softAt = Math.min(current.softAt, this.#aroundAt);
    this.#expireTry(current);
  };

  #begin(): void {
    const now = this.#host.system.monotonic();
    const softAt = this.#softAtOf(now);
    this.#tries += 1;
    this.#timeout = undefined;
    const current = new Try<Value>(this.#host, this.#input.name, this.#tries, now, softAt, this.#trace);
    this.#try = current;
    this.#phase = "trying";
    if (softAt <= now) {
      this.#expireTry(current);
      return;
    }
    this.#arm(current);
    current.enter(this.#input.run, (isOk, value) => this.#settled(isOk, value));
  }

  #softAtOf(startedAt: number): number {
    const { attempt } = this.#input.policy;
    return Math.min(attempt === null ? Number.POSITIVE_INFINITY : startedAt + attempt, this.#totalAt);
  }

  /** The timer of the soft deadline. */
  #arm(current: Try<Value>): void {
    const { softAt } = current;
    if (softAt === Number.POSITIVE_INFINITY) return;
    this.#host.deadlines.set(this, softAt < this.#aroundAt ? softAt : softAt + SIGNAL_WITHIN);
  }

  /** Whether the code around has got more time than it had when this call began. */
  #isExtended(current: Try<Value>): boolean {
    if (!this.#ambient || current.softAt < this.#aroundAt) return false;
    const left = this.#ambient.untilSignal();
    if (left === 0) return false;
    this.#aroundAt = this.#host.system.monotonic() + left;
    current.softAt = this.#softAtOf(current.startedAt);
    return current.softAt > this.#host.system.monotonic();
  }

  override expire(): void {
    const current = this.#try as Try<Value>;
    if (this.#phase === "backoff") this.#retry();
    else if (this.#phase === "trying" && this.#isExtended(current)) this.#arm(current);
    else if (this.#phase === "trying") this.#expireTry(current);
    else if (this.#phase === "grace") this.#force(current);
  }

  /** The soft deadline: the signal, and the end of the wait after the grace. */
  #expireTry(current: Try<Value>): void {
    const grace = current.isEntered ? this.#input.policy.grace : 0;
    if (grace > 0) this.#host.deadlines.set(this, current.softAt + grace);
    this.#signal(current);
    if (this.#phase === "grace" && grace === 0) this.#force(current);
  }

  /** Aborts the signal of the try. A listener of the signal may end the call. */
  #signal(current: Try<Value>): void {
    const now = this.#host.system.monotonic();
    const kind = current.softAt >= this.#totalAt ? "total" : "execution";
    const from = kind === "total" ? this.#startedAt : current.startedAt;
    this.#timeout = new TimeoutError(kind, Math.round(current.softAt - from), Math.round(now - from), null);
    this.#phase = "grace";
    this.#trace?.aborted(this.#timeout);
    current.abort(this.#timeout);
  }

  /** The hard deadline: the caller goes on, whatever the function does. */
  #force(current: Try<Value>): void {
    current.leave();
    this.#failed({ error: this.#timeout, isTimeout: true });
  }

  #settled(isOk: boolean, value: unknown): void {
    const current = this.#try as Try<Value>;
    const now = this.#host.system.monotonic();
    // If the event loop was blocked, the function may end before the timer of its deadline fires.
    if (this.#phase === "trying" && now >= current.softAt && !this.#isBeforeAround(current))
      this.#signal(current);
    const isTimedOut = this.#phase === "grace";
    const isTooLate = isTimedOut && now >= current.softAt + this.#input.policy.grace;
    if (isTooLate || this.#phase === "over") current.drop(isOk, value);
    if (this.#phase === "over") return;
    if (isTooLate) this.#failed({ error: this.#timeout, isTimeout: true });
    else if (isOk) this.#finish(isTimedOut ? "late" : "ok", () => this.#resolve(value as Value));
    else if (isTimedOut) this.#failed({ error: this.#timeoutCausedBy(value), isTimeout: true });
    else this.#failed({ error: value, isTimeout: false });
  }

  /** The time of the code around is up, but its signal has not said so yet. Until then its results count. */
  #isBeforeAround({ softAt }: Try<Value>): boolean {
    return softAt >= this.#aroundAt && this.#ambient?.signal.aborted === false;
  }

  #timeoutCausedBy(cause: unknown): TimeoutError {
    const timeout = this.#timeout as TimeoutError;
    const { kind, limit, elapsed, deadline } = timeout;
    return cause === timeout ? timeout : new TimeoutError(kind, limit, elapsed, deadline, cause);
  }

  /** One try failed. Decides between a retry and the end. */
  #failed(failure: Failure): void {
    this.#host.deadlines.clear(this);
    const { name, policy } = this.#input;
    if (failure.isTimeout && policy.adaptive && this.#timeout?.kind === "execution")
      this.#host.wasCut(name, policy);
    const delay = this.#retryDelay(failure);
    if (delay === undefined) {
      this.#fail(failure);
      return;
    }
    this.#failure = failure;
    this.#phase = "backoff";
    this.#host.deadlines.set(this, this.#host.system.monotonic() + delay);
  }

  #retryDelay({ error, isTimeout }: Failure): number | undefined {
    const { attempts, backoff, except, mode } = this.#input.policy;
    if (this.#tries >= attempts || (isTimeout && mode === "discard")) return undefined;
    if (isExcepted(except, isTimeout ? "timeout" : (describeError(error)?.name ?? "Error"))) return undefined;
    const delay = backoffDelay(backoff, this.#tries, this.#host.system.random);
    return this.#fits(delay) ? delay : undefined;
  }

  /** Whether a try that begins after the delay has enough time before the total. */
  #fits(delay: number): boolean {
    return this.#host.system.monotonic() + delay + this.#input.policy.retryNeeds <= this.#totalAt;
  }

  /** The backoff is over. Its timer may have fired too late for another try. */
  #retry(): void {
    if (!this.#fits(0)) this.#fail(this.#failure as Failure);
    else this.#inContext?.(() => this.#begin());
  }

  #fail({ error, isTimeout }: Failure): void {
    this.#finish(isTimeout ? "timeout" : "failed", () => this.#reject(error), error);
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
    const end: CallEnd = {
      name: this.#input.name,
      policy: this.#input.policy,
      outcome,
      limit,
      took: current ? now - current.startedAt : 0,
      total: now - this.#startedAt,
      attempts: this.#tries,
      ...(outcome === "timeout" && this.#timeout && { kind: this.#timeout.kind as "execution" | "total" }),
      ...(error !== undefined && { error }),
    };
    this.#trace?.ended(end);
    this.#host.ended(end);
  }
}

/** Whether the error is the reason of an aborted signal, as `fetch` gives it, or has it as its cause, as Node's own calls. */
function endsAsAsked(error: unknown, reason: unknown): boolean {
  return error === reason || readKey(error, "cause") === reason;
}

/** Goes on inside a call from code that may have lost its async context on the way. */
export function goOnInside(context: CallContext, call: () => void): void {
  if (context instanceof Try && currentAmbient() !== context) context.inside(call);
  else call();
}

/** One try of a call: its function, its signal, and whether anybody still waits for it. */
class Try<Value> implements CallContext, Ambient {
  readonly attempt: number;
  readonly startedAt: number;
  softAt: number;
  isEntered = false;
  readonly #host: CallDeps;
  readonly #name: string;
  readonly #trace: CallTrace | undefined;
  #controller: AbortController | undefined;
  #reason: { readonly value: unknown } | undefined;
  #hasEnded = false;
  /** The verdict stands: what the function returns now is dropped. */
  #isLeft = false;

  constructor(
    host: CallDeps,
    name: string,
    attempt: number,
    startedAt: number,
    softAt: number,
    trace: CallTrace | undefined,
  ) {
    this.#host = host;
    this.#name = name;
    this.attempt = attempt;
    this.startedAt = startedAt;
    this.softAt = softAt;
    this.#trace = trace;
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

  untilSignal(): number {
    return this.remaining();
  }

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
      this.drop(isOk, value);
    };
    try {
      const returned = this.inside(() => run(this));
      // A foreign thenable may settle twice, or resolve with another one. A promise of it does neither.
      if (isThenable(returned))
        Promise.resolve(returned).then(
          (value) => done(true, value),
          (error) => done(false, error),
        );
      else done(true, returned);
    } catch (error) {
      done(false, error);
    }
  }

  /** Calls the function in the async context of this try: its deadline and its span. */
  inside<Result>(call: () => Result): Result {
    const inside = () => runInside(this, call);
    return this.#trace ? this.#trace.run(inside) : inside();
  }

  /** What the function gives after its verdict is dropped. If it ended as its signal asked, there is nothing to count. */
  drop(isOk: boolean, value: unknown): void {
    const isAsAsked = !isOk && this.#reason && endsAsAsked(value, this.#reason.value);
    if (!isAsAsked) this.#host.ignored(this.#name);
  }

  /** The verdict was given without the function. */
  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    if (this.isEntered && !this.#hasEnded) this.#host.stuck(this.#name);
  }
}
