import { softKind } from "../../core/job/deadlines.ts";
import { timeoutError } from "../../core/job/decision.ts";
import type { JobRow, Policy } from "../../core/job/job.ts";
import type { EventOf } from "../../core/job/job-events.ts";
import { BUILT_IN_GRACE } from "../../core/job/policy.ts";
import { type AbortReason, SHUTDOWN, StopError, TimeoutError } from "../../core/job/reasons.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { type SandboxRunner, SandboxUnavailable } from "../../ports/sandbox.ts";
import type { AttemptParts } from "../context.ts";
import { AttemptScope, type ScopedAttempt } from "./attempt-scope.ts";
import { CleanupHooks } from "./cleanup-hooks.ts";
import { classified, verdictOfReturn, verdictOfThrow } from "./handler-verdict.ts";
import { isThenable, runPipeline } from "./middleware.ts";
import type { Handler, Middleware, Processor } from "./processor.ts";
import { SandboxedRun } from "./sandboxed-run.ts";

/** What a worker can find about an attempt of its own. */
export type Verdict =
  | EventOf<"succeed">
  | EventOf<"fail">
  | EventOf<"snooze">
  | EventOf<"release">
  | EventOf<"expire">
  | EventOf<"stall">;

/** What an attempt needs of the worker that runs it. */
export interface RunHost {
  readonly parts: AttemptParts;
  readonly middleware: readonly Middleware[];
  /** What runs the attempts of a sandboxed processor. */
  runnerOf(processor: Processor): SandboxRunner | undefined;
  /** Its slot is free again: the verdict was given, or there is none left to give. */
  freed(attempt: RunningAttempt): void;
  /** The handler ran past its verdict; until it ends, the process carries it. */
  stuck(attempt: RunningAttempt): void;
  unstuck(attempt: RunningAttempt): void;
  watch(attempt: RunningAttempt): void;
}

/** Where an attempt leaves what it reports before its verdict. */
interface Notes {
  progress(fraction: number, note: Json | undefined): void;
  /** Resolves when it is durable. */
  checkpoint(state: Json): Promise<void>;
  log(message: string, fields: { readonly [key: string]: Json } | undefined): void;
}

/**
 * One attempt while its handler runs: the handler, its signal, its deadlines, and the one verdict on it. Whether the row
 * lies in a store or behind a server, and so how the verdict gets there, is for those who extend it to know.
 */
export abstract class RunningAttempt<Host extends RunHost = RunHost> implements ScopedAttempt {
  readonly processor: Processor;
  /** The next instant at which something is due for this attempt; Infinity for never. */
  nextAt = Number.POSITIVE_INFINITY;
  /** By `clock.elapsed()`, for measuring how long handlers run. */
  readonly enteredAt: number;
  row: JobRow;
  protected readonly host: Host;
  #reason: AbortReason | undefined;
  #controller: AbortController | undefined;
  #isOver = false;
  /** The hard deadline has passed: the verdict stands, even where its writing waits for a moment. */
  #isForced = false;
  #isLost = false;
  /** Until when the handler of a cancelled or lost job may hold its slot. */
  #stopAt: Instant | undefined;
  /** The handler has returned or thrown; an attempt can be over before that, and is stuck then. */
  #hasEnded = false;
  /** Middleware may give up on a handler that goes on: only the end of both is the end. */
  #hasLeft = false;
  #isInside = false;
  #rejectForced: ((reason: AbortReason) => void) | undefined;
  #sandbox: SandboxedRun | undefined;
  #cleanup: CleanupHooks | undefined;

  constructor(host: Host, processor: Processor, row: JobRow, enteredAt: number) {
    this.host = host;
    this.processor = processor;
    this.row = row;
    this.enteredAt = enteredAt;
    this.#schedule();
  }

  /** Hands the one verdict on. It is not asked where somebody else's stands. */
  protected abstract judged(verdict: Verdict): void;
  /** The handler gave a sign of life that others should hear of. */
  protected abstract beaten(stallAt: Instant): void;
  /** Made on first use: most handlers report nothing. */
  protected abstract get notes(): Notes;

  get parts(): Host["parts"] {
    return this.host.parts;
  }

  get policy(): Policy {
    return this.row.policy as Policy;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Somebody else's verdict stands: this one would be refused, so there is nothing left to ask or to tell about it. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Why its signal was given, if it was. */
  protected get reason(): AbortReason | undefined {
    return this.#reason;
  }

  /** Why nothing that the handler does counts any more. */
  get refusal(): AbortReason | undefined {
    return this.#isOver || this.#isLost ? (this.#reason ?? new StopError("lost", 0, null)) : undefined;
  }

  get #isTimedOut(): boolean {
    return this.#reason instanceof TimeoutError;
  }

  /** Made on first use: a controller per job would cost more than the rest of a small job. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  run(): void {
    const scope = new AttemptScope(this);
    try {
      const parsed = this.#parsePayload(scope);
      // A schema that takes its time may take more than there was: a handler is never entered past its deadline.
      if (parsed)
        parsed
          .then(() => (this.#reason ? this.#threw(this.#reason) : this.enter(scope)))
          .catch((error) => this.#threw(error));
      else this.enter(scope);
    } catch (error) {
      this.#threw(error);
    }
  }

  #parsePayload(scope: AttemptScope): Promise<void> | undefined {
    const schema = this.processor.definition.payload;
    // A sandbox parses its payload inside; here it is parsed only for middleware, which sees what the handler sees.
    const isParsedInside = this.processor.sandbox && this.host.middleware.length === 0;
    return schema && !isParsedInside ? scope.parse(schema) : undefined;
  }

  protected enter(scope: AttemptScope): void {
    const { middleware } = this.host;
    const handler = this.#handler;
    let returned: unknown;
    if (middleware.length > 0) {
      const forced = new Promise<never>((_, reject) => {
        this.#rejectForced = reject;
      });
      forced.catch(() => {});
      returned = runPipeline(middleware, handler, scope, {
        forced,
        classify: (error) => classified(this.#reason, error),
        inside: (isInside) => {
          this.#isInside = isInside;
          if (!isInside && this.#hasLeft) this.#ended();
        },
      });
    } else returned = handler(scope as never);
    if (isThenable(returned)) {
      returned.then(
        (value) => this.#returned(value),
        (error) => this.#threw(error),
      );
    } else this.#returned(returned);
  }

  get #handler(): Handler<never, unknown> {
    const runner = this.host.runnerOf(this.processor);
    if (!runner) return this.processor.handler;
    return () => {
      this.#sandbox = new SandboxedRun(this, runner);
      this.#schedule();
      return this.#sandbox.run.result as Promise<never>;
    };
  }

  #returned(value: unknown): void {
    this.#ended();
    if (this.#isOver || this.#isForced) {
      this.#ignored();
      return;
    }
    try {
      const event = verdictOfReturn(value, this.processor.definition.result, this.parts, this.#isTimedOut);
      if (event instanceof Promise)
        event.then(
          (later) => this.#isOver || this.#settle(later),
          (error) => this.#isOver || this.#fail(error),
        );
      else this.#settle(event);
    } catch (error) {
      this.#fail(error);
    }
  }

  #threw(error: unknown): void {
    this.#ended();
    if (!this.#isOver && !this.#isForced) this.#fail(error);
    // The end of a sandbox that was ended by force is no late report.
    else if (!this.#sandbox) this.#ignored();
  }

  #ignored(): void {
    this.parts.counters.add("ignored");
  }

  /** Classified by the state of our own signal, never by the class of the error (SEMANTICS 3.5). */
  #fail(error: unknown): void {
    if (this.#reason instanceof StopError && this.#reason.kind === "shutdown") this.release();
    else if (error instanceof SandboxUnavailable && !this.#isTimedOut)
      this.#settle({ type: "release", delay: error.delay });
    else this.#settle(verdictOfThrow(error, this.#isTimedOut));
  }

  /** Gives the one verdict; whatever the handler does after it changes nothing. */
  #settle(verdict: Verdict): void {
    if (!this.#isLost) this.judged(verdict);
    this.#over();
  }

  #over(): void {
    this.#isOver = true;
    this.nextAt = Number.POSITIVE_INFINITY;
    // Counted before its slot is free: a slot that is free takes the next job at once.
    if (!this.#hasEnded) this.#leave();
    this.host.freed(this);
  }

  /** The verdict stands while the handler runs: a sandbox is ended, a handler in this process can only be counted. */
  #leave(): void {
    this.#rejectForced?.(this.#reason ?? new StopError("lost", 0, null));
    if (!this.#sandbox) this.host.stuck(this);
    else void this.#sandbox.end().then((isGone) => isGone || this.host.stuck(this));
  }

  #ended(): void {
    this.#hasLeft = true;
    if (this.#isInside) return;
    this.#hasEnded = true;
    if (this.#isOver) this.host.unstuck(this);
  }

  /** Called when `nextAt` has come. */
  tick(now: Instant): void {
    if (this.#isOver || this.#isForced) return;
    const { softAt, hardAt } = this.row;
    const stallAt = this.#stallAt;
    if (stallAt !== null && this.#isStalled(now, stallAt)) {
      this.#stall(now, stallAt);
      return;
    }
    if (this.#reason === undefined && softAt !== null && now >= softAt) this.#timeOut(now, softAt);
    if (this.#isTimedOut && hardAt !== null && now >= hardAt) this.#force(now, hardAt);
    else if (this.#stopAt !== undefined && now >= this.#stopAt) this.#over();
    this.#schedule();
  }

  /** Whether the silence came first; at one instant, total > stalled > execution (SEMANTICS 3.3). */
  #isStalled(now: Instant, stallAt: Instant): boolean {
    if (now < stallAt || this.#reason instanceof StopError) return false;
    const { softAt } = this.row;
    if (softAt === null || this.#reason !== undefined || stallAt < softAt) return true;
    return stallAt === softAt && softKind(this.row) === "execution";
  }

  #stall(now: Instant, stallAt: Instant): void {
    this.parts.counters.fired(now - stallAt);
    const heartbeat = this.row.heartbeat ?? 0;
    this.row = { ...this.row, stallAt };
    this.#reason ??= new TimeoutError("stalled", heartbeat, now - stallAt + heartbeat, null);
    this.#settle({ type: "stall", ...this.#sandbox?.hung() });
    // The verdict stands; the handler hears of it, so that it does not go on working for nothing.
    this.abort(this.#reason);
  }

  #timeOut(now: Instant, softAt: Instant): void {
    this.parts.counters.fired(now - softAt);
    const { kind = "execution", limit = 0, elapsed = 0 } = timeoutError(this.row, now, {});
    this.abort(new TimeoutError(kind, limit, elapsed, this.row.hardAt));
  }

  #force(now: Instant, hardAt: Instant): void {
    this.parts.counters.fired(now - hardAt);
    this.#isForced = true;
    const settle = () =>
      this.#isOver || this.#settle({ type: "expire", forced: true, ...this.#sandbox?.hung() });
    if (this.#sandbox) void this.#sandbox.condemn().then(settle);
    else settle();
  }

  /** Whoever keeps the row says that the soft deadline has passed, and may know the time better. */
  hearSoftSignal(): void {
    const { softAt } = this.row;
    if (this.#isOver || this.#reason || softAt === null) return;
    this.#timeOut(Math.max(softAt, this.parts.clock.now()), softAt);
    this.#schedule();
  }

  /** Cancelled or lost: the verdict is already somebody else's, so the handler only gets its grace to clean up. */
  stop(kind: "cancelled" | "lost"): void {
    // Every further beat says so again; the grace counts from the first time.
    if (this.#isOver || this.#isLost) return;
    const now = this.parts.clock.now();
    this.#stopAt = now + (this.policy.grace ?? BUILT_IN_GRACE);
    this.#isLost = true;
    if (kind === "lost") this.tellLost(now);
    this.abort(new StopError(kind, now - (this.row.startedAt as Instant), this.#stopAt));
    if (this.#hasEnded) this.#over();
    this.#schedule();
  }

  /** Its verdict would be refused, so it is counted here instead of being sent (SEMANTICS 3.8). */
  protected tellLost(now: Instant): void {
    const { bus, counters } = this.parts;
    counters.add("lost");
    if (bus.wants("job.lost")) bus.emit(bus.detail(this.row, "job.lost", now));
  }

  /** The worker shuts down: hear it, clean up, and give the job back (SEMANTICS 5.2). */
  shutDown(deadline: Instant): void {
    if (this.#isOver || this.#reason) return;
    this.abort(new StopError("shutdown", this.parts.clock.now() - (this.row.startedAt as Instant), deadline));
  }

  /** Gives the job back without spending the attempt; one that was already timing out is judged as that timeout. */
  release(): void {
    if (this.#isOver) return;
    if (this.#isTimedOut) this.#settle({ type: "fail", error: SHUTDOWN, signalled: true });
    else this.#settle({ type: "release", error: SHUTDOWN });
  }

  /** The handler was never entered and never will be, so the attempt is not spent. */
  giveBackUnentered(): void {
    this.#hasEnded = true;
    this.#settle({ type: "release" });
  }

  protected abort(reason: AbortReason): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    this.#cleanup?.run();
  }

  onCleanup(hook: () => void | Promise<void>): void {
    this.#cleanup ??= new CleanupHooks(this.parts, () => this.row);
    this.#cleanup.add(hook, this.#reason !== undefined);
  }

  /** A sign of life of the handler: it moves `stallAt` and nothing else (SEMANTICS 3.6). */
  beat(): void {
    const { stallAt, heartbeat } = this.row;
    if (this.refusal || stallAt === null || heartbeat === null || this.policy.beats !== "handler") return;
    const nextStallAt = this.parts.clock.anchor() + heartbeat;
    this.row = { ...this.row, stallAt: nextStallAt };
    this.#schedule();
    this.beaten(nextStallAt);
  }

  progress(fraction: number, note: Json | undefined): void {
    if (this.refusal) {
      this.#ignored();
      return;
    }
    this.notes.progress(fraction, note);
    this.beat();
  }

  checkpoint(state: Json): Promise<void> {
    const { refusal } = this;
    if (refusal) this.#ignored();
    const durable = refusal ? Promise.reject(refusal) : this.notes.checkpoint(state);
    // A handler that does not wait for it must not take the process down with an unhandled rejection.
    durable.catch(() => {});
    this.beat();
    return durable;
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.refusal) this.#ignored();
    else this.notes.log(message, fields);
  }

  /** The deadlines are others than before, and hold from now on. */
  protected reschedule(row: JobRow): void {
    this.row = row;
    this.#sandbox?.refreshed();
    this.#schedule();
  }

  /** The end of the silence that is allowed to the handler, or to the event loop of its sandbox (SEMANTICS 3.6). */
  get #stallAt(): Instant | null {
    return this.row.stallAt ?? this.#sandbox?.stallAt ?? null;
  }

  #schedule(): void {
    const { softAt, hardAt } = this.row;
    const stallAt = this.#stallAt;
    let nextAt = this.#stopAt ?? Number.POSITIVE_INFINITY;
    if (this.#reason === undefined && softAt !== null) nextAt = softAt;
    else if (this.#isTimedOut && hardAt !== null) nextAt = hardAt;
    if (stallAt !== null && stallAt < nextAt && !(this.#reason instanceof StopError)) nextAt = stallAt;
    if (this.#isOver || this.#isForced) nextAt = Number.POSITIVE_INFINITY;
    this.nextAt = nextAt;
    if (nextAt !== Number.POSITIVE_INFINITY) this.host.watch(this);
  }
}
