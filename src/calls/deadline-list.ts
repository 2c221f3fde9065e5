import { DueHeap, type Slotted } from "../core/due-heap.ts";
import { captureContext } from "../ports/ambient.ts";
import type { System, Timer } from "../ports/system.ts";

/** Something that is woken at an instant. */
export abstract class Deadline implements Slotted {
  slot = -1;
  /** By the monotonic clock. */
  dueAt = 0;
  /** Of two deadlines at the same instant, the one set first is woken first. */
  order = 0;
  /** It is out of the heap and about to be woken, unless another deadline of the same instant clears or sets it. */
  isDue = false;
  abstract expire(): void;
}

/**
 * All deadlines of a process on one timer, because a timer per call would cost more than the call. The timer is set for
 * the earliest one. It is cancelled when nothing waits, since it keeps the process alive.
 */
export class DeadlineList {
  readonly #system: System;
  readonly #heap = new DueHeap<Deadline>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #orders = 0;
  /** The timer is armed by whichever call comes first. Its async context must not reach the other calls. */
  readonly #inOwnContext = captureContext();

  constructor(system: System) {
    this.#system = system;
  }

  get count(): number {
    return this.#heap.items.length;
  }

  /** Wakes the deadline at an instant of the monotonic clock, never before. */
  set(deadline: Deadline, dueAt: number): void {
    deadline.dueAt = dueAt;
    deadline.order = this.#orders++;
    deadline.isDue = false;
    this.#heap.add(deadline, dueAt);
    if (dueAt < this.#timerAt) this.#arm(dueAt);
  }

  clear(deadline: Deadline): void {
    deadline.isDue = false;
    if (deadline.slot < 0) return;
    this.#heap.remove(deadline);
    if (this.#heap.items.length === 0) this.#disarm();
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#timerAt = at;
    const delay = Math.max(0, at - this.#system.monotonic());
    this.#timer = this.#system.after(delay, () => this.#inOwnContext(() => this.#fire()), {
      keepAlive: true,
    });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const due = this.#heap.takeDue(this.#system.monotonic(), Number.POSITIVE_INFINITY);
    const nextAt = this.#heap.nextAt;
    if (nextAt !== null) this.#arm(nextAt);
    due.sort((a, b) => a.dueAt - b.dueAt || a.order - b.order);
    for (const deadline of due) deadline.isDue = true;
    for (const deadline of due) {
      if (!deadline.isDue) continue;
      deadline.isDue = false;
      deadline.expire();
    }
  }
}
