import { type EventFilter, fitsFilter, type JournalEvent } from "../../core/event/journal-event.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Logger } from "../../ports/log.ts";
import type { System, Timer } from "../../ports/system.ts";

/** A reader of live events. `push` returns false once it cannot take more. */
export interface Reader {
  push(bytes: Uint8Array): boolean;
  end(): void;
}

/** A kind of stream: which events it has, and their text. */
export interface Feed {
  /** Feeds of one name write the same text for an event. */
  readonly name: string;
  /** An empty list of `types` wants no event: such a feed has only its snapshots. */
  readonly filter: EventFilter;
  frame(event: JournalEvent): string;
  /** Whether this event is the last one: the stream ends after it. */
  isLast?(event: JournalEvent): boolean;
  /** A frame that is sent every few seconds beside the events. */
  snapshot?(): Promise<string>;
}

interface Subscription {
  readonly channel: Channel;
  readonly reader: Reader;
  /** Events that arrive while the reader catches up. Undefined once it is live. */
  meanwhile: JournalEvent[] | undefined;
  /** The journal is being read for it: events that arrive now may be missing from that read. */
  isReading: boolean;
  /**
   * Cursors of the last events that a caught-up reader has read. The live feed may still be behind them: the reader is
   * live from the first event that is not among them.
   */
  known?: ReadonlySet<string> | undefined;
}

interface Channel {
  readonly feed: Feed;
  readonly readers: Set<Subscription>;
  /** Events that wait for the next flush. Their text is built once for all readers. */
  pending: JournalEvent[];
  /** Events that were dropped, because there were more than the readers' share allows. */
  missed: number;
  snapshotTimer: Timer | undefined;
  /** The last snapshot. A new reader gets it at once. */
  lastSnapshot: Uint8Array | undefined;
}

/** The shortest time between two flushes, in milliseconds. */
const SHORTEST_WAIT = 20;
/** Milliseconds of a write to one reader, and of each byte; measured, rounded up. */
const COST = { reader: 0.1, byte: 1e-5 };
/** The share of the time that readers may take. */
const SHARE = 0.03;
const BEAT_EVERY = 15_000;
const SNAPSHOT_EVERY = 3_000;
const BEAT = encode(": beat\n\n");
/** The share of the time for readers that catch up, and the milliseconds of one event that is read for them. */
const CATCH_UP_SHARE = 0.1;
const READ_COST = 0.01;
const MOST_READERS = 5_000;
const PAGE = 500;
/** A reader that needs more pages to catch up is dismissed: it should read by cursor. */
const MOST_PAGES = 200;
/** The most events per flush of a channel. Older ones are dropped, and a gap frame says how many. */
const MOST_PENDING = 100;
/** The most events per flush, summed over the readers of a channel; each gets at least `FEW`. */
const MOST_SENT = 10_000;
const FEW = 10;
/** How many events the live feed may lag behind a caught-up reader before one is sent twice. */
const MOST_KNOWN = 200;

/**
 * Live events for many readers. One follower of the journal serves all. Readers of the same feed share its text and are
 * written to together. The more a flush costs, the longer the wait for the next, so that a thousand readers do not slow the
 * jobs that they watch. Events beyond the readers' share are dropped, and a gap frame says how many.
 */
export class EventHub {
  readonly #engine: Engine;
  readonly #system: System;
  readonly #logger: Logger;
  readonly #channels = new Map<string, Channel>();
  readonly #everybody = new Set<Subscription>();
  readonly #snapshots = new Map<string, { readonly at: number; readonly bytes: Promise<Uint8Array> }>();
  #following: AbortController | undefined;
  #flushing: Timer | undefined;
  /** The readers have used up their share of the time until this instant. */
  #restsUntil = 0;
  #beating: Timer | undefined;
  /** Readers catch up one page at a time, each after the one before. */
  #catchUps: Promise<unknown> = Promise.resolve();
  #catchUpFrom = 0;
  #catchUpTimer: Timer | undefined;
  #isClosed = false;

  constructor(engine: Engine, system: System, logger: Logger) {
    this.#engine = engine;
    this.#system = system;
    this.#logger = logger;
  }

  get isFull(): boolean {
    return this.#isClosed || this.#everybody.size >= MOST_READERS;
  }

  /** Sends events from now on, or after a cursor. Returns the function that ends it. */
  subscribe(feed: Feed, after: string | null | undefined, reader: Reader): () => void {
    const channel = this.#channelOf(feed);
    const meanwhile = after === undefined ? undefined : [];
    const subscription: Subscription = { channel, reader, meanwhile, isReading: false };
    channel.readers.add(subscription);
    this.#everybody.add(subscription);
    if (wantsEvents(feed)) this.#following ??= this.#follow();
    this.#beating ??= this.#system.after(BEAT_EVERY, () => this.#beat());
    if (channel.lastSnapshot) this.#send(subscription, channel.lastSnapshot);
    if (after !== undefined) void this.#catchUp(subscription, after);
    return () => this.#leave(subscription);
  }

  #channelOf(feed: Feed): Channel {
    const { types, queues, job } = feed.filter;
    const key = JSON.stringify([feed.name, types, queues, job]);
    const known = this.#channels.get(key);
    if (known) return known;
    const channel: Channel = {
      feed,
      readers: new Set(),
      pending: [],
      missed: 0,
      snapshotTimer: undefined,
      lastSnapshot: undefined,
    };
    this.#channels.set(key, channel);
    if (feed.snapshot) void this.#sendSnapshot(channel, feed.snapshot);
    return channel;
  }

  /** A snapshot is made once for all readers. */
  #snapshotOf(name: string, snapshot: NonNullable<Feed["snapshot"]>): Promise<Uint8Array> {
    const now = this.#system.monotonic();
    const known = this.#snapshots.get(name);
    if (known && now - known.at < SNAPSHOT_EVERY / 2) return known.bytes;
    const bytes = snapshot().then(encode);
    this.#snapshots.set(name, { at: now, bytes });
    return bytes;
  }

  async #sendSnapshot(channel: Channel, snapshot: NonNullable<Feed["snapshot"]>): Promise<void> {
    try {
      channel.lastSnapshot = await this.#snapshotOf(channel.feed.name, snapshot);
    } catch (error) {
      this.#logger.error(
        { error, feed: channel.feed.name },
        "could not send the current snapshot to readers",
      );
    }
    const { lastSnapshot, readers } = channel;
    if (lastSnapshot) for (const subscription of [...readers]) this.#send(subscription, lastSnapshot);
    if (readers.size === 0) return;
    channel.snapshotTimer = this.#system.after(
      SNAPSHOT_EVERY,
      () => void this.#sendSnapshot(channel, snapshot),
    );
  }

  #leave(subscription: Subscription): void {
    const { channel } = subscription;
    this.#everybody.delete(subscription);
    channel.readers.delete(subscription);
    if (channel.readers.size === 0) {
      channel.snapshotTimer?.cancel();
      for (const [key, each] of this.#channels) if (each === channel) this.#channels.delete(key);
    }
    // Reading every event for nobody costs more than all else that an open dashboard does.
    if (![...this.#channels.values()].some(({ feed }) => wantsEvents(feed))) {
      this.#following?.abort();
      this.#following = undefined;
    }
    if (this.#everybody.size > 0) return;
    this.#beating?.cancel();
    this.#beating = undefined;
  }

  #follow(): AbortController {
    const controller = new AbortController();
    void this.#run(controller.signal);
    return controller;
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      for await (const event of this.#engine.journal.follow({ signal })) {
        this.#tell(event);
      }
    } catch (error) {
      this.#logger.error({ error }, "live events failed; all readers must reconnect");
      this.#hangUp();
    }
  }

  #tell(event: JournalEvent): void {
    let isWanted = false;
    for (const channel of this.#channels.values()) {
      if (!fitsFilter(event, channel.feed.filter)) continue;
      isWanted = true;
      this.#letJoin(channel, event);
      channel.pending.push(event);
      if (channel.pending.length < 2 * MOST_PENDING) continue;
      channel.missed += MOST_PENDING;
      channel.pending.splice(0, MOST_PENDING);
    }
    if (!isWanted) return;
    const wait = Math.max(SHORTEST_WAIT, this.#restsUntil - this.#system.monotonic());
    this.#flushing ??= this.#system.after(wait, () => this.#flush());
  }

  /** A reader that catches up keeps the event for later. A reader that has caught up goes live if the event is new to it. */
  #letJoin(channel: Channel, event: JournalEvent): void {
    const joining: Subscription[] = [];
    for (const subscription of channel.readers) {
      if (!subscription.known) {
        if (subscription.isReading) subscription.meanwhile?.push(event);
      } else if (!subscription.known.has(event.cursor)) joining.push(subscription);
    }
    if (joining.length === 0) return;
    this.#flushOne(channel);
    for (const subscription of joining) {
      subscription.known = undefined;
      subscription.meanwhile = undefined;
    }
  }

  #flush(): void {
    this.#flushing = undefined;
    let cost = 0;
    for (const channel of this.#channels.values()) cost += this.#flushOne(channel);
    this.#restsUntil = this.#system.monotonic() + cost / SHARE;
  }

  /** Returns the estimated cost in milliseconds. */
  #flushOne(channel: Channel): number {
    if (channel.pending.length === 0) return 0;
    const share = Math.floor(MOST_SENT / channel.readers.size);
    const kept = channel.pending.slice(-Math.min(MOST_PENDING, Math.max(FEW, share)));
    const missed = channel.missed + channel.pending.length - kept.length;
    Object.assign(channel, { pending: [], missed: 0 });
    const bytes = encode(gapOf(missed) + kept.map((event) => channel.feed.frame(event)).join(""));
    const isOver = kept.some((event) => channel.feed.isLast?.(event));
    let sent = 0;
    for (const subscription of channel.readers) {
      if (subscription.meanwhile || !this.#send(subscription, bytes)) continue;
      sent += 1;
      if (isOver) this.#dismiss(subscription);
    }
    return sent * (COST.reader + bytes.length * COST.byte);
  }

  /** Dismisses a reader that cannot keep up: it reconnects with the id of the last event that it has read. */
  #send(subscription: Subscription, bytes: Uint8Array): boolean {
    if (subscription.reader.push(bytes)) return true;
    this.#dismiss(subscription);
    return false;
  }

  #dismiss(subscription: Subscription): void {
    this.#leave(subscription);
    subscription.reader.end();
  }

  /** Sends the events after a cursor from the journal, then goes live. */
  async #catchUp(subscription: Subscription, from: string | null): Promise<void> {
    let after: string | null | undefined = from;
    try {
      for (let pages = 0; pages < MOST_PAGES; pages++) {
        const last: string | null = after;
        const step: Promise<string | null | undefined> = this.#catchUps.then(() =>
          this.#catchUpPage(subscription, last),
        );
        this.#catchUps = step.catch(() => {});
        after = await step;
        if (after === undefined) return;
      }
    } catch (error) {
      this.#logger.error({ error }, "could not send missed events to a reader");
    }
    this.#dismiss(subscription);
  }

  /** Sends one page, charged to the share of catch-ups. Returns its cursor, or undefined if no page follows. */
  async #catchUpPage(subscription: Subscription, after: string | null): Promise<string | null | undefined> {
    const wait = this.#catchUpFrom - this.#system.monotonic();
    if (wait > 0)
      await new Promise<void>((resolve) => {
        this.#catchUpTimer = this.#system.after(wait, resolve);
      });
    if (!this.#everybody.has(subscription)) return undefined;
    const { filter, frame } = subscription.channel.feed;
    const from = this.#system.monotonic();
    // Events that were announced before this read are in it. Events that arrive during the read may be in it.
    Object.assign(subscription, { meanwhile: [], isReading: true });
    const page = await this.#engine.journal.read({ ...filter, after, limit: PAGE });
    if (page.hasMore) subscription.isReading = false;
    if (!this.#everybody.has(subscription)) return undefined;
    const text = page.events.map(frame).join("");
    const cost = COST.reader + page.scanned * READ_COST + text.length * COST.byte;
    const isSent = text === "" || this.#send(subscription, encode(text));
    const elapsed = this.#system.monotonic() - from;
    this.#catchUpFrom = from + Math.max(cost, elapsed) / CATCH_UP_SHARE;
    if (!isSent) return undefined;
    if (page.hasMore) return page.cursor ?? after;
    this.#readAlong(subscription, new Set(page.events.slice(-MOST_KNOWN).map(({ cursor }) => cursor)));
    return undefined;
  }

  /** Synchronous, so that no event comes in between. */
  #readAlong(subscription: Subscription, known: ReadonlySet<string>): void {
    const news = (subscription.meanwhile ?? []).filter(({ cursor }) => !known.has(cursor));
    if (news.length === 0) {
      subscription.known = known;
      return;
    }
    this.#flushOne(subscription.channel);
    const text = news.map(subscription.channel.feed.frame).join("");
    if (this.#send(subscription, encode(text))) subscription.meanwhile = undefined;
  }

  /** Comments keep proxies from closing a silent stream. */
  #beat(): void {
    this.#beating = this.#system.after(BEAT_EVERY, () => this.#beat());
    for (const subscription of this.#everybody) this.#send(subscription, BEAT);
  }

  close(): void {
    this.#isClosed = true;
    this.#hangUp();
  }

  #hangUp(): void {
    this.#flushing?.cancel();
    this.#flushing = undefined;
    this.#catchUpTimer?.cancel();
    for (const subscription of [...this.#everybody]) this.#dismiss(subscription);
  }
}

const wantsEvents = ({ filter }: Feed): boolean => filter.types?.length !== 0;

/** Stands where events were dropped. A reader that needs them reads by cursor from its last id. */
function gapOf(missed: number): string {
  return missed === 0 ? "" : `event: stream.gap\ndata: ${JSON.stringify({ missed })}\n\n`;
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
