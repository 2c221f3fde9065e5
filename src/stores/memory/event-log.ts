import { type NewEvent, wholeEvent } from "../../core/event/new-event.ts";
import type { Instant } from "../../core/time.ts";
import type { EventPage } from "../../ports/store.ts";

interface LoggedEvent {
  readonly seq: number;
  readonly at: Instant;
  readonly body: NewEvent;
}

const EVENT_LIMIT = 100_000;
/**
 * How many of the oldest events are dropped at once. Moving the list for each new event would cost more than the
 * event.
 */
const DROPPED_AT_ONCE = 10_000;

/** Events in the order of their commits. Only the last ones are kept: nothing here outlives the process anyway. */
export class EventLog {
  #events: LoggedEvent[] = [];
  #lastSeq = 0;

  add(body: NewEvent, at: Instant): void {
    this.#lastSeq += 1;
    this.#events.push({ seq: this.#lastSeq, at, body });
    if (this.#events.length >= EVENT_LIMIT + DROPPED_AT_ONCE)
      this.#events.splice(0, this.#events.length - EVENT_LIMIT);
  }

  read(after: string | null, limit: number): EventPage {
    const start = this.#indexAfter(after === null ? 0 : Number(after));
    return pageOf(this.#events.slice(start, start + limit), after);
  }

  readLatest(limit: number, before?: string): EventPage {
    const end = before === undefined ? this.#events.length : this.#indexAfter(Number(before) - 1);
    return pageOf(this.#events.slice(Math.max(0, end - limit), end), null);
  }

  /** Clocks of callers differ a little, so events are not strictly in the order of `at`. Check each one. */
  prune(before: Instant, limit: number): number {
    let pruned = 0;
    this.#events = this.#events.filter(({ at }) => {
      if (at >= before || pruned === limit) return true;
      pruned += 1;
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

function pageOf(events: readonly LoggedEvent[], after: string | null): EventPage {
  const cursors = events.map(({ seq }) => seq.toString());
  return { events: events.map(({ body }) => wholeEvent(body)), cursors, cursor: cursors.at(-1) ?? after };
}
