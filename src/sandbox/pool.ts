import {
  type SandboxCall,
  type SandboxDeps,
  type SandboxRefusal,
  type SandboxRun,
  type SandboxRunner,
  type SandboxStatus,
  SandboxUnavailable,
} from "../ports/sandbox.ts";
import { type Timer, within } from "../ports/system.ts";
import { Breaker } from "./breaker.ts";
import type { Carrier, CarrierEvents } from "./carrier.ts";
import { reaper } from "./reaper.ts";
import { Run } from "./run.ts";
import { Sandbox, type SandboxOwner } from "./sandbox.ts";
import { SandboxQueue } from "./sandbox-queue.ts";

export interface PoolOptions {
  readonly module: string;
  readonly type: string;
  readonly open: (host: SandboxDeps, events: CarrierEvents) => Carrier;
  /** The most sandboxes at once. */
  readonly size: number | undefined;
  readonly spare: number;
  /** How long loading the module may take. */
  readonly load: number;
  /** How many load at once. Each uses a core that running attempts need. */
  readonly loading: number;
  readonly jobs: number;
  readonly age: number;
  readonly memory: number;
  /** Whether a sandbox could outlive this process. Threads cannot. */
  readonly reaps: boolean;
}

const MEMORY_EVERY = 250;
/**
 * Milliseconds between two starts. Starting a process blocks the event loop for 10 to 40 ms on a busy machine, so
 * other work runs in between.
 */
const STARTS_APART = 10;
const CLOSE_WITHIN = 5_000;
/**
 * How many sandboxes in a row may exit with an attempt that they have not entered. After that the attempt fails: a
 * module that always exits after its load would keep its jobs waiting for ever.
 */
const MOST_UNENTERED = 3;

/**
 * The sandboxes of one processor. Idle ones wait for attempts, worn ones are replaced, and after repeated load
 * failures no more are started for a while.
 */
export class Pool implements SandboxRunner, SandboxOwner {
  readonly #host: SandboxDeps;
  readonly #options: PoolOptions;
  readonly #size: number;
  readonly #all = new Set<Sandbox>();
  readonly #idle: Sandbox[] = [];
  readonly #loading = new Set<Sandbox>();
  readonly #queue: SandboxQueue;
  /** Runs that have begun without a reserved sandbox. */
  readonly #waiting: Run[] = [];
  readonly #breaker: Breaker;
  #unentered = 0;
  #watching: Timer | undefined;
  /** Set for a short time after a start. */
  #resting: Timer | undefined;
  #closing: Promise<void> | undefined;

  constructor(host: SandboxDeps, options: PoolOptions) {
    this.#host = host;
    this.#options = options;
    this.#size = options.size ?? host.concurrency;
    this.#queue = new SandboxQueue(host.system, () => this.#serve());
    this.#breaker = new Breaker(host.system, () => this.#start());
    if (options.reaps) reaper.hold();
    this.#fill();
  }

  admits(key: string, again: () => void): boolean {
    if (this.#queue.has(key) || this.#closing || this.#breaker.isOpen) return true;
    if (this.#free > 0) {
      this.#queue.reserve(key);
      return true;
    }
    this.#queue.wait(key, again);
    this.#fill();
    return false;
  }

  dismiss(key: string): void {
    this.#queue.dismiss(key);
  }

  run(call: SandboxCall): SandboxRun {
    const run = new Run(this.#host.system, call);
    const reservation = this.#queue.take(call.key);
    if (reservation?.failure) run.fail(reservation.failure.error);
    else this.#waiting.push(run);
    this.#serve();
    return run;
  }

  /** Idle sandboxes that are not reserved. */
  get #free(): number {
    return this.#idle.length - this.#queue.reserved;
  }

  refusal(): SandboxRefusal | null {
    return this.#breaker.refusal();
  }

  status(): SandboxStatus {
    let busy = 0;
    for (const sandbox of this.#all) if (sandbox.isBusy) busy += 1;
    const waiting = this.#waiting.length + this.#queue.size;
    return { size: this.#size, busy, loading: this.#loading.size, waiting };
  }

  /** Gives idle sandboxes to waiting runs, and admits jobs for the rest. */
  #serve(): void {
    while (this.#waiting.length > 0) {
      const [run] = this.#waiting as [Run];
      if (run.isOver) {
        this.#waiting.shift();
        continue;
      }
      const refusal = this.#closing ? { reason: "the sandbox is closing", delay: 0 } : this.refusal();
      if (refusal) run.fail(new SandboxUnavailable(refusal.reason, refusal.delay));
      else {
        const sandbox = this.#free > 0 ? this.#idle.shift() : undefined;
        if (!sandbox) break;
        sandbox.begin(run);
        this.#watching ??= this.#host.system.after(MEMORY_EVERY, () => this.#watch());
      }
      this.#waiting.shift();
    }
    if (this.#closing || this.#breaker.isOpen) this.#queue.refuseAll();
    else while (this.#free > 0 && this.#queue.admitFirst());
    this.#fill();
  }

  /** Starts one missing sandbox after the other: one for every run or job that waits, and the spare ones. */
  #fill(): void {
    if (this.#resting || this.#closing || this.#breaker.isOpen) return;
    const waiting = this.#waiting.length + this.#queue.size;
    const wanted = waiting + this.#options.spare - this.#free - this.#loading.size;
    let living = 0;
    for (const sandbox of this.#all) if (sandbox.isLiving) living += 1;
    if (Math.min(wanted, this.#size - living, this.#options.loading - this.#loading.size) <= 0) return;
    this.#start();
    this.#resting = this.#host.system.after(STARTS_APART, () => {
      this.#resting = undefined;
      this.#fill();
    });
  }

  #start(): void {
    if (this.#closing) return;
    const { module, type, load, open } = this.#options;
    let sandbox: Sandbox;
    try {
      const plan = { module, type, load, open: (events: CarrierEvents) => open(this.#host, events) };
      sandbox = new Sandbox(this.#host.system, this, plan);
    } catch (error) {
      // The system is out of processes or memory. This counts as a failed load.
      this.#host.system.soon(() => this.#failed(error));
      return;
    }
    this.#all.add(sandbox);
    this.#loading.add(sandbox);
  }

  // Called by sandboxes.

  ready(sandbox: Sandbox): void {
    this.#loading.delete(sandbox);
    this.#idle.push(sandbox);
    if (this.#breaker.loaded()) this.#host.changed(null);
    this.#serve();
  }

  /**
   * The job that waited for it fails with the error, unless the breaker is open: then all jobs are released
   * (SEMANTICS 8.5).
   */
  unloadable(sandbox: Sandbox, error: unknown): void {
    this.#loading.delete(sandbox);
    this.#failed(error);
  }

  #failed(error: unknown): void {
    if (this.#closing) return;
    this.#host.logger.error({ error, module: this.#options.module }, "sandbox: loading its module failed");
    const wasOpen = this.#breaker.isOpen;
    if (this.#breaker.failed(error)) this.#host.changed(this.refusal());
    if (!wasOpen) this.#failFirst(error);
    this.#serve();
  }

  #failFirst(error: unknown): void {
    const run = this.#waiting.shift();
    if (run) run.fail(error);
    else this.#queue.admitFirst({ error });
  }

  idle(sandbox: Sandbox): void {
    const { jobs, age, memory } = this.#options;
    const isOld = this.#host.system.monotonic() - sandbox.bornAt >= age;
    const isWorn = sandbox.jobs >= jobs || isOld || (sandbox.memory ?? 0) > memory;
    if (isWorn || sandbox.wasLookedInto) sandbox.end("it was due for replacement");
    else this.#idle.push(sandbox);
    this.#serve();
  }

  entered(): void {
    this.#unentered = 0;
  }

  exiting(sandbox: Sandbox): void {
    const index = this.#idle.indexOf(sandbox);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#serve();
  }

  /** The attempt moves to an idle sandbox. Without one its job is released: an attempt does not pay for a load. */
  takeBack(run: Run): boolean {
    if (this.#unentered >= MOST_UNENTERED || !run.leave()) return false;
    this.#unentered += 1;
    if (this.#free > 0 && !this.#closing) this.#waiting.unshift(run);
    else run.fail(new SandboxUnavailable("its sandbox exited before the handler was entered", 0));
    return true;
  }

  gone(sandbox: Sandbox): void {
    this.#all.delete(sandbox);
    this.#loading.delete(sandbox);
    this.exiting(sandbox);
  }

  line(stream: string, text: string): void {
    this.#host.logger.debug({ stream, module: this.#options.module }, text);
  }

  /** V8 limits its heap by itself. Buffers and native memory are visible only from outside. */
  #watch(): void {
    this.#watching = undefined;
    let isBusy = false;
    for (const sandbox of this.#all) {
      if (!sandbox.isBusy || !sandbox.isLiving) continue;
      isBusy = true;
      const { memory } = sandbox;
      if (memory === undefined || memory <= this.#options.memory) continue;
      const [used, limit] = [memory, this.#options.memory].map((bytes) => Math.round(bytes / 2 ** 20));
      sandbox.end(`out of memory: it used ${used} MB, and ${limit} MB are allowed`);
    }
    if (isBusy) this.#watching = this.#host.system.after(MEMORY_EVERY, () => this.#watch());
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#breaker.stop();
    this.#watching?.cancel();
    this.#resting?.cancel();
    this.#queue.close();
    const gone = [...this.#all].map((sandbox) => sandbox.gone());
    for (const sandbox of this.#all) sandbox.end("its worker closed");
    // Waiting runs are refused once `#closing` is set, which is after the first await.
    await Promise.resolve();
    this.#serve();
    await within(this.#host.system, CLOSE_WITHIN, Promise.all(gone));
    if (this.#options.reaps) await reaper.release();
  }
}
