import { type JournalEvent, journalEvent } from "../../core/event/journal-event.ts";
import type { EnqueueContext, NewJob } from "../../core/job/enqueue/envelope.ts";
import type { Instant } from "../../core/time.ts";
import { type Subscription, wants } from "../../core/webhook/subscription.ts";
import type { Effect, Unit } from "../../ports/store.ts";
import { changeRecord, commitUnits } from "../commit/commit.ts";
import { admission } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { wokenOnce } from "../enqueue/enqueue-batches.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";
import { DeliveryMaker, subjectOf } from "./delivery-jobs.ts";
import { CURSORS, LEADS, MOST_SUBSCRIPTIONS, WEBHOOKS, type WebhookCursor } from "./webhook-records.ts";

/** What makes deliveries out of payloads, and announces them once they are stored. */
export interface FollowerDeps {
  readonly context: () => EnqueueContext;
  readonly notice: (jobs: readonly NewJob[]) => void;
}

/** An event that waits for its batch, and its JSON text. */
interface Held {
  readonly event: JournalEvent;
  readonly text: string;
}

/** A page of the journal. */
interface ReadPage {
  /** With the text once a subscription wants it. */
  readonly events: readonly { readonly event: JournalEvent; held?: Held }[];
  readonly cursor: string | null;
  readonly isFull: boolean;
}

/** Where this process is in the journal for one subscription. */
interface Place {
  /** Everything up to here was read. */
  cursor: string | null;
  /** The cursor in the store, up to which deliveries are stored. */
  stored: string | null;
  /** Events that were read and are in no delivery yet. */
  held: Held[];
  /** When the cursor in the store was last written or read, by the monotonic clock. */
  storedAt: number;
}

/** Deliveries of one subscription that are stored with its cursor. */
interface Step {
  readonly id: string;
  readonly place: Place;
  readonly jobs: readonly NewJob[];
  readonly rest: Held[];
  readonly cursor: string | null;
  readonly unit: Unit;
}

const LEASE = 15_000;
const IDLE = 5_000;
const POLL = 1_000;
/** The shortest pause between two reads. Events that come meanwhile share a commit. */
const SHORTEST = 100;
const SUBSCRIPTIONS_EVERY = 1_000;
/** A page is one commit at most, which must not keep others from the store for long. */
const PAGE = 100;
/** A cursor without deliveries is stored this often: after a crash the journal is read again from there. */
const STORE_EVERY = 60_000;
/** Characters of the events of one delivery. */
const BATCH_SIZE = 256_000;
/** A call of the store ends with the subscription that reaches this many deliveries. */
const MOST_STORED = 100;
/** Events in memory that are in no delivery yet, of one subscription. */
const MOST_HELD = 500;
const LEAD = "journal";

/**
 * Reads the journal and makes a delivery of each event that a subscription wants. The deliveries and the cursor are
 * stored in one unit, guarded by the version of the cursor: a crash loses no event and repeats none, and of two
 * processes only one can store. A lease keeps the others from reading for nothing.
 */
export class WebhookFollower {
  readonly loop: Loop;
  readonly #context: EngineContext;
  readonly #host: FollowerDeps;
  readonly #owner: string;
  readonly #places = new Map<string, Place>();
  #subscriptions: ReadonlyMap<string, Subscription> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #leadsUntil: Instant = 0;
  /** When to ask for the lease again, by the monotonic clock. */
  #asksAt = Number.NEGATIVE_INFINITY;
  readonly #onFirst: () => void;
  #isWaking = false;

  /** `onFirst` is called with the first round that finds a subscription. */
  constructor(context: EngineContext, host: FollowerDeps, onFirst: () => void) {
    this.#onFirst = onFirst;
    this.#context = context;
    this.#host = host;
    this.#owner = context.nextId();
    this.loop = storeLoop(context, "webhooks", () => this.#round());
  }

  /** Events may have been committed. */
  wake(): void {
    if (this.#isWaking || this.#subscriptions.size === 0) return;
    this.#isWaking = true;
    this.#context.system.after(SHORTEST, () => {
      this.#isWaking = false;
      this.loop.wake();
    });
  }

  /** A subscription was changed in this process. */
  changed(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.loop.wake();
  }

  /** Active subscriptions, as this process last read them. */
  get active(): number {
    let count = 0;
    for (const { active } of this.#subscriptions.values()) if (active) count += 1;
    return count;
  }

  /** Lets another process lead at once. */
  async stop(): Promise<void> {
    await this.loop.stop();
    if (this.#leadsUntil === 0) return;
    this.#leadsUntil = 0;
    await changeRecord(this.#context, "webhooks", LEADS, LEAD, (lead) =>
      lead?.owner === this.#owner ? { body: null } : null,
    ).catch((error: unknown) => this.#context.storeFailed(error, "webhooks"));
  }

  async #round(): Promise<number> {
    const { idlePollFactor } = this.#context;
    await this.#readSubscriptions();
    if (this.#subscriptions.size === 0) return IDLE * idlePollFactor;
    this.#onFirst();
    if (!(await this.#lead())) {
      this.#places.clear();
      return Math.max(1, this.#asksAt - this.#context.system.monotonic());
    }
    const isBehind = await this.#follow();
    return isBehind ? 1 : this.#nextLook();
  }

  /** Rests until a batch is due at the latest. */
  #nextLook(): number {
    const now = this.#context.clock.now();
    let rest = POLL * this.#context.idlePollFactor;
    for (const [id, { held }] of this.#places) {
      const [first] = held;
      if (first) rest = Math.min(rest, Math.max(SHORTEST, first.event.at + this.#withinOf(id) - now));
    }
    return Math.min(rest, LEASE / 3);
  }

  #withinOf(id: string): number {
    return this.#subscriptions.get(id)?.batch.within ?? 0;
  }

  async #readSubscriptions(): Promise<void> {
    const { system, store } = this.#context;
    const at = system.monotonic();
    if (at - this.#readAt < SUBSCRIPTIONS_EVERY) return;
    const records = await WEBHOOKS.all(store, MOST_SUBSCRIPTIONS);
    this.#subscriptions = new Map([...records].map(([id, { body }]) => [id, body]));
    this.#readAt = at;
    for (const id of this.#places.keys()) if (!this.#subscriptions.has(id)) this.#places.delete(id);
  }

  /** Whether this process may read: it holds the lease, or has taken it. */
  async #lead(): Promise<boolean> {
    const now = this.#context.clock.now();
    if (this.#leadsUntil - now > LEASE / 2) return true;
    const at = this.#context.system.monotonic();
    if (at < this.#asksAt) return false;
    const taken = await changeRecord(this.#context, "webhooks", LEADS, LEAD, (lead) =>
      lead && lead.owner !== this.#owner && lead.until > now
        ? null
        : { body: { owner: this.#owner, until: now + LEASE } },
    );
    this.#leadsUntil = taken ? now + LEASE : 0;
    this.#asksAt = taken ? Number.NEGATIVE_INFINITY : at + IDLE;
    return taken !== null;
  }

  /** Reads one page for each place, and stores the deliveries. True if there is more to read. */
  async #follow(): Promise<boolean> {
    await this.#loadPlaces();
    const pages = new Map<string | null, ReadPage>();
    let isBehind = false;
    const due: string[] = [];
    for (const [id, place] of this.#places) {
      // After failed commits: store those first.
      if (place.held.length < MOST_HELD) {
        const page = pages.get(place.cursor) ?? (await this.#read(place.cursor));
        pages.set(place.cursor, page);
        isBehind ||= page.isFull;
        this.#take(id, place, page);
      }
      if (this.#isDue(id, place)) due.push(id);
    }
    if (due.length > 0) await this.#store(due);
    return isBehind;
  }

  /** Subscriptions at the same place share what is read, and the text of each event. */
  async #read(from: string | null): Promise<ReadPage> {
    const { events, cursors, cursor } = await this.#context.store.inspect.events(from, PAGE);
    const read = events.flatMap((body, index) => {
      const event = journalEvent(body, cursors[index] as string);
      return event ? [{ event }] : [];
    });
    return { events: read, cursor, isFull: events.length === PAGE };
  }

  /** Reads the cursors of subscriptions that are new here. */
  async #loadPlaces(): Promise<void> {
    const { store, system } = this.#context;
    const missing = [...this.#subscriptions.keys()].filter((id) => !this.#places.has(id));
    if (missing.length === 0) return;
    const rows = await store.records.load(missing.map((id) => CURSORS.key(id)));
    for (const [index, id] of missing.entries()) {
      const row = rows[index];
      if (!row) continue;
      const { cursor } = CURSORS.read(row).body;
      this.#places.set(id, { cursor, stored: cursor, held: [], storedAt: system.monotonic() });
    }
  }

  #take(id: string, place: Place, { events, cursor }: ReadPage): void {
    const subscription = this.#subscriptions.get(id);
    if (!subscription?.active) place.held = [];
    else
      for (const read of events) {
        if (!wants(subscription, read.event)) continue;
        read.held ??= { event: read.event, text: JSON.stringify(read.event) };
        place.held.push(read.held);
      }
    place.cursor = cursor;
  }

  /** Whether there is something to store now: a delivery, or a cursor that has moved for long. */
  #isDue(id: string, place: Place): boolean {
    const { clock, system } = this.#context;
    const { size, within } = this.#subscriptions.get(id)?.batch ?? { size: 1, within: 0 };
    const [first] = place.held;
    if (!first) return place.cursor !== place.stored && system.monotonic() - place.storedAt > STORE_EVERY;
    return place.held.length >= size || clock.now() >= first.event.at + within;
  }

  /** Subscriptions share calls of the store, up to a number of deliveries: a long call would hold up others. */
  async #store(ids: readonly string[]): Promise<void> {
    const rows = await this.#context.store.records.load(ids.map((id) => CURSORS.key(id)));
    let steps: Step[] = [];
    let size = 0;
    for (const [index, id] of ids.entries()) {
      const row = rows[index];
      const place = this.#places.get(id) as Place;
      const record = row && CURSORS.read(row);
      // It was deleted, or another process has stored deliveries: begin again where the store is.
      if (!record || record.body.cursor !== place.stored) this.#places.delete(id);
      else {
        const step = this.#stepOf(id, place, record);
        steps.push(step);
        size += step.jobs.length;
      }
      if (size < MOST_STORED) continue;
      await this.#commit(steps);
      [steps, size] = [[], 0];
    }
    await this.#commit(steps);
  }

  #stepOf(
    id: string,
    place: Place,
    { version, body }: { readonly version: number; readonly body: WebhookCursor },
  ): Step {
    // Later than those of a process whose clock is ahead: deliveries run in the order of their time.
    const at = Math.max(this.#context.clock.now(), body.at + 1);
    const { jobs, rest, last } = this.#deliveries(id, place, at);
    const cursor = rest.length === 0 ? place.cursor : (last?.cursor ?? place.stored);
    const effects: Effect[] = [CURSORS.put(id, { cursor, at: jobs.length > 0 ? at : body.at }, null)];
    for (const job of wokenOnce(jobs)) effects.push({ enqueue: job });
    for (const job of new Map(jobs.map((each) => [each.limitKey, each])).values())
      effects.push(admission({ limitKey: job.limitKey as string, options: job.options }));
    return { id, place, jobs, rest, cursor, unit: { when: [CURSORS.guard(id, version)], effects } };
  }

  async #commit(steps: readonly Step[]): Promise<void> {
    const outcomes = await commitUnits(
      this.#context,
      steps.map(({ unit }) => unit),
    );
    for (const [index, { id, place, jobs, rest, cursor }] of steps.entries()) {
      if (!outcomes[index]?.ok) {
        this.#places.delete(id);
        continue;
      }
      place.stored = cursor;
      place.storedAt = this.#context.system.monotonic();
      place.held = rest;
      if (jobs.length > 0) this.#host.notice(jobs);
    }
  }

  /** The deliveries of the held events. A batch that is neither full nor due stays. */
  #deliveries(id: string, { held }: Place, at: Instant) {
    const subscription = this.#subscriptions.get(id) as Subscription;
    const { size, within } = subscription.batch;
    const maker = new DeliveryMaker(id, subscription, this.#host.context(), at);
    const jobs: NewJob[] = [];
    let [from, last] = [0, undefined as JournalEvent | undefined];
    while (from < held.length) {
      const some = nextBatch(held, from, size);
      const first = held[from] as Held;
      const isWhole = some.length === size || from + some.length < held.length;
      if (!isWhole && at < first.event.at + within) break;
      jobs.push(
        maker.make(
          subjectOf(first.event),
          some.map(({ text }) => text),
        ),
      );
      from += some.length;
      last = (some.at(-1) as Held).event;
    }
    return { jobs, rest: held.slice(from), last };
  }
}

/** The next events that fit into one delivery: at least one. */
function nextBatch(held: readonly Held[], from: number, size: number): readonly Held[] {
  let text = 0;
  for (let index = from; index < held.length && index - from < size; index++) {
    text += (held[index] as Held).text.length;
    if (text > BATCH_SIZE && index > from) return held.slice(from, index);
  }
  return held.slice(from, from + size);
}
