import { type EventFilter, fitsFilter, type JournalEvent } from "../core/event/journal-event.ts";
import type { Engine } from "../engine/engine.ts";
import type { Logger } from "../ports/log.ts";
import type { System, Timer } from "../ports/system.ts";

/** Whoever reads along. `push` says false once it cannot take more. */
export interface Reader {
  push(bytes: Uint8Array): boolean;
  end(): void;
}

/** What is read along, and how it is written. */
export interface Feed {
  /** Feeds of one name write the same of the same event. */
  readonly name: string;
  readonly filter: EventFilter;
  frame(event: JournalEvent): string;
  /** Whether nothing can follow this event: its readers are sent it and let go. */
  isLast?(event: JournalEvent): boolean;
  /** What its readers are sent every few seconds beside the events. */
  snapshot?(): Promise<string>;
}

interface Subscription {
  readonly channel: Channel;
  readonly reader: Reader;
  /** While it catches up: what happens meanwhile, to follow on what it has missed. Undefined once it reads along. */
  meanwhile: JournalEvent[] | undefined;
  /**
   * It has caught up, but the others may be told later than it has read: these it has read already. It reads along from
   * the first event that is not among them.
   */
  known?: ReadonlySet<string> | undefined;
}

interface Channel {
  readonly feed: Feed;
  readonly readers: Set<Subscription>;
  /** What its readers have not been sent yet: put into text once, however many there are. */
  pending: JournalEvent[];
  /** How many events were left out, because there was more than its readers can be sent. */
  missed: number;
  pulsing: Timer | undefined;
  /** What was last sent by itself: whoever comes now has it at once. */
  pulsed: Uint8Array | undefined;
}

/** Readers are written to together, at most this often. */
const SHORTEST_WAIT = 20;
/** What a write to one reader takes in milliseconds, and what a byte of it does; measured, and rather too much. */
const COST = { reader: 0.1, byte: 1e-5 };
/** However many read along, and however much there is to tell, that takes no more than this share of the time. */
const SHARE = 0.03;
const BEAT_EVERY = 15_000;
const PULSE_EVERY = 3_000;
const BEAT = encode(": beat\n\n");
const MOST_READERS = 5_000;
const PAGE = 500;
/** Somebody who is so far behind that this many pages do not reach the present reads by cursor instead. */
const MOST_PAGES = 200;
/** The most events that the readers of a channel are sent at once. What is older is left out, and that is said. */
const MOST_PENDING = 100;
/** The most events that all readers of a channel together are sent at once, if that leaves each of them a few. */
const MOST_SENT = 10_000;
const FEW = 10;
/** How many events those who follow may be behind those who look before somebody is sent an event twice. */
const MOST_KNOWN = 200;

/**
 * Live events for many readers. One look at the journal serves all of them; those who want the same share their texts, and
 * are written to together, the less often the more it costs: a thousand readers must not slow the jobs that they watch.
 * Where more happens than they can be sent in their share of the time, they are told how much was left out.
 */
export class EventHub {
  readonly #engine: Engine;
  readonly #system: System;
  readonly #logger: Logger;
  readonly #channels = new Map<string, Channel>();
  readonly #everybody = new Set<Subscription>();
  readonly #pulses = new Map<string, { readonly at: number; readonly bytes: Promise<Uint8Array> }>();
  #following: AbortController | undefined;
  #flushing: Timer | undefined;
  /** The readers' share of the time is used up until then. */
  #restsUntil = 0;
  #beating: Timer | undefined;
  #isClosed = false;

  constructor(engine: Engine, system: System, logger: Logger) {
    this.#engine = engine;
    this.#system = system;
    this.#logger = logger;
  }

  get isFull(): boolean {
    return this.#isClosed || this.#everybody.size >= MOST_READERS;
  }

  /** Sends events from now on, or from behind a cursor on. Answers the function that ends it. */
  subscribe(feed: Feed, after: string | null | undefined, reader: Reader): () => void {
    const channel = this.#channelOf(feed);
    const subscription: Subscription = { channel, reader, meanwhile: after === undefined ? undefined : [] };
    channel.readers.add(subscription);
    this.#everybody.add(subscription);
    this.#following ??= this.#follow();
    this.#beating ??= this.#system.after(BEAT_EVERY, () => this.#beat());
    if (channel.pulsed) this.#send(subscription, channel.pulsed);
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
      pulsing: undefined,
      pulsed: undefined,
    };
    this.#channels.set(key, channel);
    if (feed.snapshot) void this.#pulse(channel, feed.snapshot);
    return channel;
  }

  /** However many read along, and whatever they choose of the events, it is made once. */
  #pulseOf(name: string, snapshot: NonNullable<Feed["snapshot"]>): Promise<Uint8Array> {
    const now = this.#system.monotonic();
    const known = this.#pulses.get(name);
    if (known && now - known.at < PULSE_EVERY / 2) return known.bytes;
    const bytes = snapshot().then(encode);
    this.#pulses.set(name, { at: now, bytes });
    return bytes;
  }

  async #pulse(channel: Channel, snapshot: NonNullable<Feed["snapshot"]>): Promise<void> {
    try {
      channel.pulsed = await this.#pulseOf(channel.feed.name, snapshot);
    } catch (error) {
      this.#logger.error({ error, feed: channel.feed.name }, "readers could not be told how things stand");
    }
    const { pulsed, readers } = channel;
    if (pulsed) for (const subscription of [...readers]) this.#send(subscription, pulsed);
    if (readers.size === 0) return;
    channel.pulsing = this.#system.after(PULSE_EVERY, () => void this.#pulse(channel, snapshot));
  }

  #leave(subscription: Subscription): void {
    const { channel } = subscription;
    this.#everybody.delete(subscription);
    channel.readers.delete(subscription);
    if (channel.readers.size === 0) {
      channel.pulsing?.cancel();
      for (const [key, each] of this.#channels) if (each === channel) this.#channels.delete(key);
    }
    if (this.#everybody.size > 0) return;
    this.#following?.abort();
    this.#following = undefined;
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
      this.#logger.error({ error }, "live events ended; readers are asked to come again");
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

  /** Before an event is told on a channel: whoever catches up keeps it for later, whoever has caught up may join the others. */
  #letJoin(channel: Channel, event: JournalEvent): void {
    const joining: Subscription[] = [];
    for (const subscription of channel.readers) {
      if (!subscription.known) subscription.meanwhile?.push(event);
      else if (!subscription.known.has(event.cursor)) joining.push(subscription);
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

  /** Answers how long it may take, all of it. */
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

  /** One that cannot keep up is let go: it comes back with the id of the last event that it has read. */
  #send(subscription: Subscription, bytes: Uint8Array): boolean {
    if (subscription.reader.push(bytes)) return true;
    this.#dismiss(subscription);
    return false;
  }

  #dismiss(subscription: Subscription): void {
    this.#leave(subscription);
    subscription.reader.end();
  }

  /** Reads from the journal what it has missed, and goes on with the others. */
  async #catchUp(subscription: Subscription, from: string | null): Promise<void> {
    const { filter, frame } = subscription.channel.feed;
    let after = from;
    try {
      for (let pages = 0; pages < MOST_PAGES; pages++) {
        // What was told before this look is in it; what is told while it is under way may be, or may not.
        subscription.meanwhile = [];
        const page = await this.#engine.journal.read({ ...filter, after, limit: PAGE });
        if (!this.#everybody.has(subscription)) return;
        after = page.cursor ?? after;
        const text = page.events.map(frame).join("");
        if (text !== "" && !this.#send(subscription, encode(text))) return;
        if (page.hasMore) continue;
        this.#readAlong(subscription, new Set(page.events.slice(-MOST_KNOWN).map(({ cursor }) => cursor)));
        return;
      }
    } catch (error) {
      this.#logger.error({ error }, "a reader of live events could not be given what it missed");
    }
    this.#dismiss(subscription);
  }

  /** Nothing is awaited here, so that no event comes in between. */
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

  /** Comments keep proxies from cutting a line on which nothing happens. */
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
    for (const subscription of [...this.#everybody]) this.#dismiss(subscription);
  }
}

/** Told in its place, so that whoever must have all of them reads on from the last id by cursor. */
function gapOf(missed: number): string {
  return missed === 0 ? "" : `event: stream.gap\ndata: ${JSON.stringify({ missed })}\n\n`;
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
