import type { Turns } from "../../core/fair/turns.ts";
import { fenceSalt, type JobRow, type Rank } from "../../core/job/job.ts";
import { CLAIM_LEASE, CONFIRMED_WITHIN, SLOWLY_CONFIRMED_WITHIN } from "../../core/job/policy/deadlines.ts";
import { jittered } from "../../core/pace.ts";
import { BATCH_LIMIT, type ClaimRequest } from "../../ports/store.ts";
import { CHARACTERS_PER_TURN } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import type { Moment } from "../runtime/engine-clock.ts";
import { Loop } from "../runtime/loop.ts";

/** A claimed job that waits for a slot. Both times are `clock.elapsed()`. */
export interface Prefetched {
  row: JobRow;
  claimedAt: number;
  /** When the store last said that the claim holds. */
  confirmedAt: number;
}

export interface ConsumerDeps {
  readonly parts: EngineContext;
  readonly id: string;
  /** Jobs that the worker may still claim. Uncommitted verdicts count against it, so a slow store slows claims down. */
  readonly room: number;
  /** Whether verdicts wait for a commit. After it the consumer is pumped. */
  readonly isCommitting: boolean;
  readonly canClaim: boolean;
  /** A worker that closes enters no more jobs and releases those that it prefetched. */
  readonly isClosing: boolean;
  /** The loop began to fail, or works again. */
  readinessChanged(): void;
  /** Starts the loop monitor. */
  busy(): void;
  /** False if the event loop was blocked since then: an answer that arrives now may be old. */
  isFresh(since: number): boolean;
  enter(consumer: QueueConsumer, prefetched: Prefetched, moment: Moment): void;
  /** `enter` threw, and may not have freed the slot. */
  entryThrew(consumer: QueueConsumer, prefetched: Prefetched, error: unknown): void;
  /** A claim found fewer jobs than it asked for, or no queue hands out jobs. */
  dried(): void;
  readonly sandboxes: {
    /** No processor has a sandbox. */
    readonly isEmpty: boolean;
    /** Whether a sandbox is free for the job. If not, calls `again` once one is. */
    admits(row: JobRow, again: () => void): boolean;
    /** The job no longer waits for a sandbox. */
    dismiss(row: JobRow): void;
  };
  giveBack(prefetched: readonly Prefetched[]): void;
  confirm(consumer: QueueConsumer, prefetched: readonly Prefetched[]): void;
}

const CLAIM_BATCH = 400;
/** Claim ahead only jobs that will start within this time. */
const AHEAD = 100;
const MOST_AHEAD = 2 * CLAIM_BATCH;
/** Release a job that waited for a slot for longer than this. */
const LONGEST_PREFETCH = 1_000;
/** The lookout finds jobs whose hint was lost. This poll is for the case that the lookout fails. */
const POLL = 300_000;
/** Claims continue from the last rank for this long. Then one starts at rank 0 and finds jobs whose hint was lost. */
const RESTART_SCAN_AFTER = 1_000;

/** One queue of a worker: its slots, the jobs prefetched for them, and the loop that claims more. */
export class QueueConsumer {
  readonly queue: string;
  readonly concurrency: number;
  readonly loop: Loop;
  readonly #host: ConsumerDeps;
  #prefetched: Prefetched[] = [];
  #next = 0;
  #running = 0;
  /** Jobs about whose claims the store is asked. */
  readonly #confirming = new Set<Prefetched>();
  /** Jobs that hold a slot and wait for their sandbox, and when to release each of them instead. */
  readonly #waiting = new Map<Prefetched, number>();
  /** The last claim returned fewer jobs than its limit. The next claim waits for a hint or the next poll. */
  #isDry = false;
  /**
   * Where the next claim starts. Under load that is the rank of the last claimed job: the jobs before it are taken, and
   * a store may have to scan over all of them. After a hint, and after `until`, a claim starts at rank 0.
   */
  #claimFrom: { readonly rank: Rank; readonly until: number } | undefined;
  #averageRun: number | undefined;
  /** How long claims of a fair queue take. */
  #averageClaim = 0;
  /** The most jobs of the next claim. */
  #batch = CLAIM_BATCH;
  #lastSentAt = Number.NEGATIVE_INFINITY;
  #isPumping = false;
  /** The jobs whose claims were just confirmed, while they are entered. A handler that blocks the loop ends it early. */
  #justConfirmed: { readonly jobs: ReadonlySet<Prefetched>; readonly until: number } | undefined;
  /** Characters of the payloads that were parsed since the last pause. */
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
      onFailing: () => host.readinessChanged(),
    });
  }

  get running(): number {
    return this.#running;
  }

  /** Whether a claim or a job is under way: then the loop monitor must run. */
  get isBusy(): boolean {
    return this.#isClaiming || this.#running > 0 || this.prefetchedCount > 0;
  }

  /** Whether the last claim found fewer jobs than it asked for, and no hint came since. */
  get isDry(): boolean {
    return this.#isDry;
  }

  get prefetchedCount(): number {
    return this.#prefetched.length - this.#next + this.#confirming.size;
  }

  /** A job became available: claims again, even if the last claim found too few. */
  notify(): void {
    this.#isDry = false;
    this.#claimFrom = undefined;
    this.loop.wake();
  }

  ranFor(elapsed: number): void {
    this.#averageRun = this.#averageRun === undefined ? elapsed : this.#averageRun * 0.9 + elapsed * 0.1;
  }

  /**
   * Jobs to prefetch beyond the free slots: none until the run time of handlers is known. In a fair queue only what
   * starts while the next claim is under way: a job that arrives has its turn after those that are prefetched.
   */
  get #ahead(): number {
    if (this.#averageRun === undefined || this.#averageRun > AHEAD) return 0;
    // The queue has a limit over all workers, and a prefetched job would take a slot of it from another worker.
    if (this.#queueLimit !== undefined) return 0;
    const ahead = this.#host.parts.queues.isFair(this.queue) ? Math.min(AHEAD, this.#averageClaim) : AHEAD;
    return Math.min(MOST_AHEAD, Math.floor((this.concurrency * ahead) / Math.max(this.#averageRun, 0.01)));
  }

  /** How many jobs of the queue may be active, over all workers. */
  get #queueLimit(): number | undefined {
    return this.#host.parts.queues.concurrencyOf(this.queue);
  }

  get #wanted(): number {
    if (!this.#host.canClaim) return 0;
    const target = this.concurrency - this.#running + this.#ahead;
    const prefetched = this.prefetchedCount;
    // Claim when half of the target is used: then claims are large, and handlers do not wait for a round trip.
    if (prefetched > target / 2) return 0;
    const wanted = Math.min(target - prefetched, this.#batch);
    return this.#waitsForRoom(wanted) ? 0 : Math.min(wanted, this.#host.room);
  }

  /** A large claim is not divided into what each commit makes room for. But verdicts of other queues may take all of the room, so not for long. */
  #waitsForRoom(wanted: number): boolean {
    const { room, isCommitting, parts } = this.#host;
    if (wanted <= CLAIM_BATCH || wanted <= room || !isCommitting) return false;
    return parts.clock.elapsed() - this.#lastSentAt <= AHEAD;
  }

  async #claim(): Promise<number | null> {
    const { parts, id } = this.#host;
    const wanted = this.#wanted;
    if (wanted <= 0) return this.#isDry ? this.#pollDelay() : null;
    if (parts.queues.isClosed(parts.clock.now())) return this.#dried();
    this.#host.busy();
    const sentAt = parts.clock.elapsed();
    // A rank that one home has reached says nothing about the others.
    const isOneHome = parts.store.capabilities.homes === 1;
    const start =
      isOneHome && this.#claimFrom && sentAt < this.#claimFrom.until ? this.#claimFrom : undefined;
    const most = this.#queueLimit;
    const turns = parts.queues.turnsOf(this.queue, sentAt);
    const limit = turns?.rounds ? wanted : Math.min(wanted, CLAIM_BATCH);
    this.#lastSentAt = sentAt;
    // A hint that arrives during the claim clears this.
    this.#claimFrom = start ?? { rank: 0, until: sentAt + RESTART_SCAN_AFTER };
    const rows = await this.#claimRows({
      queue: this.queue,
      limit,
      now: parts.clock.now(),
      lease: CLAIM_LEASE,
      ...(parts.clock.isWide && { shortest: CLAIM_LEASE }),
      salt: fenceSalt(parts.random),
      worker: id,
      from: start?.rank ?? 0,
      ...(most !== undefined && { most }),
      ...(turns && { turns }),
    });
    const receivedAt = parts.clock.elapsed();
    if (turns) this.#tookTurns(turns, rows, sentAt, receivedAt);
    const confirmedAt = this.#host.isFresh(sentAt) ? receivedAt : sentAt;
    for (let index = 0; index < rows.length; index++)
      this.#prefetched.push({ row: rows[index] as JobRow, claimedAt: receivedAt, confirmedAt });
    const isShort = rows.length < limit;
    // The queue counts as empty only after a claim from rank 0. A claim in turns always looks at all ranks.
    this.#isDry = isShort && (start === undefined || turns !== undefined);
    this.#claimFrom =
      isShort || turns
        ? undefined
        : this.#claimFrom && { ...this.#claimFrom, rank: (rows.at(-1) as JobRow).rank };
    // The next claim is sent first: handlers that end at once would keep it waiting until all of these have run.
    const isNextDue = !parts.store.capabilities.inProcess && !this.#isDry && this.#wanted > 0;
    if (isNextDue) this.#pause();
    else this.pump();
    if (this.#isDry) return this.#dried();
    return isNextDue || this.#wanted > 0 ? 0 : null;
  }

  /** If the answer is lost, the store may have handed out jobs all the same: the sweep takes them back after their leases. */
  async #claimRows(request: ClaimRequest): Promise<JobRow[]> {
    const { store, wakeSweepAt } = this.#host.parts;
    this.#isClaiming = true;
    try {
      return await store.jobs.claim(request);
    } catch (error) {
      wakeSweepAt(request.now + request.lease);
      throw error;
    } finally {
      this.#isClaiming = false;
    }
  }

  #tookTurns(turns: Turns, rows: readonly JobRow[], sentAt: number, receivedAt: number): void {
    const { queues, store } = this.#host.parts;
    queues.noteTurns(this.queue, turns, rows, receivedAt);
    // Jobs of different keys lie apart in the store: what it has to write for a place, it writes once for each claim.
    const isLarge = store.capabilities.inProcess && turns.rounds !== undefined;
    const soon = isLarge ? Math.min(BATCH_LIMIT, Math.floor(turns.rounds.startSoon)) : 0;
    this.#batch = Math.max(CLAIM_BATCH, soon);
    this.#averageClaim = this.#averageClaim * 0.8 + (receivedAt - sentAt) * 0.2;
  }

  /** Returns the milliseconds until the next poll. */
  #dried(): number {
    this.#isDry = true;
    this.#host.dried();
    return this.#pollDelay();
  }

  #pollDelay(): number {
    const { idlePollFactor, random } = this.#host.parts;
    return jittered(POLL * idlePollFactor, random);
  }

  /** Enters prefetched jobs into free slots. A handler that ends at once calls this again from within: then it returns. */
  pump(): void {
    if (this.#isPumping || this.#isPausing) return;
    this.#isPumping = true;
    try {
      this.#fill();
    } finally {
      this.#isPumping = false;
    }
    // A claim under way may get all there is: when it is answered, it says whether another one is due.
    if (!this.#isDry && !this.#isClaiming && this.#wanted > 0) this.loop.wake();
  }

  #fill(): void {
    const { clock } = this.#host.parts;
    while (
      this.#running < this.concurrency &&
      this.#next < this.#prefetched.length &&
      !this.#host.isClosing
    ) {
      const prefetched = this.#prefetched[this.#next] as Prefetched;
      const moment = clock.moment();
      const now = moment.elapsed;
      if (!this.#mayEnter(prefetched, now)) {
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
      try {
        if (this.#host.sandboxes.isEmpty || this.#isAdmitted(prefetched))
          this.#host.enter(this, prefetched, moment);
        else this.#waiting.set(prefetched, now + this.#sandboxWait(prefetched.row));
      } catch (error) {
        this.#host.entryThrew(this, prefetched, error);
      }
    }
    if (this.#next > 0 && this.#next === this.#prefetched.length) {
      this.#prefetched = [];
      this.#next = 0;
    }
  }

  #isAdmitted(prefetched: Prefetched): boolean {
    return this.#host.sandboxes.admits(prefetched.row, () => this.#again(prefetched));
  }

  #mayEnter(prefetched: Prefetched, now: number): boolean {
    const age = now - prefetched.confirmedAt;
    const just = this.#justConfirmed;
    if (just?.jobs.has(prefetched) && now <= just.until) return age <= SLOWLY_CONFIRMED_WITHIN;
    return now - prefetched.claimedAt <= LONGEST_PREFETCH && age <= CONFIRMED_WITHIN;
  }

  /** Lets the event loop run before more jobs are entered. Handlers that end at once would otherwise block it. */
  #pause(): void {
    this.#entered = 0;
    this.#isPausing = true;
    this.#host.parts.system.soon(() => {
      this.#isPausing = false;
      this.pump();
    });
  }

  /** A job may wait for its sandbox for half of its lease: the lease must last until the handler is entered. */
  #sandboxWait({ stallAt }: JobRow): number {
    return (stallAt === null ? CLAIM_LEASE : stallAt - this.#host.parts.clock.upper()) / 2;
  }

  /** The sandbox of this job is ready. The job goes first, after its claim is confirmed. */
  #again(prefetched: Prefetched): void {
    if (!this.#waiting.delete(prefetched)) return;
    prefetched.claimedAt = this.#host.parts.clock.elapsed();
    this.putBack(prefetched);
  }

  /** Puts a job that could not be entered before all others. An old claim is confirmed first. */
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

  /** Releases jobs that waited too long, and asks the store whether the other claims still hold (SEMANTICS 3.1). */
  #reconsider(now: number): void {
    const all = this.#prefetched.slice(this.#next);
    this.#prefetched = [];
    this.#next = 0;
    const old = all.filter((prefetched) => now - prefetched.claimedAt > LONGEST_PREFETCH);
    const doubtful = all.filter((prefetched) => now - prefetched.claimedAt <= LONGEST_PREFETCH);
    if (old.length > 0) {
      // Handlers became slow: prefetch nothing until the average is short again.
      this.#averageRun = LONGEST_PREFETCH;
      this.#host.giveBack(old);
    }
    if (doubtful.length > 0) {
      for (const prefetched of doubtful) this.#confirming.add(prefetched);
      this.#host.confirm(this, doubtful);
    }
  }

  /** The answer to `confirm` about these jobs: those whose claims hold, in their old order. */
  confirmed(asked: readonly Prefetched[], valid: readonly Prefetched[]): void {
    // A shutdown has given back those that are no longer there.
    const held = valid.filter((prefetched) => this.#confirming.has(prefetched));
    for (const prefetched of asked) this.#confirming.delete(prefetched);
    this.#prefetched = [...held, ...this.#prefetched.slice(this.#next)];
    this.#next = 0;
    this.#justConfirmed = {
      jobs: new Set(held),
      until: this.#host.parts.clock.elapsed() + CONFIRMED_WITHIN,
    };
    this.pump();
    this.#justConfirmed = undefined;
  }

  /** Releases jobs that waited too long for a slot or a sandbox. Called on every tick of the worker. */
  tidy(now: number): void {
    const first = this.#prefetched[this.#next];
    if (first && now - first.claimedAt > LONGEST_PREFETCH) this.#reconsider(now);
    const late = [...this.#waiting].filter(([, until]) => now > until).map(([prefetched]) => prefetched);
    if (late.length === 0) return;
    for (const prefetched of late) this.#giveUp(prefetched);
    this.#host.giveBack(late);
    this.pump();
  }

  freed(): void {
    this.#running -= 1;
    this.pump();
  }

  /** Removes and returns all jobs that are not entered, for a shutdown. */
  takePrefetched(): Prefetched[] {
    const waiting = [...this.#waiting.keys()];
    for (const prefetched of waiting) this.#giveUp(prefetched);
    const all = [...waiting, ...this.#confirming, ...this.#prefetched.slice(this.#next)];
    this.#confirming.clear();
    this.#prefetched = [];
    this.#next = 0;
    return all;
  }
}
