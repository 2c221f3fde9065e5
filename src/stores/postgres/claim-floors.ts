import { priorityRank, RANK_SPAN, type Rank } from "../../core/job/job.ts";
import type { System } from "../../ports/system.ts";

/** The ranks that a claim looks at: from each start up to its end, which is not included. In the order of ranks. */
export interface RankRanges {
  readonly starts: readonly Rank[];
  readonly ends: readonly Rank[];
}

/** Above every rank. */
const END: Rank = Number.MAX_SAFE_INTEGER;

/** Looks at everything may take this share of the time: one that took 100 ms is repeated after 2 s. */
const FULL_LOOK_SHARE = 1 / 20;
const SELDOM_FULL = 30_000;
/** The least time between two full looks for claims, whatever they cost. */
const OFTEN_FULL = 1_000;
const MOST_QUEUES = 10_000;

/** What a claim may miss: jobs that became available while it ran. */
export interface ClaimUnderWay extends RankRanges {
  /** The claim returned jobs of these ranks. `isAll`: it would have returned any other job in its ranges. */
  end(ranks: readonly Rank[], isAll: boolean): void;
  /** Nobody knows what the claim did. */
  fail(): void;
}

interface QueueFloors {
  /** By priority, as the lowest rank of the priority: no job of it with a rank below the floor is available. */
  readonly floors: Map<Rank, Rank>;
  /** By priority, the highest rank that a floor was at. */
  readonly tops: Map<Rank, Rank>;
  /** The ranks of jobs that became available during each claim under way; null: unknown ones did. */
  readonly underWay: Set<{ ranks: Rank[] | null }>;
  /** When everything may be looked at again. */
  fullLookAt: number;
}

/**
 * Remembers where the available jobs of a queue begin. The entries of claimed jobs stay in the index until a vacuum, which
 * an old transaction of another program can stop for hours. A claim that began at the front would read all of them.
 *
 * A floor rises when a claim has taken what was below it. Every commit that makes a job available sends a hint with its rank,
 * which lowers the floor again. So floors hold only while hints arrive. A hint may be lost with the process that sends it, and
 * a job that another claim had locked may stay available; for these, everything is looked at again in bounded intervals.
 */
export class ClaimFloors {
  readonly #system: Pick<System, "monotonic">;
  readonly #queues = new Map<string, QueueFloors>();
  #hasHints = false;

  constructor(system: Pick<System, "monotonic">) {
    this.#system = system;
  }

  /** Whether hints of other processes arrive from now on. What was learned before is forgotten. */
  set hasHints(hasHints: boolean) {
    this.#hasHints = hasHints;
    this.#forget();
  }

  begin(queue: string, from: Rank): ClaimUnderWay {
    const known = this.#hasHints ? this.#of(queue) : undefined;
    if (!known) return { starts: [from], ends: [END], end: ignore, fail: ignore };
    const heard: { ranks: Rank[] | null } = { ranks: [] };
    known.underWay.add(heard);
    const before = new Map(known.floors);
    return {
      ...rangesAbove(before, from),
      end: (ranks, isAll) => {
        known.underWay.delete(heard);
        // A claim that began above a floor says nothing about what is between the two.
        const isSeen = (rank: Rank) => from <= (before.get(priorityRank(rank)) ?? priorityRank(rank));
        raise(known.tops, ranks);
        raise(known.floors, (isAll ? [...known.tops.values()] : ranks).filter(isSeen));
        lower(known.floors, heard.ranks);
      },
      fail: () => {
        known.underWay.delete(heard);
        lowerAll(known, null);
      },
    };
  }

  /** Jobs of these ranks became available. Null: of unknown ranks. */
  lower(queue: string, ranks: readonly Rank[] | null): void {
    const known = this.#queues.get(queue);
    if (known) lowerAll(known, ranks);
  }

  /** The ranks at which a look finds available jobs, and whether these are all. */
  look(queue: string): RankRanges & { readonly isFull: boolean } {
    const known = this.#queues.get(queue);
    const isFull = !known || known.floors.size === 0 || known.fullLookAt <= this.#system.monotonic();
    return isFull ? { starts: [0], ends: [END], isFull } : { ...rangesAbove(known.floors, 0), isFull };
  }

  /** A look at all ranks of these queues took this long. */
  looked(queues: readonly string[], elapsed: number): void {
    const at = this.#system.monotonic() + pauseAfter(elapsed);
    for (const queue of queues) {
      const known = this.#queues.get(queue);
      if (known) known.fullLookAt = at;
    }
  }

  /** Measures how long something takes. */
  stopwatch(): () => number {
    const startedAt = this.#system.monotonic();
    return () => this.#system.monotonic() - startedAt;
  }

  /** Whether a look at all ranks is due for a queue that is never at rest. If so, the caller makes it. */
  wantsLook(queue: string): boolean {
    const known = this.#queues.get(queue);
    if (!known || known.floors.size === 0) return false;
    const now = this.#system.monotonic();
    if (now < known.fullLookAt + OFTEN_FULL) return false;
    known.fullLookAt = now;
    return true;
  }

  #of(queue: string): QueueFloors {
    const known = this.#queues.get(queue);
    if (known) return known;
    if (this.#queues.size >= MOST_QUEUES) this.#forget();
    const fresh = {
      floors: new Map<Rank, Rank>(),
      tops: new Map<Rank, Rank>(),
      underWay: new Set<never>(),
      fullLookAt: this.#system.monotonic(),
    };
    this.#queues.set(queue, fresh);
    return fresh;
  }

  /** Claims under way keep what they hold, and nobody reads it. */
  #forget(): void {
    this.#queues.clear();
  }
}

/** How long to wait after a look at everything that took this long. */
export function pauseAfter(elapsed: number): number {
  return Math.min(SELDOM_FULL, elapsed / FULL_LOOK_SHARE);
}

function ignore(): void {}

/** All jobs of a claim's priorities up to its last rank are taken, or locked by others. */
function raise(floors: Map<Rank, Rank>, ranks: readonly Rank[]): void {
  for (let index = 0; index < ranks.length; index++) {
    const rank = ranks[index] as Rank;
    const priority = priorityRank(rank);
    if (rank > (floors.get(priority) ?? 0)) floors.set(priority, rank);
  }
}

function lower(floors: Map<Rank, Rank>, ranks: readonly Rank[] | null): void {
  if (ranks === null) floors.clear();
  for (const rank of ranks ?? []) {
    const priority = priorityRank(rank);
    const floor = floors.get(priority);
    if (floor !== undefined && rank < floor) floors.set(priority, rank);
  }
}

/** A claim under way does not see what became available since it began, so it lowers its floors again when it ends. */
function lowerAll({ floors, underWay }: QueueFloors, ranks: readonly Rank[] | null): void {
  lower(floors, ranks);
  for (const heard of underWay) {
    if (ranks === null || heard.ranks === null) heard.ranks = null;
    else heard.ranks.push(...ranks);
  }
}

/** Everything from a rank on but what lies between the beginning of a priority and its floor. */
function rangesAbove(floors: ReadonlyMap<Rank, Rank>, from: Rank): RankRanges {
  const starts: Rank[] = [];
  const ends: Rank[] = [];
  let start = from;
  for (const [priority, floor] of [...floors].sort(([a], [b]) => a - b)) {
    if (floor <= start || priority + RANK_SPAN <= from) continue;
    if (priority > start) {
      starts.push(start);
      ends.push(priority);
    }
    start = floor;
  }
  return { starts: [...starts, start], ends: [...ends, END] };
}

/** The lowest rank of each priority in both. Null, which stands for unknown ranks, wins. */
export function lowestRanks(a: readonly Rank[] | null, b: readonly Rank[] | null): readonly Rank[] | null {
  if (a === null || b === null) return null;
  const lowest = new Map<Rank, Rank>();
  for (const rank of [...a, ...b])
    lowest.set(priorityRank(rank), Math.min(rank, lowest.get(priorityRank(rank)) ?? END));
  return [...lowest.values()];
}
