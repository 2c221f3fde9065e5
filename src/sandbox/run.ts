import type { AbortReason } from "../core/job/reasons.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { SandboxCall, SandboxEnd, SandboxRun } from "../ports/sandbox.ts";
import { type System, type Timer, within } from "../ports/system.ts";
import type { Silence } from "./proc.ts";
import {
  decodeError,
  decodeSnooze,
  encodeError,
  encodeReason,
  MOST_LINES,
  type Order,
  ProtocolFlaw,
  type Report,
} from "./protocol.ts";
import { type Look, lookText } from "./stack.ts";

/** A child of curfew has at most 100 questions open; see `child-questions.ts`. */
const MOST_QUESTIONS = 1_000;

/** What a run needs from its sandbox. */
export interface RunDeps {
  send(order: Order): void;
  capture(limit: number): Promise<Look>;
  silence(): Silence;
  /** It gets no other attempt and will be ended. */
  condemn(): void;
  kill(): Promise<boolean>;
}

/**
 * A loop that is silent for this long, in milliseconds, counts as blocked. It reports every 100 ms, so several
 * reports are missing.
 */
const SILENT_FOR = 250;
/** Milliseconds to read pending reports before silence counts: this process may have been blocked itself. */
const READ_FIRST = 5;
const CAPTURE_IN_GRACE = 1_000;
/** The longest look after the hard deadline, in milliseconds (SEMANTICS 8.4). */
const LAST_LOOK = 100;
const NO_ANSWER = "it has not answered the debugger";
/** How long before a stall the stack is read, in milliseconds: a busy machine takes seconds to open a debugger. */
const LOOK_AHEAD = 5_000;

/** One attempt in a pool: it waits for a sandbox, runs in it, and ends with it or before it. */
export class Run implements SandboxRun {
  readonly call: SandboxCall;
  readonly result: Promise<unknown>;
  readonly #system: System;
  /** The latest known soft deadline, and when it was received. */
  #limits: { readonly at: Instant | null; readonly remaining: number | null; readonly since: number };
  #resolve: (value: unknown) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #host: RunDeps | undefined;
  #isSettled = false;
  /** It is being ended by force. Its result settles only when its sandbox is gone. */
  #isCondemned = false;
  /** Its sandbox has reported about it, so code of the user may have run. */
  #isEntered = false;
  #reason: AbortReason | undefined;
  #aliveAt: number;
  #resources: readonly string[] | undefined;
  #hearing: Timer | undefined;
  #listening: Timer | undefined;
  /** The running look. Another one may follow if it finds nothing. */
  #looking: Promise<void> | undefined;
  #seen: Look | undefined;
  /** When it was first looked at since its last report; Infinity if never. */
  #lookedAt = Number.POSITIVE_INFINITY;
  #lastLook: Promise<void> | undefined;
  #lastProgress: number | undefined;
  #lastLog: string | undefined;
  #lines = 0;
  #questions = 0;

  constructor(system: System, call: SandboxCall) {
    this.#system = system;
    this.call = call;
    this.#aliveAt = system.monotonic();
    this.#limits = { at: call.job.deadline, remaining: call.job.remaining, since: this.#aliveAt };
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // A finished attempt may have no listener left.
    this.result.catch(() => {});
  }

  /** Later reports are ignored. */
  get isOver(): boolean {
    return this.#isSettled || this.#isCondemned;
  }

  begin(host: RunDeps): void {
    this.#host = host;
    const { job, key } = this.call;
    this.#aliveAt = this.#system.monotonic();
    const { at, remaining, since } = this.#limits;
    const left = remaining === null ? null : Math.max(0, remaining - (this.#aliveAt - since));
    host.send({ say: "run", key, job: { ...job, deadline: at, remaining: left } });
    // Starting a sandbox took time. The silence counts from here.
    this.call.alive();
    if (this.#reason) this.#sendAbort(this.#reason);
    this.#listenFor(this.#lookAfter);
  }

  /** Leaves a sandbox that is gone, to begin in another one. Returns false if code of the user may have run in it. */
  leave(): boolean {
    if (this.#isEntered || this.isOver || this.#reason) return false;
    this.#listening?.cancel();
    this.#host = undefined;
    this.#seen = undefined;
    this.#lookedAt = Number.POSITIVE_INFINITY;
    return true;
  }

  /** The silence after which the stack is read: a blocked loop is looked at shortly before it counts as stalled. */
  get #lookAfter(): number {
    const { silence } = this.call;
    return silence === null
      ? Number.POSITIVE_INFINITY
      : Math.max(silence / 2, silence - LOOK_AHEAD, SILENT_FOR);
  }

  #listenFor(delay: number): void {
    if (delay === Number.POSITIVE_INFINITY) return;
    this.#listening = this.#system.after(delay, () => {
      if (this.isOver || this.#looking || this.#seen) return;
      const rest = this.#lookAfter - this.#silentFor;
      if (rest > 0) this.#listenFor(rest);
      else void this.#look(Math.max(CAPTURE_IN_GRACE, (this.call.silence as number) - this.#silentFor));
    });
  }

  hear(report: Exclude<Report, { say: "ready" | "unloadable" | "crashed" | "idle" }>): void {
    if (this.isOver) {
      if (report.say === "cleanup_failed") this.call.cleanupFailed(decodeError(report.error));
      return;
    }
    const { call } = this;
    this.#isEntered = true;
    this.#aliveAt = this.#system.monotonic();
    // It runs again, so an earlier stack is outdated.
    this.#seen = undefined;
    this.#lookedAt = Number.POSITIVE_INFINITY;
    call.alive();
    if (report.say === "progress") {
      this.#lastProgress = report.fraction;
      call.progress(report.fraction, report.note);
    } else if (report.say === "checkpoint") this.#answer(report.number, call.checkpoint(report.state));
    else if (report.say === "enqueue")
      this.#answer(report.number, call.enqueue(report.definition, report.payload, report.options));
    else if (report.say === "print") this.line(report.stream, report.text);
    else if (report.say === "beat") call.beat();
    else if (report.say === "heard") this.#heard(report.resources);
    else if (report.say === "cleanup_failed") call.cleanupFailed(decodeError(report.error));
    else if (report.say === "log") {
      this.#lastLog = report.message;
      call.log(report.message, report.fields);
    } else if (report.say !== "alive" && report.say !== "entered") this.#settled(report);
  }

  #settled(report: Extract<Report, { say: "returned" | "threw" | "snoozed" }>): void {
    if (report.say === "returned") this.#settle(() => this.#resolve(report.result));
    else if (report.say === "threw") this.#settle(() => this.#reject(decodeError(report.error)));
    else this.#settle(() => this.#resolve(decodeSnooze(report.when)));
  }

  #settle(how: () => void): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#hearing?.cancel();
    this.#listening?.cancel();
    how();
  }

  fail(error: unknown): void {
    this.#settle(() => this.#reject(error));
  }

  #answer(number: number, done: Promise<unknown>): void {
    const { key } = this.call;
    this.#questions += 1;
    if (this.#questions > MOST_QUESTIONS) throw new ProtocolFlaw("asking for too much at once");
    const answered = done.finally(() => {
      this.#questions -= 1;
    });
    answered.then(
      (value) =>
        this.#host?.send({
          say: "answer",
          key,
          number,
          ...(value !== undefined && { value: value as Json }),
        }),
      (error) => this.#host?.send({ say: "answer", key, number, error: encodeError(error) }),
    );
  }

  /** A line on stdout or stderr during this run. */
  line(stream: "stdout" | "stderr", text: string): void {
    this.#lines += 1;
    if (this.isOver || this.#lines > MOST_LINES) return;
    if (this.#lines === MOST_LINES)
      this.call.log(`(more than ${MOST_LINES} lines of output: the rest is dropped)`, undefined);
    else this.call.log(text, { stream });
  }

  abort(reason: AbortReason): void {
    if (this.isOver || this.#reason) return;
    this.#reason = reason;
    if (this.#host) this.#sendAbort(reason);
  }

  #sendAbort(reason: AbortReason): void {
    this.#host?.send({ say: "abort", key: this.call.key, reason: encodeReason(reason) });
    this.#hearing = this.#system.after(READ_FIRST, () => this.#unheard());
  }

  #heard(resources: readonly string[]): void {
    this.#resources = resources.slice(0, 50).map(String);
  }

  /** A healthy loop answers the signal. One that has been silent for too long is looked at. */
  #unheard(): void {
    if (this.isOver || this.#looking || this.#seen) return;
    const rest = SILENT_FOR - this.#silentFor;
    if (rest <= 0) void this.#look(CAPTURE_IN_GRACE);
    else this.#hearing = this.#system.after(rest, () => this.#unheard());
  }

  get #silentFor(): number {
    return this.#system.monotonic() - this.#aliveAt;
  }

  #look(limit: number): Promise<void> {
    const aliveAt = this.#aliveAt;
    this.#lookedAt = Math.min(this.#lookedAt, this.#system.monotonic());
    this.#looking ??= (this.#host as RunDeps).capture(limit).then((look) => {
      this.#looking = undefined;
      // A loop that has reported meanwhile was not hanging. The end of a process does not show where it hung.
      if (this.#aliveAt === aliveAt && ("stack" in look || !this.#seen)) this.#seen = look;
    });
    return this.#looking;
  }

  deadline(at: Instant | null, remaining: number | null): void {
    const { key } = this.call;
    this.#limits = { at, remaining, since: this.#system.monotonic() };
    this.#host?.send({ say: "deadline", key, deadline: at, remaining });
  }

  where(): string | undefined {
    if (this.#seen) return lookText(this.#seen);
    if (!this.#host) return "(it was still waiting for a sandbox)";
    if (!this.#resources) return undefined;
    const inUse = [...new Set(this.#resources)].join(", ");
    return [
      `Its event loop was running; it waited for ${inUse === "" ? "nothing that Node knows of" : inUse}.`,
      ...(this.#lastProgress === undefined ? [] : [`Last progress: ${this.#lastProgress}`]),
      ...(this.#lastLog === undefined ? [] : [`Last log line: ${this.#lastLog}`]),
    ].join("\n");
  }

  async kill(): Promise<SandboxEnd> {
    if (this.#isSettled || !this.#host) {
      this.fail(new Error("the attempt ended before a sandbox was free"));
      return { isGone: true, where: this.where() };
    }
    await this.condemn();
    const isGone = await this.#host.kill();
    return { isGone, where: this.where() };
  }

  condemn(): Promise<void> {
    if (this.#isSettled || !this.#host) return Promise.resolve();
    this.#isCondemned = true;
    this.#host.condemn();
    this.#lastLook ??= this.#takeLastLook();
    return this.#lastLook;
  }

  async #takeLastLook(): Promise<void> {
    const isBlocked = this.#silentFor >= SILENT_FOR || !this.#resources;
    if (!isBlocked || (this.#seen && "stack" in this.#seen)) return;
    const host = this.#host as RunDeps;
    // A process that slept through an earlier look would sleep through this one too.
    const isVain = this.#system.monotonic() - this.#lookedAt >= LAST_LOOK && host.silence().isAsleep;
    if (!isVain) await within(this.#system, LAST_LOOK, this.#look(LAST_LOOK));
    this.#seen ??= { because: `${NO_ANSWER}; ${host.silence().says}` };
  }
}
