import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import {
  type EventFilter,
  fitsFilter,
  isEventCursor,
  type JournalEvent,
  journalEvent,
} from "../../core/event/journal-event.ts";
import type { EventPage, Inspector, RecordKey } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";

export interface ReadOptions extends EventFilter {
  /** The cursor of an event: reading goes on behind it. Left out or null: from the oldest event that is kept. */
  readonly after?: string | null;
  /** The most events to give, up to 1,000. Default 100. */
  readonly limit?: number;
}

export interface FollowOptions extends EventFilter {
  /** Begin behind this event; null for the oldest that is kept. Left out: with what happens from now on. */
  readonly after?: string | null;
  readonly signal?: AbortSignal;
}

/** A page of the stream. */
export interface JournalPage {
  readonly events: readonly JournalEvent[];
  /** Goes on behind the last event that was looked at, whether it was wanted or not; null if there was none. */
  readonly cursor: string | null;
  /** Whether there may be more right now. */
  readonly hasMore: boolean;
  /**
   * Whether committed events follow that cannot be read yet, because a transaction that began before theirs still runs.
   * Read on from `cursor`. Only where such a transaction runs for more than a second, and only on PostgreSQL.
   */
  readonly isIncomplete: boolean;
}

/** Whether an engine records: what was asked of it, and else what the store says for all. */
export type EventsOption = "off" | "durable";

const PAGE = 200;
const LIMIT = 1_000;
/** A question whose filter fits nothing must come to an end: the cursor it gets goes on where it stopped. */
const MOST_PAGES = 50;
/** How many of the newest events are looked through for those that fit. */
const LATEST = 5_000;
/** Where no hint comes, somebody looks this often; and however many hints come, no more often than this. */
const POLL = 250;
const SHORTEST = 10;
/** A read waits this long for committed events that a running transaction keeps from being read. */
const LONGEST_WAIT = 1_000;
/** The rest between two looks for them; the store itself looks a few times during each. */
const LOOK_AGAIN = 50;
/** Its existence says that engines record which were not told otherwise. */
const SETTING: RecordKey = ["setting", "events"];

/**
 * The stream of everything that happened to jobs, kept in the store and read by cursor. An event is written in the commit
 * it tells of, so none is missing and none tells of what did not happen.
 */
export class EventJournal {
  readonly #parts: EngineContext;
  /** What this engine was told; undefined if it goes by what the store says for all. */
  #option: EventsOption | undefined;
  readonly #waiting = new Set<() => void>();
  #isClosed = false;

  constructor(parts: EngineContext, option: EventsOption | undefined) {
    this.#parts = parts;
    this.#option = option;
  }

  /** Begins as the engine was told, or as the store says for all. */
  async open(): Promise<void> {
    if (this.#option === "durable") await this.turnOn();
    else await this.refresh();
  }

  /** Whether this engine records what it commits. */
  get isOn(): boolean {
    return this.#parts.recorder.isOn;
  }

  /** Records from now on, here and in all engines on this store that were not opened with `events: "off"`. */
  async turnOn(): Promise<void> {
    if (this.#option === "off") {
      const fix = 'this engine was opened with events: "off": open it without, or with "durable"';
      throw refuse("invalid_option", "events", "off", fix);
    }
    this.#option = "durable";
    this.#parts.recorder.setRecording(true);
    const [setting] = await this.#parts.store.records.load([SETTING]);
    if (!setting) await this.#commit({ put: SETTING, body: { at: this.#parts.clock.now() }, wakeAt: null });
  }

  /** Records no longer, here and in all engines that were not told to: those end within five seconds. */
  async turnOff(): Promise<void> {
    this.#option = "off";
    this.#parts.recorder.setRecording(false);
    await this.#commit({ delete: SETTING });
  }

  /** Whether this engine was told not to record, so that `turnOn` would be refused. */
  get isForbidden(): boolean {
    return this.#option === "off";
  }

  async #commit(
    effect: { put: RecordKey; body: { at: number }; wakeAt: null } | { delete: RecordKey },
  ): Promise<void> {
    await commitUnits(this.#parts, [{ effects: [effect] }]);
  }

  /** Learns what the store says for all engines. An engine that was told what to do need not ask. */
  async refresh(): Promise<void> {
    if (this.#option !== undefined) return;
    const [setting] = await this.#parts.store.records.load([SETTING]);
    // Somebody may have told it meanwhile.
    if (this.#option === undefined)
      this.#parts.recorder.setRecording(setting !== null && setting !== undefined);
  }

  /** Events in their order, after a cursor. What was committed before the call is in it, if the limit allows. */
  async read(options: ReadOptions = {}): Promise<JournalPage> {
    refuseUnknownKeys(options, "read", ["after", "limit", "types", "queues", "job"]);
    checkFilter(options);
    const { limit = 100 } = options;
    const after = checkCursor(options.after ?? null);
    checkLimit(limit);
    return this.#readOn(after, limit, options);
  }

  async #readOn(after: string | null, limit: number, filter: EventFilter): Promise<JournalPage> {
    let cursor = after;
    const found: JournalEvent[] = [];
    const waitUntil = this.#parts.system.monotonic() + LONGEST_WAIT;
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page = await this.#inspect.events(cursor, PAGE);
      for (const event of eventsOf(page)) {
        if (!fitsFilter(event, filter)) continue;
        found.push(event);
        if (found.length < limit) continue;
        const isLast = event.cursor === page.cursor && page.events.length < PAGE && !page.isIncomplete;
        return { events: found, cursor: event.cursor, hasMore: !isLast, isIncomplete: false };
      }
      cursor = page.cursor;
      if (page.events.length === PAGE) continue;
      const isIncomplete = page.isIncomplete ?? false;
      if (!isIncomplete || this.#parts.system.monotonic() >= waitUntil)
        return { events: found, cursor, hasMore: false, isIncomplete };
      await this.#rest(undefined, LOOK_AGAIN);
    }
    return { events: found, cursor, hasMore: true, isIncomplete: false };
  }

  /** The newest events that fit, oldest first, and the cursor to follow on from. */
  async latest(options: Omit<ReadOptions, "after"> = {}): Promise<JournalPage> {
    refuseUnknownKeys(options, "latest", ["limit", "types", "queues", "job"]);
    checkFilter(options);
    const { limit = 100 } = options;
    checkLimit(limit);
    const page = await this.#newest(limit, options);
    if (!page.isIncomplete) return page;
    // Newer ones are committed. They are read by cursor, because that waits until they can be read.
    const newer = await this.#readOn(page.cursor, LIMIT, options);
    // If there are more than one read takes, what was waited for can be read: ask for the newest again.
    if (newer.hasMore) return this.#newest(limit, options);
    return { ...newer, events: [...page.events, ...newer.events].slice(-limit) };
  }

  /** The newest events that can be read now. */
  async #newest(limit: number, filter: EventFilter): Promise<JournalPage> {
    const isAll = (filter.types ?? filter.queues ?? filter.job) === undefined;
    const page = await this.#inspect.latestEvents(isAll ? limit : LATEST);
    const events = eventsOf(page).filter((event) => fitsFilter(event, filter));
    return {
      events: events.slice(-limit),
      cursor: page.cursor,
      hasMore: false,
      isIncomplete: page.isIncomplete ?? false,
    };
  }

  /**
   * Events as they are committed, by this process or any other, until the signal aborts, the loop is left or the engine
   * is closed. Each comes at least once and in its order; whoever keeps the cursor of the last one goes on behind it.
   */
  follow(options: FollowOptions = {}): AsyncGenerator<JournalEvent, void, undefined> {
    refuseUnknownKeys(options, "follow", ["after", "signal", "types", "queues", "job"]);
    checkFilter(options);
    const { after } = options;
    // Asked at once, so that nothing is missed between this call and the first look.
    const from =
      after === undefined
        ? this.#inspect.latestEvents(1).then(({ cursor }) => cursor)
        : Promise.resolve(checkCursor(after));
    from.catch(() => {});
    return this.#follow(from, options);
  }

  async *#follow(
    from: Promise<string | null>,
    options: FollowOptions,
  ): AsyncGenerator<JournalEvent, void, undefined> {
    const { signal } = options;
    let cursor = await from;
    while (!signal?.aborted && !this.#isClosed) {
      const page = await this.#look(cursor);
      for (const event of page ? eventsOf(page) : []) {
        if (!fitsFilter(event, options)) continue;
        yield event;
        if (signal?.aborted) return;
      }
      cursor = page?.cursor ?? cursor;
      if (!page || page.events.length < PAGE) await this.#rest(signal);
    }
  }

  /** A store that fails is asked again after a rest. */
  async #look(cursor: string | null): Promise<EventPage | undefined> {
    try {
      return await this.#inspect.events(cursor, PAGE);
    } catch (error) {
      if (!this.#isClosed) this.#parts.storeFailed(error, "events");
      return undefined;
    }
  }

  #rest(signal: AbortSignal | undefined, longest = POLL): Promise<void> {
    const { system } = this.#parts;
    return new Promise((resolve) => {
      const end = () => {
        poll.cancel();
        soon?.cancel();
        this.#waiting.delete(wake);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      let soon: ReturnType<typeof system.after> | undefined;
      const wake = () => {
        if (this.#isClosed) end();
        else soon ??= system.after(SHORTEST, end, { keepAlive: true });
      };
      const poll = system.after(longest, end, { keepAlive: true });
      this.#waiting.add(wake);
      signal?.addEventListener("abort", end, { once: true });
      if (signal?.aborted || this.#isClosed) end();
    });
  }

  /** Something was committed somewhere. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#isClosed = true;
    this.wake();
  }

  get #inspect(): Inspector {
    return this.#parts.store.inspect;
  }
}

function eventsOf({ events, cursors }: EventPage): JournalEvent[] {
  return events.flatMap((body, index) => journalEvent(body, cursors[index] as string) ?? []);
}

function checkCursor(after: string | null): string | null {
  if (after === null || isEventCursor(after)) return after;
  throw refuse("invalid_option", "after", after, "pass the cursor of an event, or null to begin anew");
}

function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIMIT) return;
  throw refuse("invalid_limit", "limit", limit, `use a whole number from 1 to ${LIMIT}`);
}

function checkFilter({ types, queues, job }: EventFilter): void {
  for (const [field, list] of Object.entries({ types, queues })) {
    if (list === undefined) continue;
    if (!Array.isArray(list) || !list.every((name) => typeof name === "string" && name !== ""))
      throw refuse("invalid_option", field, list, "pass a list of names, or leave it out for all");
  }
  if (job !== undefined && typeof job !== "string")
    throw refuse("invalid_option", "job", job, "pass the id of a job");
}
