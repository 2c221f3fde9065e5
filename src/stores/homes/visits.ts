import type { Home } from "../../core/home/cell.ts";

/** Queues whose homes are remembered. A queue that is forgotten costs a claim more visits, nothing else. */
const MOST_QUEUES = 10_000;

/** In which order claims visit homes: first those that a hint named or that gave a full batch, then the others in turn. */
export class Visits {
  readonly #homes: number;
  readonly #ready = new Map<string, Set<Home>>();
  #turn = 0;

  constructor(homes: number) {
    this.#homes = homes;
  }

  /** A home may have available jobs of a queue. */
  ready(queue: string, home: Home): void {
    let homes = this.#ready.get(queue);
    if (!homes) {
      if (this.#ready.size >= MOST_QUEUES) this.#ready.clear();
      homes = new Set();
      this.#ready.set(queue, homes);
    }
    homes.add(home);
  }

  claimed(queue: string, home: Home, hasMore: boolean): void {
    if (hasMore) this.ready(queue, home);
    else this.#ready.get(queue)?.delete(home);
  }

  order(queue: string, named: readonly Home[] | undefined): Home[] {
    const all = named ?? Array.from({ length: this.#homes }, (_, home) => home);
    this.#turn = (this.#turn + 1) % Math.max(1, all.length);
    const turned = [...all.slice(this.#turn), ...all.slice(0, this.#turn)];
    const ready = this.#ready.get(queue);
    if (!ready || ready.size === 0) return turned;
    return [...turned.filter((home) => ready.has(home)), ...turned.filter((home) => !ready.has(home))];
  }
}
