import type { StoredEvent } from "../../core/event/stored-event.ts";
import type { System, Timer } from "../../ports/system.ts";

interface Turn {
  readonly timer: Timer;
  /** What happened since the last one was told; the newest of it stands for all. */
  last: StoredEvent | undefined;
  count: number;
}

const TOLD_EVERY = 1_000;
/** Beyond them every event is told at once: whoever has so many queues at their bounds has other worries. */
const MOST_TURNS = 10_000;

/**
 * Tells of what may happen thousands of times a second: of the first at once, and then once a second of the newest, with
 * how many it stands for.
 */
export class Often {
  readonly #system: Pick<System, "after">;
  readonly #tell: (event: StoredEvent) => void;
  readonly #turns = new Map<string, Turn>();

  constructor(system: Pick<System, "after">, tell: (event: StoredEvent) => void) {
    this.#system = system;
    this.#tell = tell;
  }

  add(key: string, event: StoredEvent): void {
    const turn = this.#turns.get(key);
    if (turn) {
      turn.last = event;
      turn.count += 1;
      return;
    }
    if (this.#turns.size < MOST_TURNS) this.#begin(key);
    this.#tell(event);
  }

  #begin(key: string): void {
    const timer = this.#system.after(TOLD_EVERY, () => this.#next(key));
    this.#turns.set(key, { timer, last: undefined, count: 0 });
  }

  /** A second in which nothing happened ends the turn. */
  #next(key: string): void {
    const turn = this.#turns.get(key);
    this.#turns.delete(key);
    if (!turn?.last) return;
    this.#begin(key);
    this.#tell(counted(turn));
  }

  /** Tells what is left, and holds nothing back any more. */
  flush(): void {
    const turns = [...this.#turns.values()];
    this.#turns.clear();
    for (const turn of turns) {
      turn.timer.cancel();
      if (turn.last) this.#tell(counted(turn));
    }
  }
}

function counted({ last, count }: Turn): StoredEvent {
  const event = last as StoredEvent;
  return { ...event, data: { ...event.data, count } };
}
