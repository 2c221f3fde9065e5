import {
  type SandboxCall,
  type SandboxHost,
  type SandboxRefusal,
  type SandboxRun,
  type SandboxRunner,
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
  readonly open: (host: SandboxHost, events: CarrierEvents) => Carrier;
  /** The most sandboxes at once. */
  readonly size: number | undefined;
  readonly spare: number;
  /** How long loading the module may take. */
  readonly load: number;
  /** How many load at once: each takes a core for itself, which is missed by those that run. */
  readonly loading: number;
  readonly jobs: number;
  readonly age: number;
  /** Bytes. */
  readonly memory: number;
  /** Whether what is opened would outlive this process: threads do not. */
  readonly reaps: boolean;
}

const MEMORY_EVERY = 250;
/** Starting a process holds the event loop up for 10 to 40 ms on a busy machine: between two starts others get a turn. */
const STARTS_APART = 10;
const CLOSE_WITHIN = 5_000;

/** The sandboxes of one processor: warm ones wait for attempts, worn ones are replaced, broken ones are not tried for ever. */
export class Pool implements SandboxRunner, SandboxOwner {
  readonly #host: SandboxHost;
  readonly #options: PoolOptions;
  readonly #size: number;
  readonly #all = new Set<Sandbox>();
  readonly #idle: Sandbox[] = [];
  readonly #loading = new Set<Sandbox>();
  readonly #queue: SandboxQueue;
  /** Runs that have begun without finding the sandbox that was kept for them. */
  readonly #waiting: Run[] = [];
  readonly #breaker: Breaker;
  #watching: Timer | undefined;
  /** Another sandbox was started a moment ago. */
  #resting: Timer | undefined;
  #closing: Promise<void> | undefined;

  constructor(host: SandboxHost, options: PoolOptions) {
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
      this.#queue.pass(key);
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
    const pass = this.#queue.take(call.key);
    if (pass?.failure) run.fail(pass.failure.error);
    else this.#waiting.push(run);
    this.#serve();
    return run;
  }

  /** Idle sandboxes that are kept for nobody. */
  get #free(): number {
    return this.#idle.length - this.#queue.kept;
  }

  refusal(): SandboxRefusal | null {
    return this.#breaker.refusal();
  }

  /** Gives idle sandboxes to runs, and lets jobs in for what is left. */
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
    if (this.#closing || this.#breaker.isOpen) this.#queue.turnAway();
    else while (this.#free > 0 && this.#queue.passFirst());
    this.#fill();
  }

  /** Starts what is missing, one after the other: one for every run or job that waits, and the spare. */
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
      // The system is out of processes or memory; whoever waits hears of it as of any sandbox that does not load.
      this.#host.system.soon(() => this.#failed(error));
      return;
    }
    this.#all.add(sandbox);
    this.#loading.add(sandbox);
  }

  // What sandboxes tell.

  ready(sandbox: Sandbox): void {
    this.#loading.delete(sandbox);
    this.#idle.push(sandbox);
    if (this.#breaker.loaded()) this.#host.changed(null);
    this.#serve();
  }

  /** The job that waited for it fails with the error, unless it is known by now that all would (SEMANTICS 8.5). */
  unloadable(sandbox: Sandbox, error: unknown): void {
    this.#loading.delete(sandbox);
    this.#failed(error);
  }

  #failed(error: unknown): void {
    if (this.#closing) return;
    this.#host.logger.error({ error, module: this.#options.module }, "a sandbox could not load its module");
    const wasOpen = this.#breaker.isOpen;
    if (this.#breaker.failed(error)) this.#host.changed(this.refusal());
    if (!wasOpen) this.#failFirst(error);
    this.#serve();
  }

  #failFirst(error: unknown): void {
    const run = this.#waiting.shift();
    if (run) run.fail(error);
    else this.#queue.passFirst({ error });
  }

  idle(sandbox: Sandbox): void {
    const { jobs, age, memory } = this.#options;
    const isOld = this.#host.system.monotonic() - sandbox.bornAt >= age;
    const isWorn = sandbox.jobs >= jobs || isOld || (sandbox.memory ?? 0) > memory;
    if (isWorn || sandbox.wasLookedInto) sandbox.end("it had done its share");
    else this.#idle.push(sandbox);
    this.#serve();
  }

  gone(sandbox: Sandbox): void {
    this.#all.delete(sandbox);
    this.#loading.delete(sandbox);
    const index = this.#idle.indexOf(sandbox);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#serve();
  }

  line(stream: string, text: string): void {
    this.#host.logger.debug({ stream, module: this.#options.module }, text);
  }

  /** V8 keeps its heap within a limit by itself; buffers and native memory are seen only from outside. */
  #watch(): void {
    this.#watching = undefined;
    let isBusy = false;
    for (const sandbox of this.#all) {
      if (!sandbox.isBusy || !sandbox.isLiving) continue;
      isBusy = true;
      const { memory } = sandbox;
      if (memory === undefined || memory <= this.#options.memory) continue;
      const [used, limit] = [memory, this.#options.memory].map((bytes) => Math.round(bytes / 2 ** 20));
      sandbox.end(`out of memory: it took ${used} MB of ${limit}`);
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
    // Those that waited are answered once `#closing` is set, so not before the first pause.
    await Promise.resolve();
    this.#serve();
    await within(this.#host.system, CLOSE_WITHIN, Promise.all(gone));
    if (this.#options.reaps) await reaper.release();
  }
}
