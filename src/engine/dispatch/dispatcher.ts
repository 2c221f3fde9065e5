import { refuse } from "../../core/errors.ts";
import { backoff, jittered } from "../../core/pace.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { checkClaimLimit, checkText, type TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Logger } from "../../ports/log.ts";
import type { Capabilities } from "../../ports/store.ts";
import { type System, within } from "../../ports/system.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";
import type { EventBus } from "../events/event-bus.ts";
import type { TimeoutEventName } from "../events/timeout-events.ts";
import { CLOSE_MARKS, CloseBudget } from "../runtime/close-budget.ts";
import { Loop } from "../runtime/loop.ts";
import type { Delivery, Destination } from "./destination.ts";
import { DispatchCounters, type DispatchCounts } from "./dispatch-counters.ts";
import { LeasedDelivery, Leases } from "./timeout-leases.ts";
import { Settler } from "./timeout-settler.ts";

/** What a dispatcher needs: an engine has it, and so has whoever uses the timeout store alone. */
export interface DispatchParts {
  readonly system: System;
  readonly store: { readonly timeouts: TimeoutStore; readonly capabilities: Capabilities };
  readonly clock: { now(): Instant; upper(): Instant };
  readonly logger: Logger;
  readonly bus: Pick<EventBus, "emit" | "wants">;
  readonly random: () => number;
  readonly nextId: () => string;
  /** How many times longer than usual an idle loop rests. */
  readonly idlePollFactor?: number;
  storeFailed(error: unknown, during: string): void;
}

/** How many timeouts one claim takes at most. */
const BATCH = 200;
const CONCURRENCY = 100;
const MOST_CONCURRENT = 1_000;
export const LEASE = 300_000;
const MOST_TRIES = 10;
/** Sent and not yet removed, for each destination: so many are sent again if the process dies. */
const MOST_SETTLING = 500;
const REDELIVERY = { first: 1_000, factor: 2, most: 300_000 };
const ERROR_LIMIT = 2_000;
const POLL = 1_000;
/** Looking costs a local file microseconds, and other processes cannot call this one. */
const POLL_FILE = 100;
/** Timeouts a moment apart share a claim: the moment is far below what one may be late. */
const SHORTEST = 2;
/** After a claim that took all there was, the next waits a moment for more to come due: small claims cost as much as large ones. */
const GATHER = 5;

interface DestinationSlots {
  readonly name: string;
  readonly destination: Destination;
  readonly concurrency: number;
  /** Whether serving it keeps the process alive. */
  readonly keepAlive: boolean;
  readonly idle: (() => void)[];
  /** Deliveries that hold a slot. */
  running: number;
  /** Deliveries that are over and not yet removed or released. */
  settling: number;
  isClosing: boolean;
}

/**
 * Delivers due timeouts (SEMANTICS 6): claims for the destinations that are served here and have a free slot, sends,
 * and removes what was sent. Each destination has slots of its own, so one that fails or is slow keeps nothing from
 * the others.
 */
export class Dispatcher {
  readonly loop: Loop;
  readonly reapLoop: Loop;
  readonly #parts: DispatchParts;
  readonly #lease: number;
  readonly #poll: number;
  readonly #slots = new Map<string, DestinationSlots>();
  readonly #leases: Leases;
  readonly #settler: Settler;
  readonly #counters = new DispatchCounters();
  /** When the loop means to look again. */
  #nextLookAt: Instant = 0;
  /** The earliest instant that somebody told of since the last look: the look itself may have come too early to see it. */
  #hintedAt: Instant | null = null;

  constructor(parts: DispatchParts, lease: number = LEASE) {
    this.#parts = parts;
    this.#lease = lease;
    const { system, logger, store, clock, storeFailed } = parts;
    const { name, hints } = store.capabilities;
    this.#poll = name === "sqlite" || hints === "poll" ? POLL_FILE : POLL * (parts.idlePollFactor ?? 1);
    const { timeouts } = store;
    this.#leases = new Leases({ system, timeouts, clock, storeFailed }, lease);
    this.#settler = new Settler({ system, timeouts, clock, storeFailed });
    const slots = this.#slots;
    this.loop = new Loop({
      name: "dispatch",
      system,
      logger,
      round: () => this.round(),
      onError: (error) => storeFailed(error, "dispatch"),
      get keepAlive() {
        return [...slots.values()].some(({ keepAlive }) => keepAlive);
      },
    });
    this.reapLoop = new Loop({
      name: "reap",
      system,
      logger,
      round: () => this.reap(),
      onError: (error) => storeFailed(error, "reap"),
    });
  }

  start(): void {
    this.loop.start();
    this.reapLoop.start();
  }

  /** Delivers to this destination from now on. The function that is returned stops it, and waits for what is under way. */
  serve(
    name: string,
    destination: Destination,
    options: { readonly concurrency?: number; readonly keepAlive?: boolean } = {},
  ): () => Promise<void> {
    checkText(name, "destination");
    const { concurrency = CONCURRENCY, keepAlive = true } = options;
    checkClaimLimit(concurrency, MOST_CONCURRENT, "concurrency");
    if (this.#slots.has(name)) {
      throw refuse("invalid_option", "destination", name, "it is served already: stop that first");
    }
    const slots: DestinationSlots = {
      name,
      destination,
      concurrency,
      keepAlive,
      idle: [],
      running: 0,
      settling: 0,
      isClosing: false,
    };
    this.#slots.set(name, slots);
    this.loop.wake();
    return () => this.#stopServing(slots);
  }

  /** Something may be due at this instant; a loop that sleeps longer is woken for it. */
  wakeAt(dueAt: Instant): void {
    this.#hintedAt = earlier(this.#hintedAt, dueAt);
    if (dueAt >= this.#nextLookAt) return;
    this.#nextLookAt = dueAt;
    this.loop.wake();
  }

  counts(): DispatchCounts {
    return this.#counters.snapshot();
  }

  async reap(): Promise<number> {
    const { store, clock } = this.#parts;
    if ((await store.timeouts.reap({ now: clock.now() })) > 0) this.loop.wake();
    return this.#lease / 4;
  }

  /** One round; it answers how long to rest. */
  async round(): Promise<number | null> {
    const free = [...this.#slots.values()].filter((slots) => roomOf(slots) > 0);
    // A slot that becomes free wakes the loop.
    if (free.length === 0) return null;
    const { store, clock, nextId } = this.#parts;
    const now = clock.now();
    this.#nextLookAt = now;
    this.#hintedAt = null;
    const destinations = free.map((slots) => ({ name: slots.name, limit: Math.min(roomOf(slots), BATCH) }));
    const owner = nextId();
    const leaseUntil = now + this.#lease;
    const rows = await store.timeouts.claimDue({ now, leaseUntil, owner, limit: BATCH, destinations });
    for (const row of rows) this.#take(new LeasedDelivery(row, owner, leaseUntil));
    if (rows.length > 0) return rows.length === BATCH ? 0 : GATHER;
    return this.#rest(destinations.map(({ name }) => name));
  }

  async #rest(destinations: readonly string[]): Promise<number> {
    const { store, clock, random } = this.#parts;
    const next = earlier(await store.timeouts.nextDueAt(destinations), this.#hintedAt);
    const now = clock.now();
    const poll = this.#poll * (0.75 + 0.25 * random());
    const rest = next === null ? poll : Math.min(Math.max(next - now, SHORTEST), poll);
    this.#nextLookAt = now + rest;
    return rest;
  }

  #take(delivery: LeasedDelivery): void {
    const slots = this.#slots.get(delivery.row.destination);
    const left = delivery.leaseUntil - this.#parts.clock.upper();
    // A claim whose reply took long may leave too little: what is begun now would be sent twice.
    if (!slots || slots.isClosing || left < Math.min(2_000, this.#lease / 4)) {
      this.#counters.add("lapsed");
      void this.#settler.release({ id: delivery.row.id, owner: delivery.owner }, delivery);
      return;
    }
    slots.running += 1;
    this.#leases.add(delivery);
    void this.#deliver(slots, delivery).finally(() => {
      this.#leases.delete(delivery);
      this.#change(slots, () => {
        slots.settling -= 1;
      });
      if (slots.running + slots.settling === 0) for (const resolve of slots.idle.splice(0)) resolve();
    });
  }

  /** Only a lane without room keeps the loop from claiming for it, so only its first room is news. */
  #change(slots: DestinationSlots, change: () => void): void {
    const hadRoom = roomOf(slots) > 0;
    change();
    if (!hadRoom && roomOf(slots) > 0) this.loop.wake();
  }

  async #deliver(slots: DestinationSlots, held: LeasedDelivery): Promise<void> {
    const { row, owner, signal } = held;
    if (row.tries === 0) this.#counters.fired(Math.max(0, this.#parts.clock.now() - row.dueAt));
    let delivery: Delivery | undefined;
    let thrown: unknown;
    try {
      delivery = await slots.destination.deliver(row, { owner, signal });
    } catch (error) {
      thrown = error;
    }
    // A slow disk must not keep slots busy whose work is done.
    this.#change(slots, () => {
      slots.running -= 1;
      slots.settling += 1;
    });
    if (delivery === undefined) await this.#failed(held, thrown);
    else if (delivery === "done") this.#sent(row);
    else if (delivery === "sent") await this.#remove(held);
    else await this.#postpone(held, delivery.again);
  }

  /** What was sent is never released: if it cannot be removed, it is sent again when its lease is over. */
  async #remove(held: LeasedDelivery): Promise<void> {
    const { row, owner } = held;
    const answer = await this.#settler.remove({ id: row.id, owner }, held);
    if (answer === "ok") this.#sent(row);
    else this.#counters.add(answer === "gone" ? "gone" : "lapsed");
  }

  #sent(row: TimeoutRow): void {
    this.#counters.add("sent");
    this.#tell("timeout.sent", row, row.tries);
  }

  async #postpone(held: LeasedDelivery, dueAt: Instant): Promise<void> {
    this.#counters.add("postponed");
    await this.#settler.release({ id: held.row.id, owner: held.owner, dueAt }, held);
    this.wakeAt(dueAt);
  }

  async #failed(held: LeasedDelivery, error: unknown): Promise<void> {
    const { row, owner, signal } = held;
    // A delivery that was told to stop has not failed: nobody waits for it, and the next one may succeed.
    if (signal.aborted) {
      this.#counters.add("lapsed");
      await this.#settler.release({ id: row.id, owner }, held);
      return;
    }
    const { clock, random } = this.#parts;
    const tries = row.tries + 1;
    const isDead = tries >= MOST_TRIES;
    const delay = jittered(backoff(tries, REDELIVERY), random);
    const dueAt = clock.now() + Math.round(delay);
    const released = { id: row.id, owner, error: messageOf(error) };
    const answer = await this.#settler.release(
      isDead ? { ...released, isDead } : { ...released, dueAt },
      held,
    );
    if (answer !== "ok") {
      this.#counters.add(answer === "gone" ? "gone" : "lapsed");
      return;
    }
    this.#counters.add("failed");
    if (isDead) this.#counters.add("dead");
    else this.wakeAt(dueAt);
    this.#tell(isDead ? "timeout.dead" : "timeout.failed", row, tries, error);
  }

  #tell(name: TimeoutEventName, { id, destination }: TimeoutRow, tries: number, error?: unknown): void {
    const { bus, clock, logger } = this.#parts;
    if (name !== "timeout.sent")
      logger.warn({ id, destination, tries, error }, `${name}: ${messageOf(error)}`);
    if (!bus.wants(name)) return;
    const detail = { at: clock.now(), timeout: id, destination, tries };
    bus.emit({ name, ...detail, ...(error !== undefined && { error }) });
  }

  async #stopServing(slots: DestinationSlots): Promise<void> {
    slots.isClosing = true;
    if (slots.running + slots.settling > 0) await new Promise<void>((resolve) => slots.idle.push(resolve));
    if (this.#slots.get(slots.name) === slots) this.#slots.delete(slots.name);
  }

  /** Stops claiming, lets deliveries finish for so long, tells the others to stop, and gives back what they hold. */
  async stop(drain: number): Promise<void> {
    const { system } = this.#parts;
    const stopped = Promise.all([this.loop.stop(), this.reapLoop.stop()]);
    const ended = Promise.all([...this.#slots.values()].map((slots) => this.#stopServing(slots)));
    await within(system, drain, ended);
    const budget = new CloseBudget(system);
    for (const delivery of this.#leases.held) delivery.abort("shutdown");
    await budget.until(Math.min(drain, CLOSE_MARKS.writes), ended);
    const left = [...this.#leases.held].map((held) =>
      this.#settler.release({ id: held.row.id, owner: held.owner }, held),
    );
    await budget.until(CLOSE_MARKS.goodbye, Promise.all([stopped, ...left]));
  }
}

/** How many more may be claimed for a destination. */
function roomOf({ concurrency, running, settling, isClosing }: DestinationSlots): number {
  return isClosing ? 0 : Math.min(concurrency - running, MOST_SETTLING - settling);
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.slice(0, ERROR_LIMIT);
}
