import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";

interface LoggedEvent {
  readonly seq: number;
  readonly at: Instant;
  readonly body: Json;
}

/** A list counts as many events as it holds: a server writes its events by the handful. */
const EVENT_LIMIT = 100_000;
/** The oldest events are dropped so many at a time: moving the whole list for each new event would cost more than the event. */
const DROPPED_AT_ONCE = 10_000;

function countOf(body: Json): number {
  return Array.isArray(body) ? Math.max(1, body.length) : 1;
}

/** Events in the order of their commits; without durability there is no use for more than the last ones. */
export class EventLog {
  #events: LoggedEvent[] = [];
  #lastSeq = 0;
  #count = 0;

  add(body: Json, at: Instant): void {
    this.#lastSeq += 1;
    this.#events.push({ seq: this.#lastSeq, at, body });
    this.#count += countOf(body);
    if (this.#count >= EVENT_LIMIT + DROPPED_AT_ONCE) this.#dropOldest();
  }

  #dropOldest(): void {
    let dropped = 0;
    while (this.#count > EVENT_LIMIT) {
      this.#count -= countOf((this.#events[dropped] as LoggedEvent).body);
      dropped += 1;
    }
    this.#events.splice(0, dropped);
  }

  read(after: string | null, limit: number): { events: Json[]; cursor: string | null } {
    const start = this.#indexAfter(after === null ? 0 : Number(after));
    const page = this.#events.slice(start, start + limit);
    return { events: page.map(({ body }) => body), cursor: page.at(-1)?.seq.toString() ?? after };
  }

  readLatest(limit: number): { events: Json[]; cursor: string | null } {
    const page = this.#events.slice(-limit);
    return { events: page.map(({ body }) => body), cursor: page.at(-1)?.seq.toString() ?? null };
  }

  /** Callers' clocks differ a little, so events are not strictly in the order of `at`, and each is looked at. */
  prune(before: Instant, limit: number): number {
    let pruned = 0;
    this.#events = this.#events.filter(({ at, body }) => {
      if (at >= before || pruned === limit) return true;
      pruned += 1;
      this.#count -= countOf(body);
      return false;
    });
    return pruned;
  }

  #indexAfter(seq: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle] as LoggedEvent).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
