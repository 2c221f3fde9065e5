import { CurfewError } from "../core/errors.ts";
import { formatDuration } from "../core/time.ts";
import { SandboxKilled } from "../ports/sandbox.ts";
import { type System, type Timer, within } from "../ports/system.ts";
import type { Carrier, CarrierEvents, Exit } from "./carrier.ts";
import type { Silence } from "./proc.ts";
import { decodeError, type Order, PROTOCOL, type Report } from "./protocol.ts";
import type { Run, RunDeps } from "./run.ts";
import { type Look, lookText } from "./stack.ts";

/** Calls of a sandbox to its pool. */
export interface SandboxOwner {
  ready(sandbox: Sandbox): void;
  unloadable(sandbox: Sandbox, error: unknown): void;
  /** It may be given another attempt. */
  idle(sandbox: Sandbox): void;
  /** Its attempt has reached the code of the user. */
  entered(): void;
  /** It gets no other attempt. `gone` follows. */
  exiting(sandbox: Sandbox): void;
  /** Whether an attempt whose sandbox is gone can run elsewhere. If not, it has failed. */
  takeBack(run: Run): boolean;
  gone(sandbox: Sandbox): void;
  /** A line that belongs to no attempt. */
  line(stream: string, text: string): void;
}

/** The module to load, and how to open a carrier. */
interface SandboxPlan {
  readonly module: string;
  readonly type: string;
  /** Milliseconds from the start until the module must be loaded. */
  readonly load: number;
  open(events: CarrierEvents): Carrier;
}

/** How long a module that hangs while it loads is asked for its stack, in milliseconds. */
const LOOK_AT_LOAD = 1_000;
/** How long cleanup may run after the handler has returned, in milliseconds. */
const IDLE_WITHIN = 5_000;
/**
 * A process is gone a few milliseconds after SIGKILL. What still exists after this is a thread in a native call. The
 * time is counted in steps: where this process gets no CPU for seconds, it reads that the child has ended only after the
 * timer of one step has fired.
 */
const GONE_WITHIN = 1_000;
const GONE_STEPS = 10;
const OUT_OF_MEMORY = /heap out of memory|ERR_WORKER_OUT_OF_MEMORY/;

/** One child process or thread with the loaded module. It runs at most one attempt at a time. */
export class Sandbox implements CarrierEvents, RunDeps {
  readonly bornAt: number;
  jobs = 0;
  /** Its debugger was opened and stays open, so it gets no other attempt. */
  wasLookedInto = false;
  readonly #system: System;
  readonly #owner: SandboxOwner;
  readonly #carrier: Carrier;
  #state: "loading" | "ready" | "ending" | "gone" = "loading";
  #run: Run | undefined;
  #because: string | undefined;
  #idling: Timer | undefined;
  readonly #loading: Timer;
  #onGone: (() => void)[] = [];
  #isOutOfMemory = false;
  #loadedMemory = 0;

  constructor(system: System, owner: SandboxOwner, what: SandboxPlan) {
    this.#system = system;
    this.#owner = owner;
    this.bornAt = system.monotonic();
    this.#carrier = what.open(this);
    this.#carrier.send({ say: "load", protocol: PROTOCOL, module: what.module, type: what.type });
    this.#loading = system.after(what.load, () => void this.#neverLoaded(what));
  }

  /** A module may hang while it loads, in an endless loop or in a top-level await. */
  async #neverLoaded({ module, load }: SandboxPlan): Promise<void> {
    const look = await this.#carrier.capture(LOOK_AT_LOAD);
    const says = `${module}: not loaded within ${formatDuration(load)}`;
    const error = new CurfewError("load_timeout", `${says}; look at its stack, or raise sandbox.load`);
    Object.defineProperty(error, "stack", { value: lookText(look) });
    this.#unloadable(error);
  }

  /** Whether it is neither gone nor being ended. */
  get isLiving(): boolean {
    return this.#state === "loading" || this.#state === "ready";
  }

  get isBusy(): boolean {
    return this.#run !== undefined;
  }

  /** The bytes that it uses beyond those of Node and the loaded module. */
  get memory(): number | undefined {
    const memory = this.#carrier.memory();
    return memory === undefined ? undefined : memory - this.#loadedMemory;
  }

  begin(run: Run): void {
    this.#run = run;
    this.jobs += 1;
    run.begin(this);
  }

  onReport(report: Report): void {
    if (report.say === "ready" || report.say === "unloadable") {
      this.#loaded(report);
      return;
    }
    if (report.say === "crashed") return;
    if (report.key !== this.#run?.call.key) {
      // A late report of an earlier attempt. Its output goes to the worker's log.
      if (report.say === "print") this.#owner.line(report.stream, report.text);
      return;
    }
    if (report.say !== "idle") {
      if (report.say === "entered") this.#owner.entered();
      this.#run.hear(report);
      if (this.#run.isOver)
        this.#idling ??= this.#system.after(IDLE_WITHIN, () => this.end("its cleanup hung"));
      return;
    }
    // A sandbox that is being ended keeps its attempt, which ends with it.
    if (this.#state !== "ready") return;
    this.#idling?.cancel();
    this.#idling = undefined;
    // No sandbox of curfew reports idle before its attempt has settled.
    if (!this.#run.isOver) {
      this.onFlaw("reporting idle during an attempt");
      return;
    }
    this.#run = undefined;
    this.#owner.idle(this);
  }

  #loaded(report: Extract<Report, { say: "ready" | "unloadable" }>): void {
    if (this.#state !== "loading") return;
    if (report.say === "unloadable") {
      this.#unloadable(decodeError(report.error));
      return;
    }
    this.#loading.cancel();
    this.#state = "ready";
    this.#loadedMemory = this.#carrier.memory() ?? 0;
    this.#owner.ready(this);
  }

  #unloadable(error: unknown): void {
    if (this.#state !== "loading") return;
    this.#state = "ending";
    this.#owner.unloadable(this, error);
    this.end("it could not load its module");
  }

  onLine(stream: "stdout" | "stderr", text: string): void {
    if (stream === "stderr" && OUT_OF_MEMORY.test(text)) this.#isOutOfMemory = true;
    if (this.#run) this.#run.line(stream, text);
    else this.#owner.line(stream, text);
  }

  onFlaw(because: string): void {
    this.end(`it was ended for ${because}`);
  }

  onExiting(): void {
    if (this.#state !== "ready") return;
    this.#state = "ending";
    this.#owner.exiting(this);
  }

  onExit(exit: Exit): void {
    const wasLoading = this.#state === "loading";
    this.#state = "gone";
    this.#idling?.cancel();
    this.#loading.cancel();
    const run = this.#run;
    this.#run = undefined;
    if (run && !(exit.isHeardOut && this.#owner.takeBack(run))) run.fail(this.#lossOf(exit));
    if (wasLoading) this.#owner.unloadable(this, this.#lossOf(exit, "while it loaded its module"));
    for (const resolve of this.#onGone.splice(0)) resolve();
    this.#owner.gone(this);
  }

  /** An uncaught error is that error. Every other death is `killed`, with what is known about it (SEMANTICS 8.3). */
  #lossOf(exit: Exit, when?: string): unknown {
    const code = (exit.error as { code?: unknown } | undefined)?.code;
    const isOutOfMemory = this.#isOutOfMemory || OUT_OF_MEMORY.test(String(code));
    if (exit.error !== undefined && this.#because === undefined && !isOutOfMemory) return exit.error;
    const how = exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
    return new SandboxKilled(this.#because ?? (isOutOfMemory ? `out of memory, ${how}` : how), exit, when);
  }

  // Called by runs.

  send(order: Order): void {
    if (this.#state === "ready") this.#carrier.send(order);
  }

  capture(limit: number): Promise<Look> {
    this.wasLookedInto = true;
    return this.#carrier.capture(limit);
  }

  silence(): Silence {
    return this.#carrier.silence();
  }

  condemn(): void {
    if (this.#state !== "gone") this.#state = "ending";
  }

  /** Ends it. Resolves with whether it is gone. */
  async kill(): Promise<boolean> {
    const gone = this.gone();
    this.end("it was ended by force");
    for (let step = 0; step < GONE_STEPS && this.#state !== "gone"; step++)
      await within(this.#system, GONE_WITHIN / GONE_STEPS, gone);
    return this.#state === "gone";
  }

  end(because: string): void {
    if (this.#state === "gone") return;
    this.#state = "ending";
    this.#because ??= because;
    this.#carrier.kill();
  }

  gone(): Promise<void> {
    if (this.#state === "gone") return Promise.resolve();
    return new Promise((resolve) => this.#onGone.push(resolve));
  }
}
