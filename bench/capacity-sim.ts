import { type Random, seededRandom } from "../src/core/random.ts";
import { COSTS } from "./capacity-model.ts";

/*
 * Many homes and many processes in virtual time, by the protocol of stores/homes and with measured costs: a master serves one
 * call after the other, a hint reaches every process, an idle process that hears one claims from that home, every process
 * looks at every home. It is a model of its own and not the engine, which cannot be run ten thousand times here. It shows
 * what queues and herds do to a plan; it does not prove anything about the code.
 */

export interface Scenario {
  readonly name: string;
  readonly masters: number;
  readonly homes: number;
  readonly processes: number;
  /** Handlers that a process runs at once. */
  readonly slots: number;
  readonly jobsPerSecond: number;
  /** How long a handler runs, in milliseconds. */
  readonly handler: number;
  readonly seconds: number;
  /** Microseconds that a job travels to its worker and back, if workers are behind servers. */
  readonly hop?: number;
  /** The part of the jobs that cross from one home to another through the outbox. */
  readonly crossing?: number;
  /** The part of the jobs that belong to one limit key, so to one home. */
  readonly hot?: number;
  /** The part of the masters that are away between two moments, in seconds. */
  readonly away?: { readonly share: number; readonly from: number; readonly to: number };
  /** Jobs per second that are due at their own moments, each of which every process sweeps for. */
  readonly delayedPerSecond?: number;
}

export interface Outcome {
  readonly name: string;
  /** Milliseconds from the enqueue to the handler. */
  readonly pickup: { readonly p50: number; readonly p99: number };
  /** Jobs that were started, of those that were enqueued. */
  readonly started: number;
  readonly enqueued: number;
  /** Calls to masters per started job. */
  readonly claims: number;
  readonly emptyClaims: number;
  readonly looks: number;
  readonly sweeps: number;
  /** What was asked of masters, in parts of what they can do: the mean, and the busiest one. Above 1 calls pile up. */
  readonly busy: { readonly mean: number; readonly most: number };
  /** Milliseconds from a unit to its message in the other home. */
  readonly outbox: { readonly p50: number; readonly p99: number };
  /** Seconds after the return of the masters until no job waits for longer than a second. */
  readonly calmAfter: number | null;
}

/** One way over the network, and times of the protocol, in µs. */
const WAY = 250;
const LOOK_EVERY = 1_375_000;
const SHORTEST_SWEEP = 2_000;
const RETRY = 500_000;
const OUTBOX_SWEEP = 1_000_000;
/** Ids in a row that share a cell (core/ids.ts). */
const BATCH = 32;
const MOST_CLAIMED = 200;
/** Homes that a claim asks at once. */
const WIDTH = 8;

type Run = () => void;

class Heap {
  readonly #at: number[] = [];
  readonly #run: Run[] = [];

  push(at: number, run: Run): void {
    let index = this.#at.push(at) - 1;
    this.#run.push(run);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if ((this.#at[parent] as number) <= at) break;
      this.#set(index, this.#at[parent] as number, this.#run[parent] as Run);
      index = parent;
    }
    this.#set(index, at, run);
  }

  pop(): { at: number; run: Run } | undefined {
    const at = this.#at[0];
    if (at === undefined) return undefined;
    const run = this.#run[0] as Run;
    const lastAt = this.#at.pop() as number;
    const lastRun = this.#run.pop() as Run;
    if (this.#at.length > 0) this.#sink(lastAt, lastRun);
    return { at, run };
  }

  #sink(at: number, run: Run): void {
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#at.length) break;
      if (child + 1 < this.#at.length && (this.#at[child + 1] as number) < (this.#at[child] as number))
        child += 1;
      if ((this.#at[child] as number) >= at) break;
      this.#set(index, this.#at[child] as number, this.#run[child] as Run);
      index = child;
    }
    this.#set(index, at, run);
  }

  #set(index: number, at: number, run: Run): void {
    this.#at[index] = at;
    this.#run[index] = run;
  }
}

interface Process {
  free: number;
  /** Claims that are not answered yet. */
  claiming: number;
  sweptAt: number;
  /** Homes that a hint or a look named. */
  readonly known: Set<number>;
}

class Fleet {
  readonly #scenario: Scenario;
  readonly #heap = new Heap();
  readonly #random: Random = seededRandom(7);
  readonly #busyUntil: Float64Array;
  readonly #busy: Float64Array;
  /** The moments at which the waiting jobs of each home were enqueued. */
  readonly #waiting: number[][];
  readonly #processes: Process[];
  readonly #pickups: number[] = [];
  readonly #lags: number[] = [];
  readonly #counts = { enqueued: 0, claims: 0, emptyClaims: 0, looks: 0, sweeps: 0 };
  #now = 0;
  #calmAt = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#busyUntil = new Float64Array(scenario.masters);
    this.#busy = new Float64Array(scenario.masters);
    this.#waiting = Array.from({ length: scenario.homes }, () => []);
    this.#processes = Array.from({ length: scenario.processes }, () => ({
      free: scenario.slots,
      claiming: 0,
      sweptAt: 0,
      known: new Set(),
    }));
  }

  run(): Outcome {
    const { seconds, jobsPerSecond, delayedPerSecond = 0 } = this.#scenario;
    const end = seconds * 1e6;
    this.#repeat((BATCH * 1e6) / jobsPerSecond, () => this.#enqueue());
    if (delayedPerSecond > 0) this.#repeat((BATCH * 1e6) / delayedPerSecond, () => this.#due());
    for (const process of this.#processes)
      this.#after(this.#random() * LOOK_EVERY, () => this.#repeat(LOOK_EVERY, () => this.#look(process)));
    for (let next = this.#heap.pop(); next && next.at <= end; next = this.#heap.pop()) {
      this.#now = next.at;
      next.run();
    }
    return this.#outcome(end);
  }

  #after(delay: number, run: Run): void {
    this.#heap.push(this.#now + delay, run);
  }

  #repeat(every: number, run: Run): void {
    run();
    this.#after(every, () => this.#repeat(every, run));
  }

  #masterOf(home: number): number {
    return home % this.#scenario.masters;
  }

  #isAway(master: number): boolean {
    const { away, masters } = this.#scenario;
    if (!away || master >= away.share * masters) return false;
    return this.#now >= away.from * 1e6 && this.#now < away.to * 1e6;
  }

  /** A call that takes the master this long. Runs `then` when its answer arrives, or `failed` if the master is away. */
  #call(master: number, cost: number, then: Run, failed: Run = () => {}): void {
    if (this.#isAway(master)) {
      this.#after(2 * WAY, failed);
      return;
    }
    const begins = Math.max(this.#now + WAY, this.#busyUntil[master] as number);
    this.#busyUntil[master] = begins + cost;
    (this.#busy[master] as number) += cost;
    this.#after(begins + cost + WAY - this.#now, then);
  }

  #enqueue(): void {
    const { homes, hot = 0, crossing = 0 } = this.#scenario;
    const home = this.#random() < hot ? 0 : Math.floor(this.#random() * homes);
    this.#counts.enqueued += BATCH;
    if (this.#random() >= crossing) {
      this.#store(home, this.#now);
      return;
    }
    // The unit is durable in its own home; then the message is delivered, by the call or by the sweep.
    const from = Math.floor(this.#random() * homes);
    const sentAt = this.#now;
    this.#call(this.#masterOf(from), COSTS.enqueue, () => this.#deliver(home, sentAt));
  }

  #deliver(home: number, sentAt: number): void {
    this.#call(
      this.#masterOf(home),
      BATCH * COSTS.enqueue,
      () => {
        this.#lags.push((this.#now - sentAt) / 1e3);
        this.#arrived(home, sentAt);
      },
      () => this.#after(OUTBOX_SWEEP * (1 + this.#random()), () => this.#deliver(home, sentAt)),
    );
  }

  #store(home: number, enqueuedAt: number): void {
    this.#call(
      this.#masterOf(home),
      BATCH * COSTS.enqueue,
      () => this.#arrived(home, enqueuedAt),
      () => this.#after(RETRY * (0.5 + this.#random()), () => this.#store(home, enqueuedAt)),
    );
  }

  /** Jobs are available: the hint reaches every process, and those that have room claim. */
  #arrived(home: number, enqueuedAt: number): void {
    for (let job = 0; job < BATCH; job++) (this.#waiting[home] as number[]).push(enqueuedAt);
    this.#hint(home);
  }

  #hint(home: number): void {
    this.#call(this.#masterOf(home), this.#processes.length * COSTS.hintPerSubscriber, () => {
      for (const process of this.#processes) this.#hear(process, home);
    });
  }

  #hear(process: Process, home: number): void {
    process.known.add(home);
    this.#claim(process);
  }

  /** Asks up to eight of the named homes at once, each for a share of the free slots. */
  #claim(process: Process): void {
    if (process.claiming > 0 || process.free === 0 || process.known.size === 0) return;
    const asked: number[] = [];
    for (const home of process.known) if (asked.push(home) >= Math.min(WIDTH, process.free)) break;
    const share = Math.min(Math.floor(process.free / asked.length), MOST_CLAIMED);
    process.claiming = asked.length;
    for (const home of asked) this.#claimFrom(process, home, share);
  }

  #claimFrom(process: Process, home: number, share: number): void {
    const waiting = this.#waiting[home] as number[];
    const found = waiting.splice(0, share);
    const cost = COSTS.emptyClaim + found.length * (COSTS.drain / 2);
    this.#counts.claims += 1;
    if (found.length === 0) this.#counts.emptyClaims += 1;
    // A home that gives all that it is asked for is asked again, after the others.
    process.known.delete(home);
    if (found.length === share) process.known.add(home);
    process.free -= found.length;
    const answered = () => {
      process.claiming -= 1;
      this.#claim(process);
    };
    this.#call(
      this.#masterOf(home),
      cost,
      () => {
        for (const enqueuedAt of found) this.#start(process, home, enqueuedAt);
        answered();
      },
      () => {
        waiting.push(...found);
        process.free += found.length;
        process.known.delete(home);
        answered();
      },
    );
  }

  #start(process: Process, home: number, enqueuedAt: number): void {
    const { hop = 0 } = this.#scenario;
    const late = (this.#now + hop - enqueuedAt) / 1e3;
    this.#pickups.push(late);
    if (late > 1_000) this.#calmAt = this.#now;
    const runs = 2 * hop + this.#scenario.handler * 1e3 * (0.5 + this.#random());
    this.#after(runs, () =>
      this.#call(this.#masterOf(home), COSTS.drain / 2, () => {
        process.free += 1;
        this.#claim(process);
      }),
    );
  }

  /** One call per home, so as many per master as it has homes. */
  #look(process: Process): void {
    const { homes, masters } = this.#scenario;
    this.#counts.looks += homes;
    for (let master = 0; master < masters; master++)
      this.#call(master, (homes / masters) * COSTS.emptyLook, () => {
        for (let home = master; home < homes; home += masters)
          if ((this.#waiting[home] as number[]).length > 0) this.#hear(process, home);
      });
  }

  /** Delayed jobs of one home are due, and every process that rests sweeps that home. The first one promotes them. */
  #due(): void {
    const home = Math.floor(this.#random() * this.#scenario.homes);
    this.#counts.enqueued += BATCH;
    const dueAt = this.#now;
    this.#call(this.#masterOf(home), BATCH * COSTS.enqueue, () => this.#arrived(home, dueAt));
    for (const process of this.#processes) {
      if (this.#now - process.sweptAt < SHORTEST_SWEEP) continue;
      process.sweptAt = this.#now;
      this.#counts.sweeps += 1;
      this.#call(this.#masterOf(home), COSTS.emptyLook, () => {});
    }
  }

  #outcome(end: number): Outcome {
    const { name, away } = this.#scenario;
    const started = this.#pickups.length;
    const { enqueued, claims, emptyClaims, looks, sweeps } = this.#counts;
    const shares = [...this.#busy].map((busy) => busy / end);
    return {
      name,
      pickup: quantiles(this.#pickups),
      started,
      enqueued,
      claims: claims / started,
      emptyClaims: emptyClaims / started,
      looks: looks / started,
      sweeps: sweeps / started,
      busy: { mean: shares.reduce((a, b) => a + b, 0) / shares.length, most: Math.max(...shares) },
      outbox: quantiles(this.#lags),
      calmAfter: away ? Math.max(0, this.#calmAt / 1e6 - away.to) : null,
    };
  }
}

function quantiles(values: number[]): { p50: number; p99: number } {
  values.sort((a, b) => a - b);
  const at = (share: number) => values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

export function simulateFleet(scenario: Scenario): Outcome {
  return new Fleet(scenario).run();
}
