import type { NamedCalendars } from "../../core/calendar/business-calendar.ts";
import { CurfewError, checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import {
  type Duration,
  INSTANT_LIMIT,
  type Instant,
  type InstantInput,
  parseDuration,
  parseInstant,
} from "../../core/time.ts";
import { ConcurrencyError, checkText, type Owner, type TimeoutId } from "../../core/timeout/timeout.ts";
import type { Transaction } from "../../core/transaction.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import {
  CLAIM_BATCH,
  type LeaseAnswer,
  type Revoked,
  type TimeoutCounts,
  type TimeoutFilter,
  type TimeoutStore,
  type Which,
} from "../../ports/timeouts.ts";
import { newTimeout, type Timeout, type TimeoutInput, timeoutOf } from "./timeout-view.ts";

/** Options of every call. A call with an aborted signal rejects with the signal's reason and changes nothing. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface TimeoutsDeps {
  readonly timeouts: TimeoutStore;
  readonly clock: { now(): Instant; anchor(): Instant; upper(): Instant };
  readonly nextId: () => string;
  readonly documentLimit?: number;
  /** Business calendars that a timeout may name. */
  readonly calendars?: NamedCalendars;
  /** Resolves when the clock was read recently enough. */
  readonly fresh?: () => Promise<void> | undefined;
}

export interface LeaseSettings {
  /** How long a claim holds its timeouts, in milliseconds. */
  readonly lease: number;
  /** How many timeouts a claim without a limit takes. */
  readonly batch: number;
}

export const DEFAULT_LEASES: LeaseSettings = { lease: 300_000, batch: CLAIM_BATCH };

/** A timeout that a claim leased. */
export type ClaimedTimeout = Timeout & { readonly owner: Owner; readonly leaseUntil: Instant };

export interface CalendarOptions {
  readonly destination?: string;
  /** Due from this instant on. */
  readonly from?: InstantInput;
  /** Due before this instant. */
  readonly before?: InstantInput;
  /** The cursor of the page before. */
  readonly after?: string | null;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number;
}

/** A page of timeouts. `cursor` is the `after` of the next page; null on the last one. */
export interface CalendarPage {
  readonly timeouts: readonly Timeout[];
  readonly cursor: string | null;
}

/**
 * The leased timeout store (SEMANTICS 6) for direct use. It reads the store's clock, makes ids and tokens, and throws
 * if the caller does not hold the lease.
 */
export class Timeouts {
  readonly #deps: TimeoutsDeps;
  readonly #settings: LeaseSettings;

  constructor(deps: TimeoutsDeps, settings: LeaseSettings = DEFAULT_LEASES) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /** Stores a timeout and returns its id once durable. A known id is refused; a known key replaces its timeout. */
  async insert(
    timeout: TimeoutInput,
    options: CallOptions & { readonly tx?: Transaction } = {},
  ): Promise<TimeoutId> {
    const [id] = await this.insertMany([timeout], options);
    return id as TimeoutId;
  }

  /** Stores many timeouts. If an id exists, the others are stored and an error names that id. */
  async insertMany(
    inputs: readonly TimeoutInput[],
    options: CallOptions & { readonly tx?: Transaction } = {},
  ): Promise<TimeoutId[]> {
    const { timeouts, clock, nextId, documentLimit, calendars, fresh } = this.#deps;
    checkCall(options, ["tx"]);
    await fresh?.();
    const [now, anchor] = [clock.now(), clock.anchor()];
    const added = inputs.map((input) => newTimeout(input, anchor, nextId, documentLimit, calendars));
    for (let from = 0; from < added.length; from += BATCH_LIMIT) {
      const batch = added.slice(from, from + BATCH_LIMIT);
      const answers = await timeouts.insert(batch, {
        now,
        ...(options.tx !== undefined && { tx: options.tx }),
      });
      const known = batch[answers.indexOf("exists")];
      if (known) {
        throw new CurfewError("known_id", `timeout.id: a timeout with the id ${known.id} is stored already`, {
          field: "timeout.id",
        });
      }
    }
    return added.map(({ id }) => id);
  }

  /** Leases due timeouts, ordered by due instant and id. Each call has its own token. */
  async claimDue(
    options: CallOptions & {
      readonly limit?: number;
      readonly lease?: Duration;
      readonly destinations?: readonly string[];
    } = {},
  ): Promise<ClaimedTimeout[]> {
    checkCall(options, ["limit", "lease", "destinations"]);
    const { timeouts, clock, nextId } = this.#deps;
    const { limit = this.#settings.batch, destinations } = options;
    checkCount(limit, "limit", BATCH_LIMIT);
    if (destinations !== undefined) checkDestinations(destinations);
    const now = clock.now();
    const rows = await timeouts.claimDue({
      now,
      leaseUntil: now + this.#lease(options.lease),
      owner: nextId(),
      limit,
      ...(destinations && { destinations: destinations.map((name) => ({ name, limit })) }),
    });
    return rows.map((row) => timeoutOf(row) as ClaimedTimeout);
  }

  /** Removes a timeout. With an owner, only while that owner holds the lease. */
  async remove(id: TimeoutId, owner?: Owner, options: CallOptions = {}): Promise<void> {
    checkCall(options, []);
    const { timeouts, clock } = this.#deps;
    const lease = { id: checkText(id, "id"), ...(owner !== undefined && { owner }) };
    const [answer] = await timeouts.remove([lease], { now: clock.upper() });
    assertHeld(answer, id, owner);
  }

  /** Releases a lease: the timeout is due at once, or after the delay. An error counts as a try. */
  async release(
    id: TimeoutId,
    owner?: Owner,
    options: CallOptions & { readonly after?: Duration; readonly error?: string } = {},
  ): Promise<void> {
    checkCall(options, ["after", "error"]);
    const { timeouts, clock } = this.#deps;
    const { after, error } = options;
    const released = {
      id: checkText(id, "id"),
      ...(owner !== undefined && { owner }),
      ...(after !== undefined && { dueAt: clock.anchor() + parseDuration(after, "after", { zero: true }) }),
      ...(error !== undefined && { error }),
    };
    const [answer] = await timeouts.release([released], { now: clock.upper() });
    assertHeld(answer, id, owner);
  }

  /** Extends a lease from now on. Returns its new end. */
  async extend(
    id: TimeoutId,
    owner: Owner,
    options: CallOptions & { readonly lease?: Duration } = {},
  ): Promise<Instant> {
    checkCall(options, ["lease"]);
    const { timeouts, clock } = this.#deps;
    const leaseUntil = clock.now() + this.#lease(options.lease);
    const extended = { id: checkText(id, "id"), owner: checkText(owner, "owner"), leaseUntil };
    const [answer] = await timeouts.extend([extended], { now: clock.upper() });
    assertHeld(answer, id, owner);
    return leaseUntil;
  }

  /** Frees every expired lease and returns their number. Engines do this by themselves. */
  async reap(options: CallOptions = {}): Promise<number> {
    checkCall(options, []);
    return this.#deps.timeouts.reap({ now: this.#deps.clock.now() });
  }

  /**
   * Cancels timeouts by id, key or saga. A `pending` one will never be handled. A `leased` one may be in its handler; a
   * saga's handler never commits then.
   */
  async cancel(which: Which, options: CallOptions & { readonly tx?: Transaction } = {}): Promise<Revoked> {
    checkCall(options, ["tx"]);
    const { timeouts, clock } = this.#deps;
    const { tx } = options;
    return timeouts.cancel(which, { now: clock.now(), ...(tx !== undefined && { tx }) });
  }

  /** One timeout; null if it was handled, revoked or replaced. */
  async get(id: TimeoutId, options: CallOptions = {}): Promise<Timeout | null> {
    checkCall(options, []);
    const [row] = await this.#deps.timeouts.load([checkText(id, "id")]);
    return row ? timeoutOf(row) : null;
  }

  /** Timeouts that are due in a range, in that order. It includes leased ones and leaves out dead ones. */
  async calendar(options: CallOptions & CalendarOptions = {}): Promise<CalendarPage> {
    checkCall(options, ["destination", "from", "before", "after", "limit"]);
    const { destination, after = null, limit = 100 } = options;
    checkCount(limit, "limit", BATCH_LIMIT);
    const rows = await this.#deps.timeouts.calendar({
      ...(destination !== undefined && { destination: checkText(destination, "destination") }),
      from: options.from === undefined ? 0 : parseInstant(options.from, "from"),
      before: options.before === undefined ? INSTANT_LIMIT : parseInstant(options.before, "before"),
      after: after === null ? null : parseCursor(after),
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const cursor = rows.length > limit && last ? `${last.dueAt}.${last.id}` : null;
    return { timeouts: page.map(timeoutOf), cursor };
  }

  /** Timeouts by id; `after` is the last id of the page before. */
  async list(
    filter: TimeoutFilter = {},
    options: CallOptions & { readonly after?: TimeoutId; readonly limit?: number } = {},
  ): Promise<Timeout[]> {
    checkCall(options, ["after", "limit"]);
    const { after, limit = 100 } = options;
    checkCount(limit, "limit", BATCH_LIMIT);
    const rows = await this.#deps.timeouts.list(filter, after ?? null, limit);
    return rows.map(timeoutOf);
  }

  /** Makes dead timeouts due at once, with all their tries. Returns how many were dead. */
  async requeue(ids: readonly TimeoutId[], options: CallOptions = {}): Promise<number> {
    checkCall(options, []);
    return this.#deps.timeouts.requeue(ids, { now: this.#deps.clock.now() });
  }

  /** When the next pending timeout is due; null if none is pending. */
  async nextDueAt(options: CallOptions = {}): Promise<Instant | null> {
    checkCall(options, []);
    return this.#deps.timeouts.nextDueAt();
  }

  async count(options: CallOptions = {}): Promise<TimeoutCounts> {
    checkCall(options, []);
    return this.#deps.timeouts.count({ now: this.#deps.clock.now() });
  }

  #lease(lease: Duration | undefined): number {
    return lease === undefined ? this.#settings.lease : parseDuration(lease, "lease");
  }
}

function parseCursor(after: string): { readonly dueAt: Instant; readonly id: TimeoutId } {
  const [, dueAt, id] = /^(\d{1,14})\.(.+)$/s.exec(after) ?? [];
  if (dueAt === undefined || id === undefined)
    throw refuse("invalid_option", "after", after, "use the cursor of the page before");
  return { dueAt: Number(dueAt), id: checkText(id, "after") };
}

function checkCall(options: CallOptions, known: readonly string[]): void {
  refuseUnknownKeys(options, "options", ["signal", ...known]);
  options.signal?.throwIfAborted();
}

function assertHeld(answer: LeaseAnswer | undefined, id: TimeoutId, owner: Owner | undefined): void {
  if (answer !== undefined && answer !== "ok") throw new ConcurrencyError(id, owner ?? "", answer);
}

const MOST_DESTINATIONS = 1_000;

function checkDestinations(destinations: unknown): void {
  if (!Array.isArray(destinations) || destinations.length > MOST_DESTINATIONS)
    throw refuse(
      "invalid_option",
      "destinations",
      destinations,
      `use an array of at most ${MOST_DESTINATIONS} names`,
    );
  for (const name of destinations) checkText(name, "destinations");
}
