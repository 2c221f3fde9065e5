import { checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import {
  type EventFilter,
  fitsFilter,
  isEventCursor,
  type JournalEvent,
} from "../../core/event/journal-event.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { EventPage, Inspector, RecordKey } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { eventsAround, eventsOf, MARGIN } from "./events-around.ts";

export interface ReadOptions extends EventFilter {
  /** The cursor of an event: reads the events after it. Default: from the oldest stored event. */
  readonly after?: string | null;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number;
}

export interface LatestOptions extends EventFilter {
  /** Only events before the one with this cursor: `before` of the page of newer ones. */
  readonly before?: string | null;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number;
}

/** The newest events, and how far back they were looked for. */
export interface LatestPage extends JournalPage {
  /** Goes on with older events; null if there is none. */
  readonly before: string | null;
  /** When the oldest event happened that was read, matching or not; null if there was none. */
  readonly from: Instant | null;
}

export interface FollowOptions extends EventFilter {
  /**
   * Begins after this event; null begins with the oldest stored one. Default: after the newest event of the moment in which
   * the store answers. To miss nothing that you cause after the call, pass the `cursor` of `latest()`.
   */
  readonly after?: string | null;
  readonly signal?: AbortSignal;
}

export interface JournalPage {
  readonly events: readonly JournalEvent[];
  /** Continues after the last event that was read, matching or not; null if there was none. */
  readonly cursor: string | null;
  /** How many events were read. `latest` reads at most the newest 5,000. */
  readonly scanned: number;
  /** Whether there may be more events now. */
  readonly hasMore: boolean;
  /**
   * Whether newer events are committed that cannot be read yet, because an older transaction still runs. Read again
   * from `cursor`. Only on PostgreSQL, and only if that transaction runs for more than a second.
   */
  readonly isIncomplete: boolean;
}

/** Whether an engine records; without this option it follows the setting in the store. */
export type EventsOption = "off" | "durable";

const PAGE = 200;
const LIMIT = 1_000;
/** A read scans at most this many pages, so that a filter without matches ends. Its cursor continues from there. */
const MOST_PAGES = 50;
/** A filtered `latest` reads this many of the newest events. */
const LATEST = 5_000;
/** How often to poll without hints. With hints, reads are at least SHORTEST apart. */
const POLL = 250;
const SHORTEST = 10;
/** How long a read waits for committed events that a running transaction hides. */
const HIDDEN_WAIT = 1_000;
/** The pause between two such reads; the store itself polls during each. */
const HIDDEN_PAUSE = 50;
/** While this record exists, engines without an `events` option record. */
export const EVENTS_SETTING: RecordKey = ["setting", "events"];

/**
 * The stored stream of everything that happened to jobs, read by cursor. An event is written in the commit of its
 * change: no event is missing, and none describes a change that did not happen.
 */
export class EventJournal {
  readonly #context: EngineContext;
  /** The option of this engine; undefined if it follows the setting in the store. */
  #option: EventsOption | undefined;
  readonly #waiting = new Set<() => void>();
  #isClosed = false;

  constructor(context: EngineContext, option: EventsOption | undefined) {
    this.#context = context;
    this.#option = option;
  }

  /** Applies the option of this engine, or the setting in the store. */
  async open(): Promise<void> {
    if (this.#option === "durable") await this.turnOn();
    else await this.refresh();
  }

  get isOn(): boolean {
    return this.#context.recorder.isOn;
  }

  /** Turns recording on, here and in all engines on this store that were not opened with `events: "off"`. */
  async turnOn(): Promise<void> {
    if (this.#option === "off") {
      const fix = 'this engine was opened with it: leave events out, or open it with "durable"';
      throw refuse("invalid_option", "events", "off", fix);
    }
    this.#option = "durable";
    this.#context.recorder.setRecording(true);
    const [setting] = await this.#context.store.records.load([EVENTS_SETTING]);
    if (!setting)
      await this.#commit({ put: EVENTS_SETTING, body: { at: this.#context.clock.now() }, wakeAt: null });
  }

  /** Turns recording off: here at once, and within five seconds in all engines without an `events` option. */
  async turnOff(): Promise<void> {
    this.#option = "off";
    this.#context.recorder.setRecording(false);
    await this.#commit({ delete: EVENTS_SETTING });
  }

  /** Whether this engine has `events: "off"`, so that `turnOn` is refused. */
  get isForbidden(): boolean {
    return this.#option === "off";
  }

  async #commit(
    effect: { put: RecordKey; body: { at: number }; wakeAt: null } | { delete: RecordKey },
  ): Promise<void> {
    await commitUnits(this.#context, [{ effects: [effect] }]);
  }

  /** Reads the setting in the store, unless this engine has its own option. */
  async refresh(): Promise<void> {
    if (this.#option !== undefined) return;
    const [setting] = await this.#context.store.records.load([EVENTS_SETTING]);
    // turnOn or turnOff may have run during the read.
    if (this.#option === undefined)
      this.#context.recorder.setRecording(setting !== null && setting !== undefined);
  }

  /** Events after a cursor, in order. Events committed before the call are included, up to the limit. */
  async read(options: ReadOptions = {}): Promise<JournalPage> {
    refuseUnknownKeys(options, "read", ["after", "limit", "types", "queues", "job", "saga"]);
    checkFilter(options);
    const { limit = 100 } = options;
    const after = checkCursor(options.after ?? null);
    checkCount(limit, "limit", LIMIT);
    return this.#readOn(after, limit, options);
  }

  async #readOn(after: string | null, limit: number, filter: EventFilter): Promise<JournalPage> {
    let cursor = after;
    const events: JournalEvent[] = [];
    let scanned = 0;
    const waitUntil = this.#context.system.monotonic() + HIDDEN_WAIT;
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page = await this.#inspect.events(cursor, PAGE);
      const own = eventsOf(page).filter((event) => this.#isOwn(event));
      scanned += own.length;
      for (const event of own) {
        if (!fitsFilter(event, filter)) continue;
        events.push(event);
        if (events.length < limit) continue;
        const isLast = event.cursor === page.cursor && page.events.length < PAGE && !page.isIncomplete;
        return { events, cursor: event.cursor, scanned, hasMore: !isLast, isIncomplete: false };
      }
      cursor = page.cursor;
      if (page.events.length === PAGE) continue;
      const isIncomplete = page.isIncomplete ?? false;
      if (!isIncomplete || this.#context.system.monotonic() >= waitUntil)
        return { events, cursor, scanned, hasMore: false, isIncomplete };
      await this.#rest(undefined, HIDDEN_PAUSE);
    }
    return { events, cursor, scanned, hasMore: true, isIncomplete: false };
  }

  /** The newest matching events, oldest first, with the cursor to follow from and the one to look further back from. */
  async latest(options: LatestOptions = {}): Promise<LatestPage> {
    refuseUnknownKeys(options, "latest", ["before", "limit", "types", "queues", "job", "saga"]);
    checkFilter(options);
    const { limit = 100 } = options;
    const before = checkCursor(options.before ?? null, "before") ?? undefined;
    checkCount(limit, "limit", LIMIT);
    const page = await this.#newest(limit, options, before);
    if (!page.isIncomplete) return page;
    // Newer events are committed but hidden. Reading by cursor waits until they can be read.
    const newer = await this.#readOn(page.cursor, LIMIT, options);
    // More than one page became readable: read the newest again.
    if (newer.hasMore) return this.#newest(limit, options);
    const all = [...page.events, ...newer.events];
    const events = all.slice(-limit);
    const scanned = page.scanned + newer.scanned;
    return { ...page, ...newer, ...(events.length < all.length && reachOf(events)), scanned, events };
  }

  /**
   * The events of a job: those among the newest 5,000, and older ones around the instants that the job remembers. Between these
   * instants, events before `from` are not looked for: `before` is null if everything since its creation was.
   */
  async ofJob(row: JobRow): Promise<LatestPage> {
    const newest = await this.latest({ job: row.id, limit: LIMIT });
    const { before, from } = newest;
    if (before === null || (from !== null && from < row.createdAt - MARGIN))
      return { ...newest, before: null };
    const begins = { cursor: before, at: from ?? this.#context.clock.now() };
    const older = await eventsAround(this.#inspect, row, begins);
    const known = new Set(newest.events.map(({ cursor }) => cursor));
    return {
      ...newest,
      events: [...older.events.filter(({ cursor }) => !known.has(cursor)), ...newest.events],
      scanned: newest.scanned + older.scanned,
    };
  }

  /** The newest events that can be read now. */
  async #newest(limit: number, filter: EventFilter, before?: string): Promise<LatestPage> {
    const { types, queues, job, saga } = filter;
    const isAll = this.#context.tenant === null && (types ?? queues ?? job ?? saga) === undefined;
    let most = isAll ? limit : LATEST;
    let page = await this.#inspect.latestEvents(most, before);
    // Events of tenants may be among the newest.
    if (isAll && !eventsOf(page).every((event) => this.#isOwn(event))) {
      most = LATEST;
      page = await this.#inspect.latestEvents(most, before);
    }
    const all = eventsOf(page);
    const own = all.filter((event) => this.#isOwn(event));
    const found = own.filter((event) => fitsFilter(event, filter));
    const events = found.slice(-limit);
    const isWhole = events.length === found.length;
    const reach = reachOf(isWhole ? all : events);
    return {
      // When others did something is theirs.
      from: isWhole ? (own[0]?.at ?? null) : reach.from,
      before: page.events.length < most && isWhole ? null : (reach.before ?? page.cursors[0] ?? null),
      events,
      cursor: page.cursor,
      scanned: own.length,
      hasMore: false,
      isIncomplete: page.isIncomplete ?? false,
    };
  }

  /**
   * Events as they are committed by any process, until the signal aborts, the loop ends or the engine closes. Each
   * comes at least once and in order. To resume later, keep the cursor of the last one.
   */
  follow(options: FollowOptions = {}): AsyncGenerator<JournalEvent, void, undefined> {
    refuseUnknownKeys(options, "follow", ["after", "signal", "types", "queues", "job", "saga"]);
    checkFilter(options);
    const { after } = options;
    // Read the cursor now, not when the first event is asked for.
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
        if (!this.#isOwn(event) || !fitsFilter(event, options)) continue;
        yield event;
        if (signal?.aborted) return;
      }
      cursor = page?.cursor ?? cursor;
      if (!page || page.events.length < PAGE) await this.#rest(signal);
    }
  }

  /** Events of all tenants are in one stream, in the order of their commits. */
  #isOwn({ tenant }: JournalEvent): boolean {
    return (tenant ?? null) === this.#context.tenant;
  }

  /** Returns undefined if the store fails; the caller pauses and tries again. */
  async #look(cursor: string | null): Promise<EventPage | undefined> {
    try {
      return await this.#inspect.events(cursor, PAGE);
    } catch (error) {
      if (!this.#isClosed) this.#context.storeFailed(error, "events");
      return undefined;
    }
  }

  #rest(signal: AbortSignal | undefined, longest = POLL): Promise<void> {
    const { system } = this.#context;
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

  /** Whether a reader waits for events. */
  get isFollowed(): boolean {
    return this.#waiting.size > 0;
  }

  /** A process may have committed events. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#isClosed = true;
    this.wake();
  }

  get #inspect(): Inspector {
    return this.#context.store.inspect;
  }
}

/** How far back these events go. */
function reachOf([first]: readonly JournalEvent[]): Pick<LatestPage, "before" | "from"> {
  return { before: first?.cursor ?? null, from: first?.at ?? null };
}

function checkCursor(after: string | null, field = "after"): string | null {
  if (after === null || isEventCursor(after)) return after;
  throw refuse(
    "invalid_option",
    field,
    after,
    "pass the cursor of an event, or null for the oldest stored one",
  );
}

function checkFilter({ types, queues, job, saga }: EventFilter): void {
  for (const [field, list] of Object.entries({ types, queues })) {
    if (list === undefined) continue;
    if (!Array.isArray(list) || !list.every((name) => typeof name === "string" && name !== ""))
      throw refuse("invalid_option", field, list, "pass a list of names, or leave it out for all");
  }
  if (job !== undefined && typeof job !== "string")
    throw refuse("invalid_option", "job", job, "pass the id of a job");
  if (saga !== undefined && !(typeof saga?.type === "string" && typeof saga.id === "string"))
    throw refuse("invalid_option", "saga", saga, "pass { type, id }");
}
