import { CLAIM_LEASE } from "../../src/core/job/deadlines.ts";
import { decide } from "../../src/core/job/decide.ts";
import { fenceSalt, type JobRow, type Policy } from "../../src/core/job/job.ts";
import type { Store, Unit } from "../../src/ports/store.ts";

const CLAIM_SIZE = 200;
const COMMIT_SIZE = 256;
const COMMITS_IN_FLIGHT = 2;

/**
 * A worker with nothing but the hot path: claim, decide, run, decide, commit in batches, each stage while the others
 * are on the wire. It stands in for the engine, to measure what the store and the rules leave for it.
 */
export class StandInWorker {
  readonly #store: Store;
  readonly #policy: Policy;
  readonly #concurrency: number;
  readonly #now: () => number;
  readonly #handler: (payload: unknown) => Promise<void>;
  #held: JobRow[] = [];
  #next = 0;
  #running = 0;
  #settled = 0;
  #units: Unit[] = [];
  #commits = 0;
  #isClaiming = false;
  #isDry = false;
  #wanted = 0;
  #finish: { resolve: () => void; reject: (error: unknown) => void } | undefined;

  constructor(
    store: Store,
    options: {
      policy: Policy;
      concurrency: number;
      now: () => number;
      handler: (payload: unknown) => Promise<void>;
    },
  ) {
    this.#store = store;
    this.#policy = options.policy;
    this.#concurrency = options.concurrency;
    this.#now = options.now;
    this.#handler = options.handler;
  }

  run(count: number): Promise<void> {
    this.#wanted = count;
    return new Promise((resolve, reject) => {
      this.#finish = { resolve, reject };
      this.#claim();
    });
  }

  #claim(): void {
    const waiting = this.#held.length - this.#next;
    if (this.#isClaiming || this.#isDry || waiting >= CLAIM_SIZE) return;
    this.#isClaiming = true;
    this.#store.jobs
      .claim({
        queue: "default",
        limit: CLAIM_SIZE,
        now: Math.floor(this.#now()),
        lease: CLAIM_LEASE,
        salt: fenceSalt(Math.random),
        worker: "bench",
        from: 0,
      })
      .then((rows) => {
        this.#isClaiming = false;
        this.#isDry = rows.length === 0;
        this.#held = this.#held.slice(this.#next).concat(rows);
        this.#next = 0;
        this.#pump();
      })
      .catch((error) => this.#finish?.reject(error));
  }

  #pump(): void {
    while (this.#running < this.#concurrency && this.#next < this.#held.length) {
      const row = this.#held[this.#next] as JobRow;
      this.#next += 1;
      this.#running += 1;
      this.#attempt(row).then(
        () => {
          this.#running -= 1;
          this.#pump();
        },
        (error) => this.#finish?.reject(error),
      );
    }
    this.#claim();
    this.#flush();
  }

  async #attempt(row: JobRow): Promise<void> {
    const now = Math.floor(this.#now());
    const started = decide(row, { type: "start", policy: this.#policy, upper: now }, now, Math.random);
    if (!started.ok) throw new Error(`start: ${started.because}`);
    await this.#handler(JSON.parse(row.payload));
    const running: JobRow = { ...row, ...started.image, policy: this.#policy };
    const ended = decide(
      running,
      { type: "succeed", signalled: false },
      Math.floor(this.#now()),
      Math.random,
    );
    if (!ended.ok) throw new Error(`succeed: ${ended.because}`);
    const { image, documents, drop } = ended;
    const job = { id: row.id, fence: row.fence, image };
    this.#units.push({ job: { ...job, ...(documents && { documents }), ...(drop && { drop }) } });
  }

  #flush(): void {
    while (this.#units.length > 0 && this.#commits < COMMITS_IN_FLIGHT) {
      const units = this.#units.splice(0, COMMIT_SIZE);
      this.#commits += 1;
      this.#store
        .commit(units, { now: Math.floor(this.#now()) })
        .then((outcomes) => {
          this.#commits -= 1;
          for (const outcome of outcomes) if (!outcome.ok) throw new Error(`commit: ${outcome.because}`);
          this.#settled += outcomes.length;
          if (this.#settled === this.#wanted) this.#finish?.resolve();
          else this.#pump();
        })
        .catch((error) => this.#finish?.reject(error));
    }
  }
}
