import { timeoutError } from "../../core/job/decide/decision.ts";
import type { EventOf } from "../../core/job/decide/job-events.ts";
import { isSealed, KeyMissingError, opened, type SealedField } from "../../core/job/documents/sealed.ts";
import type { JobRow, Policy } from "../../core/job/job.ts";
import { softKind } from "../../core/job/policy/deadlines.ts";
import { BUILT_IN_GRACE } from "../../core/job/policy/policy.ts";
import { type AbortReason, SHUTDOWN, StopError, TimeoutError } from "../../core/job/reasons.ts";
import { type Json, toJsonText } from "../../core/schema.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { isInstance, isThenable } from "../../core/user-values.ts";
import { runInside } from "../../ports/ambient.ts";
import { type SandboxRunner, SandboxUnavailable } from "../../ports/sandbox.ts";
import type { AttemptParts } from "../context.ts";
import { AttemptScope, type ScopedAttempt } from "./attempt-scope.ts";
import { CleanupHooks } from "./cleanup-hooks.ts";
import { BatchScope, type Gathering, Seat } from "./gathering.ts";
import { classified, verdictOfReturn, verdictOfThrow } from "./handler-verdict.ts";
import { runPipeline } from "./middleware.ts";
import type { Handler, Middleware, Processor } from "./processor.ts";
import { SandboxedRun } from "./sandboxed-run.ts";

/** How long a job waits for a worker with its key. */
const KEY_DELAY = 60_000;

/** The verdicts that a worker can give on its own attempts. */
export type Verdict =
  | EventOf<"succeed">
  | EventOf<"fail">
  | EventOf<"snooze">
  | EventOf<"release">
  | EventOf<"expire">
  | EventOf<"stall">;

/** What an attempt needs from its worker, local or remote. */
export interface RunDeps {
  readonly parts: AttemptParts;
  readonly middleware: readonly Middleware[];
  /** Undefined for a processor without a sandbox. */
  runnerOf(processor: Processor): SandboxRunner | undefined;
  /** Where the jobs of this attempt's type and queue are gathered; undefined for a processor without batches. */
  gatheringOf(attempt: RunningAttempt): Gathering | undefined;
  /** The attempt is over, with or without a verdict: its slot is free. */
  freed(attempt: RunningAttempt): void;
  /** The handler still runs after its verdict, until `unstuck` is called. */
  stuck(attempt: RunningAttempt): void;
  unstuck(attempt: RunningAttempt): void;
  watch(attempt: RunningAttempt): void;
  /** When running attempts are aborted for shutdown, and until when this one must stop then; null if none is due. */
  shutdownOf(attempt: RunningAttempt): { readonly at: Instant; readonly deadline: Instant } | null;
}

/** Takes what an attempt reports before its verdict. */
interface Notes {
  progress(fraction: number, note: Json | undefined): void;
  /** Resolves when it is durable. */
  checkpoint(state: Json): Promise<void>;
  log(message: string, fields: { readonly [key: string]: Json } | undefined): void;
}

/**
 * One attempt while its handler runs: the handler, its signal, its deadlines and its one verdict. A subclass knows
 * whether the verdict goes to a store or to a server.
 */
export abstract class RunningAttempt<Deps extends RunDeps = RunDeps> implements ScopedAttempt {
  readonly processor: Processor;
  /** When `tick` must be called next; Infinity for never. */
  nextAt = Number.POSITIVE_INFINITY;
  /** By `clock.elapsed()`, to measure how long handlers run. */
  readonly enteredAt: number;
  row: JobRow;
  protected readonly host: Deps;
  #reason: AbortReason | undefined;
  #controller: AbortController | undefined;
  #isOver = false;
  /** The hard deadline has passed, so the verdict is fixed, even if a sandbox still delays its write. */
  #isForced = false;
  #isLost = false;
  /** Until when the handler of a cancelled or lost job may hold its slot. */
  #stopAt: Instant | undefined;
  /** The handler has returned or thrown. An attempt that is over before that is stuck. */
  #hasEnded = false;
  /** Middleware has returned, perhaps before its handler. The run has ended when both have. */
  #hasLeft = false;
  #isInside = false;
  #rejectForced: ((reason: AbortReason) => void) | undefined;
  #sandbox: SandboxedRun | undefined;
  #cleanup: CleanupHooks | undefined;
  /** What was encrypted in the row. */
  #plain: Pick<JobRow, "payload" | "checkpoint"> | undefined;
  /** Its place in a batch. */
  #seat: Seat | undefined;

  constructor(host: Deps, processor: Processor, row: JobRow, enteredAt: number) {
    this.host = host;
    this.processor = processor;
    this.row = row;
    this.enteredAt = enteredAt;
    this.#schedule();
  }

  /** Writes or sends the one verdict. Not called if another verdict stands already. */
  protected abstract submit(verdict: Verdict): void;
  /** The handler gave a beat: send the new `stallAt` in time. */
  protected abstract beaten(stallAt: Instant): void;
  /** Made on first use, because most handlers report nothing. */
  protected abstract get notes(): Notes;

  get parts(): Deps["parts"] {
    return this.host.parts;
  }

  get policy(): Policy {
    return this.row.policy as Policy;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The job was cancelled or its claim was lost, so a verdict of this attempt would be refused. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Why the signal was aborted; undefined while it is not. */
  protected get reason(): AbortReason | undefined {
    return this.#reason;
  }

  /** Why calls of the handler are refused; undefined while the attempt is valid. */
  get refusal(): AbortReason | undefined {
    return this.#isOver || this.#isLost ? (this.#reason ?? new StopError("lost", 0, null)) : undefined;
  }

  get #isTimedOut(): boolean {
    return this.#reason instanceof TimeoutError;
  }

  /** Made on first use, because a controller costs more than the rest of a small job. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  run(): void {
    const scope = this.processor.batch ? new BatchScope(this) : new AttemptScope(this);
    try {
      this.#unseal();
      const parsed = this.#parsePayload(scope);
      // The deadline may pass while an asynchronous schema runs. Then the handler is not entered.
      if (parsed)
        parsed
          .then(() => (this.#reason ? this.#threw(this.#reason) : this.enter(scope)))
          .catch((error) => this.#threw(error));
      else this.enter(scope);
    } catch (error) {
      this.#threw(error);
    }
  }

  /** The handler, and a sandbox, get plain documents. Nothing of a row that is opened here is written back. */
  #unseal(): void {
    const { payload, checkpoint } = this.row;
    if (!isSealed(payload) && !isSealed(checkpoint)) return;
    const { sealing } = this.parts;
    this.#plain = {
      payload: opened(sealing, payload, this.row, "payload"),
      checkpoint: checkpoint === null ? null : opened(sealing, checkpoint, this.row, "checkpoint"),
    };
    this.row = { ...this.row, ...this.#plain };
  }

  #sealed(value: Json, field: SealedField): Json {
    const { sealing, documentLimit } = this.parts;
    if (!sealing) return value;
    return JSON.parse(sealing.seal(toJsonText(value, field, documentLimit), this.row.id, field)) as Json;
  }

  #parsePayload(scope: AttemptScope): Promise<void> | undefined {
    const schema = this.processor.definition.payload;
    // A sandbox parses its payload inside. It is parsed here too only if middleware needs it.
    const isParsedInside = this.processor.sandbox && this.host.middleware.length === 0;
    return schema && !isParsedInside ? scope.parse(schema) : undefined;
  }

  protected enter(scope: AttemptScope): void {
    // Calls inside get what is left of this attempt (SEMANTICS 10.6).
    runInside(scope, () => this.#enter(scope));
  }

  #enter(scope: AttemptScope): void {
    const { middleware } = this.host;
    const handler = this.#handlerOf(scope);
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

  #handlerOf(scope: AttemptScope): Handler<never, unknown> {
    const gathering = this.processor.batch && this.host.gatheringOf(this);
    if (gathering)
      return () => {
        this.#seat = new Seat(this, scope as BatchScope);
        gathering.join(this.#seat);
        return this.#seat.result;
      };
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
      const event = verdictOfReturn(value, this.processor.definition, this.parts, this.#isTimedOut);
      if (event instanceof Promise)
        event
          .then((later) => this.#withSealedResult(later))
          .then(
            (later) => this.#isOver || this.#settle(later),
            (error) => this.#isOver || this.#fail(error),
          );
      else this.#settle(this.#withSealedResult(event));
    } catch (error) {
      this.#fail(error);
    }
  }

  #threw(error: unknown): void {
    this.#ended();
    if (!this.#isOver && !this.#isForced) this.#fail(error);
    // A sandbox that we killed throws too. That is not a late report of a handler.
    else if (!this.#sandbox) this.#ignored();
  }

  #ignored(): void {
    this.parts.counters.add("ignored");
  }

  /** The state of our own signal decides the verdict, not the class of the error (SEMANTICS 3.5). */
  #fail(error: unknown): void {
    if (this.#reason instanceof StopError && this.#reason.kind === "shutdown") this.release();
    else if (isInstance(error, SandboxUnavailable) && !this.#isTimedOut)
      this.#settle({ type: "release", delay: error.delay });
    else if (isInstance(error, KeyMissingError) && !this.#isTimedOut) this.#leaveForKey(error);
    else this.#settle(verdictOfThrow(error, this.#isTimedOut));
  }

  /** The job waits for a worker that has its key. No attempt is spent. */
  #leaveForKey(error: KeyMissingError): void {
    this.parts.logger.error({ job: this.row.id, type: this.row.type, key: error.key }, error.message);
    this.#settle({ type: "release", delay: KEY_DELAY });
  }

  /** Gives the one verdict. Nothing that the handler does later changes it. */
  #settle(verdict: Verdict): void {
    try {
      if (!this.#isLost) this.submit(verdict);
    } catch (error) {
      this.parts.logger.error(
        { job: this.row.id, verdict: verdict.type, error },
        "the verdict could not be written; the sweep will end the attempt",
      );
    }
    this.#over();
  }

  #withSealedResult(verdict: Verdict): Verdict {
    const { sealing } = this.parts;
    if (!sealing || verdict.type !== "succeed" || verdict.result === undefined) return verdict;
    return { ...verdict, result: sealing.seal(verdict.result, this.row.id, "result") };
  }

  #over(): void {
    this.#isOver = true;
    this.nextAt = Number.POSITIVE_INFINITY;
    // Count a stuck handler before its slot is free, because a free slot takes the next job at once.
    if (!this.#hasEnded) this.#leave();
    this.host.freed(this);
  }

  /** The attempt is over but its handler still runs. A sandbox is killed; a handler in this process is counted as stuck. */
  #leave(): void {
    this.#rejectForced?.(this.#reason ?? new StopError("lost", 0, null));
    if (!this.#sandbox) this.host.stuck(this);
    else void this.#sandbox.end().then((isGone) => isGone || this.host.stuck(this));
  }

  #ended(): void {
    this.#hasLeft = true;
    // A sandbox that ends while its stack is read is announced as killed, after its forced verdict.
    if (this.#isInside || (this.#isForced && !this.#isOver)) return;
    this.#hasEnded = true;
    if (this.#isOver) this.host.unstuck(this);
  }

  tick(now: Instant): void {
    if (this.#isOver || this.#isForced) return;
    this.#shutDownFirst(now);
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

  /** At one instant a shutdown comes before total, stalled and execution, whichever timer fires first (SEMANTICS 3.3). */
  #shutDownFirst(now: Instant): void {
    const shutdown = this.#reason === undefined ? this.host.shutdownOf(this) : null;
    if (!shutdown || now < shutdown.at) return;
    const timerAt = earlier(this.row.softAt, this.#stallAt);
    if (timerAt === null || shutdown.at <= timerAt) this.shutDown(shutdown.deadline);
  }

  /** Whether the stall comes before the soft deadline. At one instant, total > stalled > execution (SEMANTICS 3.3). */
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
    // The verdict is given. Abort the signal too, so that the handler can stop.
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

  /** The server says that the soft deadline has passed. Its clock decides. */
  hearSoftSignal(): void {
    const { softAt } = this.row;
    if (this.#isOver || this.#reason || softAt === null) return;
    this.#timeOut(Math.max(softAt, this.parts.clock.now()), softAt);
    this.#schedule();
  }

  /** The job was cancelled or lost, so this attempt gives no verdict. The handler gets its grace to clean up. */
  stop(kind: "cancelled" | "lost"): void {
    // Every later beat calls this again. The grace counts from the first call.
    if (this.#isOver || this.#isLost) return;
    const now = this.parts.clock.now();
    this.#stopAt = now + (this.policy.grace ?? BUILT_IN_GRACE);
    this.#isLost = true;
    if (kind === "lost") this.announceLost(now);
    this.abort(new StopError(kind, now - (this.row.startedAt as Instant), this.#stopAt));
    if (this.#hasEnded) this.#over();
    this.#schedule();
  }

  /** Counts and announces the lost attempt, because no verdict of it will be sent (SEMANTICS 3.8). */
  protected announceLost(now: Instant): void {
    const { bus, counters } = this.parts;
    counters.add("lost");
    if (bus.wants("job.lost")) bus.emit(bus.detail(this.row, "job.lost", now));
  }

  /** The worker shuts down: the handler must stop until the deadline, and the job is released (SEMANTICS 5.2). */
  shutDown(deadline: Instant): void {
    if (this.#isOver || this.#reason) return;
    this.abort(new StopError("shutdown", this.parts.clock.now() - (this.row.startedAt as Instant), deadline));
  }

  /** Releases the job and does not spend the attempt. After a timeout signal the verdict is that timeout. */
  release(): void {
    if (this.#isOver) return;
    if (this.#isTimedOut) this.#settle({ type: "fail", error: SHUTDOWN, signalled: true });
    else this.#settle({ type: "release", error: SHUTDOWN });
  }

  /** Releases a job whose handler was not entered. The attempt is not spent. */
  giveBackUnentered(): void {
    this.#hasEnded = true;
    this.#settle({ type: "release" });
  }

  protected abort(reason: AbortReason): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    this.#seat?.aborted(this.#reason);
    this.#cleanup?.run();
  }

  onCleanup(hook: () => void | Promise<void>): void {
    this.#cleanup ??= new CleanupHooks(this.parts, () => this.row);
    this.#cleanup.add(hook, this.#reason !== undefined);
  }

  /** A beat of the handler. It moves `stallAt` and no other deadline (SEMANTICS 3.6). */
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
    this.notes.progress(fraction, note === undefined ? undefined : this.#sealed(note, "progress"));
    this.beat();
  }

  checkpoint(state: Json): Promise<void> {
    const { refusal } = this;
    if (refusal) this.#ignored();
    const save = async () => this.notes.checkpoint(this.#sealed(state, "checkpoint"));
    const durable = refusal ? Promise.reject(refusal) : save();
    // A handler may ignore this promise. Its rejection must not crash the process.
    durable.catch(() => {});
    this.beat();
    return durable;
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.refusal) this.#ignored();
    else this.notes.log(message, fields);
  }

  /** Takes over a row with other deadlines. */
  protected reschedule(row: JobRow): void {
    this.row = this.#plain ? { ...row, ...this.#plain } : row;
    this.#sandbox?.refreshed();
    this.#schedule();
  }

  /** When the silence of the handler, or of the event loop in its sandbox, becomes a stall (SEMANTICS 3.6). */
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
