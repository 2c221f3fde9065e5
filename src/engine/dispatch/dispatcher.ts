import { errorText, refuse } from "../../core/errors.ts";
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
import { Loop, storeLoop } from "../runtime/loop.ts";
import type { Pauses } from "../runtime/pauses.ts";
import type { Delivery, Destination } from "./destination.ts";
import { DispatchCounters, type DispatchCounts } from "./dispatch-counters.ts";
import { LeasedDelivery, Leases } from "./timeout-leases.ts";
import { Settler } from "./timeout-settler.ts";
import { isLastTry } from "./tries.ts";

export interface DispatchDeps {
  readonly system: System;
  readonly store: { readonly timeouts: TimeoutStore; readonly capabilities: Capabilities };
  readonly clock: { now(): Instant; upper(): Instant };
  readonly pauses: Pauses;
  readonly logger: Logger;
  readonly bus: Pick<EventBus, "emit" | "wants">;
  readonly random: () => number;
  readonly nextId: () => string;
  /** Factor for the pause of an idle loop. */
  readonly idlePollFactor?: number;
  /** Whether a lookout calls `wakeAt` with what is due. Then polls are for the case that it fails. */
  readonly isWatched?: boolean;
  storeFailed(error: unknown, during: string): void;
}

/** At most this many timeouts per claim. */
const BATCH = 200;
const CONCURRENCY = 100;
const MOST_CONCURRENT = 1_000;
export const LEASE = 300_000;
/** At most this many timeouts per destination are sent and not yet removed: a crash sends them again. */
const MOST_SETTLING = 500;
const REDELIVERY = { first: 1_000, factor: 2, most: 300_000 };
const ERROR_LIMIT = 2_000;
const POLL = 1_000;
const POLL_WATCHED = 300_000;
/** For local files: a poll costs microseconds, and other processes cannot send hints. */
const POLL_FILE = 100;
/** The shortest pause, so that timeouts 2 ms apart share a claim. */
const SHORTEST = 2;
/** Pause after a claim that was not full, so that the next one takes more: small claims cost as much as large ones. */
const GATHER = 5;

interface DestinationSlots {
  readonly name: string;
  readonly destination: Destination;
  readonly concurrency: number;
  /** Whether serving this destination keeps the process alive. */
  readonly keepAlive: boolean;
  readonly idle: (() => void)[];
  /** Deliveries that hold a slot. */
  running: number;
  /** Deliveries that are over and not yet removed or released. */
  settling: number;
  isClosing: boolean;
}

/**
 * Delivers due timeouts (SEMANTICS 6): claims for destinations with a free slot, sends, and removes sent ones. Each
 * destination has its own slots, so a slow or failing one does not delay the others.
 */
export class Dispatcher {
  readonly loop: Loop;
  readonly reapLoop: Loop;
  readonly #deps: DispatchDeps;
  readonly #lease: number;
  readonly #poll: number;
  readonly #slots = new Map<string, DestinationSlots>();
  readonly #leases: Leases;
  readonly #settler: Settler;
  readonly #counters = new DispatchCounters();
  /** When the loop polls next. */
  #nextPollAt: Instant = 0;
  /** The earliest instant of a hint since the last poll, which may have run before that timeout was visible. */
  #hintedAt: Instant | null = null;

  constructor(deps: DispatchDeps, lease: number = LEASE) {
    this.#deps = deps;
    this.#lease = lease;
    const { system, pauses, logger, store, clock, storeFailed } = deps;
    const { name, hints } = store.capabilities;
    const poll = name === "sqlite" || hints === "poll" ? POLL_FILE : POLL * (deps.idlePollFactor ?? 1);
    this.#poll = deps.isWatched ? POLL_WATCHED * (deps.idlePollFactor ?? 1) : poll;
    const { timeouts } = store;
    this.#leases = new Leases({ system, timeouts, clock, storeFailed }, lease);
    this.#settler = new Settler({ pauses, timeouts, clock, storeFailed });
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
    this.reapLoop = storeLoop(deps, "reap", () => this.reap());
  }

  start(): void {
    this.loop.start();
    this.reapLoop.start();
  }

  /** Delivers to this destination. The returned function stops it and waits for running deliveries. */
  serve(
    name: string,
    destination: Destination,
    options: { readonly concurrency?: number; readonly keepAlive?: boolean } = {},
  ): () => Promise<void> {
    checkText(name, "destination");
    const { concurrency = CONCURRENCY, keepAlive = true } = options;
    checkClaimLimit(concurrency, MOST_CONCURRENT, "concurrency");
    if (this.#slots.has(name)) {
      throw refuse("invalid_option", "destination", name, "it is served here already: close that first");
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

  /** A timeout may be due at this instant: wakes the loop if it would sleep longer. */
  wakeAt(dueAt: Instant): void {
    this.#hintedAt = earlier(this.#hintedAt, dueAt);
    if (dueAt >= this.#nextPollAt) return;
    this.#nextPollAt = dueAt;
    this.loop.wake();
  }

  /** Destinations that have room for a timeout. */
  get destinations(): string[] {
    return [...this.#slots.values()].filter((slots) => roomOf(slots) > 0).map(({ name }) => name);
  }

  counts(): DispatchCounts {
    return this.#counters.snapshot();
  }

  async reap(): Promise<number> {
    const { store, clock } = this.#deps;
    if ((await store.timeouts.reap({ now: clock.now() })) > 0) this.loop.wake();
    return this.#lease / 4;
  }

  /** Delivers what is due and waits for it. Resolves with false if nothing was due. */
  async deliverDue(): Promise<boolean> {
    await this.round();
    const busy = [...this.#slots.values()].filter(({ running, settling }) => running + settling > 0);
    await Promise.all(busy.map(({ idle }) => new Promise<void>((resolve) => idle.push(resolve))));
    return busy.length > 0;
  }

  /** Claims once and returns the pause until the next round. */
  async round(): Promise<number | null> {
    const free = [...this.#slots.values()].filter((slots) => roomOf(slots) > 0);
    // A slot that becomes free wakes the loop.
    if (free.length === 0) return null;
    const { store, clock, nextId } = this.#deps;
    const now = clock.now();
    this.#nextPollAt = now;
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
    const { store, clock, random } = this.#deps;
    const next = earlier(await store.timeouts.nextDueAt(destinations), this.#hintedAt);
    const now = clock.now();
    const poll = this.#poll * (0.75 + 0.25 * random());
    const rest = next === null ? poll : Math.min(Math.max(next - now, SHORTEST), poll);
    this.#nextPollAt = now + rest;
    return rest;
  }

  #take(delivery: LeasedDelivery): void {
    const slots = this.#slots.get(delivery.row.destination);
    const left = delivery.leaseUntil - this.#deps.clock.upper();
    // After a slow claim the lease may be nearly over: a delivery that starts now would be sent twice.
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

  /** Wakes the loop when a full destination has room again: the loop only skips full ones. */
  #change(slots: DestinationSlots, change: () => void): void {
    const hadRoom = roomOf(slots) > 0;
    change();
    if (!hadRoom && roomOf(slots) > 0) this.loop.wake();
  }

  async #deliver(slots: DestinationSlots, leased: LeasedDelivery): Promise<void> {
    const { row, owner, signal } = leased;
    if (row.tries === 0) this.#counters.fired(Math.max(0, this.#deps.clock.now() - row.dueAt));
    let delivery: Delivery | undefined;
    let thrown: unknown;
    try {
      delivery = await slots.destination.deliver(row, { owner, signal });
    } catch (error) {
      thrown = error;
    }
    // Free the slot now: the write that follows may be slow.
    this.#change(slots, () => {
      slots.running -= 1;
      slots.settling += 1;
    });
    if (delivery === undefined) await this.#failed(leased, thrown);
    else if (delivery === "done") this.#sent(row);
    else if (delivery === "sent") await this.#remove(leased);
    else if ("again" in delivery) await this.#postpone(leased, delivery.again);
    else await this.#hold(leased, delivery.notBefore);
  }

  /** A sent timeout is never released. If it cannot be removed, it is sent again when its lease ends. */
  async #remove(leased: LeasedDelivery): Promise<void> {
    const { row, owner } = leased;
    const answer = await this.#settler.remove({ id: row.id, owner }, leased);
    if (answer === "ok") this.#sent(row);
    else this.#counters.add(answer === "gone" ? "gone" : "lapsed");
  }

  #sent(row: TimeoutRow): void {
    this.#counters.add("sent");
    this.#announce("timeout.sent", row, row.tries);
  }

  async #postpone(leased: LeasedDelivery, dueAt: Instant): Promise<void> {
    this.#counters.add("postponed");
    await this.#settler.release({ id: leased.row.id, owner: leased.owner, dueAt }, leased);
    this.wakeAt(dueAt);
  }

  /** The lease ends at that instant instead of a release with another due time, which would change the order. */
  async #hold(leased: LeasedDelivery, leaseUntil: Instant): Promise<void> {
    this.#counters.add("postponed");
    await this.#settler.hold({ id: leased.row.id, owner: leased.owner, leaseUntil }, leased);
    this.wakeAt(leaseUntil);
  }

  async #failed(leased: LeasedDelivery, error: unknown): Promise<void> {
    const { row, owner, signal } = leased;
    // An aborted delivery has not failed: it counts as no try.
    if (signal.aborted) {
      this.#counters.add("lapsed");
      await this.#settler.release({ id: row.id, owner }, leased);
      return;
    }
    const { clock, random } = this.#deps;
    const tries = row.tries + 1;
    const isDead = isLastTry(row);
    const delay = jittered(backoff(tries, REDELIVERY), random);
    const dueAt = clock.now() + Math.round(delay);
    const released = { id: row.id, owner, error: errorText(error, ERROR_LIMIT) };
    const answer = await this.#settler.release(
      isDead ? { ...released, isDead } : { ...released, dueAt },
      leased,
    );
    if (answer !== "ok") {
      this.#counters.add(answer === "gone" ? "gone" : "lapsed");
      return;
    }
    this.#counters.add("failed");
    if (isDead) this.#counters.add("dead");
    else this.wakeAt(dueAt);
    this.#announce(isDead ? "timeout.dead" : "timeout.failed", row, tries, error);
  }

  #announce(name: TimeoutEventName, { id, destination }: TimeoutRow, tries: number, error?: unknown): void {
    const { bus, clock, logger } = this.#deps;
    if (name !== "timeout.sent")
      logger.warn({ id, destination, tries, error }, `${name}: ${errorText(error, ERROR_LIMIT)}`);
    if (!bus.wants(name)) return;
    const detail = { at: clock.now(), timeout: id, destination, tries };
    bus.emit({ name, ...detail, ...(error !== undefined && { error }) });
  }

  async #stopServing(slots: DestinationSlots): Promise<void> {
    slots.isClosing = true;
    if (slots.running + slots.settling > 0) await new Promise<void>((resolve) => slots.idle.push(resolve));
    if (this.#slots.get(slots.name) === slots) this.#slots.delete(slots.name);
  }

  /** Stops claiming, waits up to `drain` for running deliveries, aborts the rest and releases their leases. */
  async stop(drain: number): Promise<void> {
    const { system } = this.#deps;
    const stopped = Promise.all([this.loop.stop(), this.reapLoop.stop()]);
    const ended = Promise.all([...this.#slots.values()].map((slots) => this.#stopServing(slots)));
    await within(system, drain, ended);
    const budget = new CloseBudget(system);
    for (const delivery of this.#leases.deliveries) delivery.abort("shutdown");
    await budget.until(Math.min(drain, CLOSE_MARKS.writes), ended);
    const left = [...this.#leases.deliveries].map((leased) =>
      this.#settler.release({ id: leased.row.id, owner: leased.owner }, leased),
    );
    await budget.until(CLOSE_MARKS.goodbye, Promise.all([stopped, ...left]));
  }
}

/** How many more timeouts may be claimed for a destination. */
function roomOf({ concurrency, running, settling, isClosing }: DestinationSlots): number {
  return isClosing ? 0 : Math.min(concurrency - running, MOST_SETTLING - settling);
}
