import { CLAIM_LEASE } from "../../core/job/deadlines.ts";
import { fenceSalt, type JobRow, type Rank } from "../../core/job/job.ts";
import { jittered } from "../../core/pace.ts";
import { CHARACTERS_PER_TURN } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import { Loop } from "../runtime/loop.ts";

/** A claimed job that waits for a slot. `confirmedAt` is monotonic: when it was last certain that the claim holds. */
export interface Prefetched {
  row: JobRow;
  claimedAt: number;
  confirmedAt: number;
}

export interface ConsumerDeps {
  readonly parts: EngineContext;
  readonly id: string;
  /** Claims are bounded by what is not committed yet, so a slow store slows the claiming down. */
  readonly room: number;
  readonly canClaim: boolean;
  /** A worker that closes enters nothing more; what it holds is given back. */
  readonly isClosing: boolean;
  /** Starts the watch over the event loop: from here on a standstill is noticed. */
  busy(): void;
  /** False if the event loop stood still since then, so that what arrives now may be old. */
  isFresh(since: number): boolean;
  enter(consumer: QueueConsumer, prefetched: Prefetched): void;
  /** What a job may have to wait for before it is entered. */
  readonly sandboxes: {
    /** Whether it may be entered; if not, `again` is called when it is worth another look. */
    admits(row: JobRow, again: () => void): boolean;
    /** It is no longer waited for. */
    dismiss(row: JobRow): void;
  };
  /** Gives back jobs that were held too long. */
  giveBack(prefetched: readonly Prefetched[]): void;
  confirm(consumer: QueueConsumer, prefetched: readonly Prefetched[]): void;
}

const CLAIM_BATCH = 200;
/** Only what will start within this time is claimed ahead. */
const AHEAD = 100;
const MOST_AHEAD = 2 * CLAIM_BATCH;
/** A claim is entered only if it was confirmed within this time: what was cancelled before that is never entered. */
const CONFIRMED_WITHIN = 250;
const HELD_AT_MOST = 1_000;
const POLL = 1_000;
/** So long claims go on where the last one ended: what came up before that place without a hint waits no longer. */
const ON_FROM_THERE = 1_000;

/** One queue of a worker: its slots, the jobs it holds for them, and the loop that claims more. */
export class QueueConsumer {
  readonly queue: string;
  readonly concurrency: number;
  readonly loop: Loop;
  readonly #host: ConsumerDeps;
  #prefetched: Prefetched[] = [];
  #next = 0;
  #running = 0;
  #confirming = 0;
  /** Jobs that hold a slot until their sandbox is ready, with the time at which they are given back instead. */
  readonly #waiting = new Map<Prefetched, number>();
  /** The last claim gave less than was asked for: there is no point in asking again before a hint or the next poll. */
  #isDry = false;
  /**
   * Under load the next claim begins where the last one ended: the places before it are taken, and a store may have to
   * walk over all of them again. From the beginning it goes after a hint, and once in a while.
   */
  #claimFrom: { readonly rank: Rank; readonly until: number } | undefined;
  #averageRun: number | undefined;
  #isPumping = false;
  /** Characters of the payloads that were entered since the last pause. */
  #entered = 0;
  #isPausing = false;
  #isClaiming = false;

  constructor(host: ConsumerDeps, queue: string, concurrency: number) {
    this.#host = host;
    this.queue = queue;
    this.concurrency = concurrency;
    const { system, logger, storeFailed } = host.parts;
    this.loop = new Loop({
      name: `claim ${queue}`,
      system,
      logger,
      round: () => this.#claim(),
      onError: (error) => storeFailed(error, "claim"),
    });
  }

  get running(): number {
    return this.#running;
  }

  /** Whether anything is under way here, so that a standstill of the event loop would matter. */
  get isBusy(): boolean {
    return this.#isClaiming || this.#running > 0 || this.prefetchedCount > 0;
  }

  get prefetchedCount(): number {
    return this.#prefetched.length - this.#next + this.#confirming;
  }

  /** Something became available: claim, whatever the last claim said. */
  notify(): void {
    this.#isDry = false;
    this.#claimFrom = undefined;
    this.loop.wake();
  }

  ranFor(elapsed: number): void {
    this.#averageRun = this.#averageRun === undefined ? elapsed : this.#averageRun * 0.9 + elapsed * 0.1;
  }

  /** How many jobs to hold ahead of free slots: none while it is not known how long handlers run. */
  get #ahead(): number {
    if (this.#averageRun === undefined || this.#averageRun > AHEAD) return 0;
    // What is held ahead takes a place of the queue that another worker could use.
    if (this.#most !== undefined) return 0;
    return Math.min(MOST_AHEAD, Math.floor((this.concurrency * AHEAD) / Math.max(this.#averageRun, 0.01)));
  }

  /** How many jobs of the queue may be active, over all workers. */
  get #most(): number | undefined {
    return this.#host.parts.queues.concurrencyOf(this.queue);
  }

  get #wanted(): number {
    if (!this.#host.canClaim) return 0;
    const target = this.concurrency - this.#running + this.#ahead;
    const prefetched = this.prefetchedCount;
    // Half empty: late enough that claims are large, early enough that handlers never wait for a round trip.
    if (prefetched > target / 2) return 0;
    return Math.min(target - prefetched, CLAIM_BATCH, this.#host.room);
  }

  async #claim(): Promise<number | null> {
    const { parts, id } = this.#host;
    const limit = this.#wanted;
    if (limit <= 0) return this.#isDry ? this.#pollDelay() : null;
    if (parts.queues.isClosed(parts.clock.now())) return this.#pollDelay();
    this.#host.busy();
    const sentAt = parts.clock.elapsed();
    const place = this.#claimFrom && sentAt < this.#claimFrom.until ? this.#claimFrom : undefined;
    const most = this.#most;
    this.#isClaiming = true;
    // A hint that comes while the claim is under way takes this away again.
    this.#claimFrom = place ?? { rank: 0, until: sentAt + ON_FROM_THERE };
    const claimed = parts.store.jobs.claim({
      queue: this.queue,
      limit,
      now: parts.clock.now(),
      lease: CLAIM_LEASE,
      ...(parts.clock.isWide && { shortest: CLAIM_LEASE }),
      salt: fenceSalt(parts.random),
      worker: id,
      from: place?.rank ?? 0,
      ...(most !== undefined && { most }),
    });
    const rows = await claimed.finally(() => {
      this.#isClaiming = false;
    });
    const receivedAt = parts.clock.elapsed();
    const confirmedAt = this.#host.isFresh(sentAt) ? receivedAt : sentAt;
    for (const row of rows) this.#prefetched.push({ row, claimedAt: receivedAt, confirmedAt });
    const isShort = rows.length < limit;
    // Nothing is left behind that place, so what lies before it is looked at before the queue is taken for empty.
    this.#isDry = isShort && place === undefined;
    this.#claimFrom = isShort
      ? undefined
      : this.#claimFrom && { ...this.#claimFrom, rank: (rows.at(-1) as JobRow).rank };
    this.pump();
    if (this.#isDry) return this.#pollDelay();
    return this.#wanted > 0 ? 0 : null;
  }

  #pollDelay(): number {
    const { idlePollFactor: patience, random } = this.#host.parts;
    return jittered(POLL * patience, random);
  }

  /** Enters held jobs into free slots. A handler that ends at once frees its slot from within, so the loop is not re-entered. */
  pump(): void {
    if (this.#isPumping || this.#isPausing) return;
    this.#isPumping = true;
    this.#fill();
    this.#isPumping = false;
    if (!this.#isDry && this.#wanted > 0) this.loop.wake();
  }

  #fill(): void {
    const { clock } = this.#host.parts;
    while (
      this.#running < this.concurrency &&
      this.#next < this.#prefetched.length &&
      !this.#host.isClosing
    ) {
      const prefetched = this.#prefetched[this.#next] as Prefetched;
      const now = clock.elapsed();
      if (now - prefetched.claimedAt > HELD_AT_MOST || now - prefetched.confirmedAt > CONFIRMED_WITHIN) {
        this.#reconsider(now);
        break;
      }
      if (this.#entered >= CHARACTERS_PER_TURN) {
        this.#pause();
        break;
      }
      this.#entered += prefetched.row.payload.length;
      this.#next += 1;
      this.#running += 1;
      if (this.#host.sandboxes.admits(prefetched.row, () => this.#again(prefetched)))
        this.#host.enter(this, prefetched);
      else this.#waiting.set(prefetched, now + this.#sandboxWait(prefetched.row));
    }
    if (this.#next > 0 && this.#next === this.#prefetched.length) {
      this.#prefetched = [];
      this.#next = 0;
    }
  }

  /** Handlers that end at once would be entered one after the other, and parsing their payloads takes its time. */
  #pause(): void {
    this.#entered = 0;
    this.#isPausing = true;
    this.#host.parts.system.soon(() => {
      this.#isPausing = false;
      this.pump();
    });
  }

  /** The claim has to last until the handler is entered, so half of it may be spent on waiting. */
  #sandboxWait({ stallAt }: JobRow): number {
    return (stallAt === null ? CLAIM_LEASE : stallAt - this.#host.parts.clock.upper()) / 2;
  }

  /** Its sandbox is ready: to the head of the line, where the claim is confirmed before it is entered. */
  #again(prefetched: Prefetched): void {
    if (!this.#waiting.delete(prefetched)) return;
    prefetched.claimedAt = this.#host.parts.clock.elapsed();
    this.putBack(prefetched);
  }

  /** To the head of the line with a job that could not be entered: its claim is confirmed first if it is in doubt by now. */
  putBack(prefetched: Prefetched): void {
    this.#running -= 1;
    this.#prefetched = [prefetched, ...this.#prefetched.slice(this.#next)];
    this.#next = 0;
    this.pump();
  }

  #giveUp(prefetched: Prefetched): void {
    this.#waiting.delete(prefetched);
    this.#running -= 1;
    this.#host.sandboxes.dismiss(prefetched.row);
  }

  /** Old claims are given back, doubtful ones confirmed by a beat before anything is entered (SEMANTICS 3.1). */
  #reconsider(now: number): void {
    const all = this.#prefetched.slice(this.#next);
    this.#prefetched = [];
    this.#next = 0;
    const old = all.filter((prefetched) => now - prefetched.claimedAt > HELD_AT_MOST);
    const doubtful = all.filter((prefetched) => now - prefetched.claimedAt <= HELD_AT_MOST);
    if (old.length > 0) {
      // Slots did not become free as soon as they used to: nothing is claimed ahead until handlers are short again.
      this.#averageRun = HELD_AT_MOST;
      this.#host.giveBack(old);
    }
    if (doubtful.length > 0) {
      this.#confirming += doubtful.length;
      this.#host.confirm(this, doubtful);
    }
  }

  /** The answer to `confirm`: what still holds goes on, in its old order. */
  confirmed(asked: number, prefetched: readonly Prefetched[]): void {
    this.#confirming -= asked;
    this.#prefetched = [...prefetched, ...this.#prefetched.slice(this.#next)];
    this.#next = 0;
    this.pump();
  }

  /** Looks after jobs that wait too long for a slot or a sandbox; called on every tick of the worker. */
  tidy(now: number): void {
    const first = this.#prefetched[this.#next];
    if (first && now - first.claimedAt > HELD_AT_MOST) this.#reconsider(now);
    const late = [...this.#waiting].filter(([, until]) => now > until).map(([prefetched]) => prefetched);
    if (late.length === 0) return;
    for (const prefetched of late) this.#giveUp(prefetched);
    this.#host.giveBack(late);
    this.pump();
  }

  /** A slot is free again. */
  freed(): void {
    this.#running -= 1;
    this.pump();
  }

  /** Takes out everything that is held, for a shutdown. */
  takePrefetched(): Prefetched[] {
    const waiting = [...this.#waiting.keys()];
    for (const prefetched of waiting) this.#giveUp(prefetched);
    const all = [...waiting, ...this.#prefetched.slice(this.#next)];
    this.#prefetched = [];
    this.#next = 0;
    return all;
  }
}
