import type { Home } from "../../core/home/cell.ts";

/** Queues whose homes are remembered. A queue that is forgotten costs a claim more visits, nothing else. */
const MOST_QUEUES = 10_000;

/**
 * Which homes claims visit: those that a hint or a look named, or that gave a full batch. Where none is known, and while
 * nobody listens for hints, all are visited. So a claim costs as many calls as homes have jobs, whatever the number of
 * homes; a look finds what hints missed.
 */
export class Visits {
  listeners = 0;
  readonly #homes: number;
  /** When a home was last named, counted in names. */
  readonly #ready = new Map<string, Map<Home, number>>();
  #named = 0;
  #turn = 0;

  constructor(homes: number) {
    this.#homes = homes;
  }

  /** A home may have available jobs of a queue. */
  ready(queue: string, home: Home): void {
    let homes = this.#ready.get(queue);
    if (!homes) {
      if (this.#ready.size >= MOST_QUEUES) this.#ready.clear();
      homes = new Map();
      this.#ready.set(queue, homes);
    }
    this.#named += 1;
    homes.set(home, this.#named);
  }

  /** Hints were lost: any home may have jobs. */
  missed(): void {
    this.#ready.clear();
  }

  /** Taken before a claim is sent, for `claimed`. */
  get moment(): number {
    return this.#named;
  }

  /** A claim that was sent at a moment has its answer. A home that was named since then may have jobs that it did not see. */
  claimed(queue: string, home: Home, hasMore: boolean, moment: number): void {
    if (hasMore) this.ready(queue, home);
    else if ((this.#ready.get(queue)?.get(home) ?? 0) <= moment) this.#ready.get(queue)?.delete(home);
  }

  order(queue: string, named: readonly Home[] | undefined): Home[] {
    const all = named ?? Array.from({ length: this.#homes }, (_, home) => home);
    const ready = this.#ready.get(queue);
    const known = ready && ready.size > 0 && this.listeners > 0 ? all.filter((home) => ready.has(home)) : [];
    const asked = known.length > 0 ? known : all;
    this.#turn += 1;
    const first = this.#turn % Math.max(1, asked.length);
    return [...asked.slice(first), ...asked.slice(0, first)];
  }
}
