import type { StoredEvent } from "../../core/event/stored-event.ts";
import type { System, Timer } from "../../ports/system.ts";

interface Window {
  readonly timer: Timer;
  /** The newest event since the last recorded one; it stands for `count` events. */
  last: StoredEvent | undefined;
  count: number;
}

const WINDOW = 1_000;
/** At most this many keys are throttled. Events of further keys are recorded one by one. */
const MOST_WINDOWS = 10_000;

/**
 * Records events that may happen thousands of times a second: the first at once, then the newest once a second, with
 * the number of events that it stands for.
 */
export class EventThrottle {
  readonly #system: Pick<System, "after">;
  readonly #record: (event: StoredEvent) => void;
  readonly #windows = new Map<string, Window>();

  constructor(system: Pick<System, "after">, record: (event: StoredEvent) => void) {
    this.#system = system;
    this.#record = record;
  }

  add(key: string, event: StoredEvent): void {
    const window = this.#windows.get(key);
    if (window) {
      window.last = event;
      window.count += 1;
      return;
    }
    if (this.#windows.size < MOST_WINDOWS) this.#begin(key);
    this.#record(event);
  }

  #begin(key: string): void {
    const timer = this.#system.after(WINDOW, () => this.#next(key));
    this.#windows.set(key, { timer, last: undefined, count: 0 });
  }

  /** Records the newest event of the window; a window without events ends the throttling of its key. */
  #next(key: string): void {
    const window = this.#windows.get(key);
    this.#windows.delete(key);
    if (!window?.last) return;
    this.#begin(key);
    this.#record(counted(window));
  }

  /** Records the newest events of all windows. */
  flush(): void {
    const windows = [...this.#windows.values()];
    this.#windows.clear();
    for (const window of windows) {
      window.timer.cancel();
      if (window.last) this.#record(counted(window));
    }
  }
}

function counted({ last, count }: Window): StoredEvent {
  const event = last as StoredEvent;
  return { ...event, data: { ...event.data, count } };
}
