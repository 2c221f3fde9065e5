import type { FairOptions } from "../../src/core/fair/fair-options.ts";
import { cellOfId, homeOf } from "../../src/core/home/cell.ts";
import type { JobRow } from "../../src/core/job/job.ts";
import type { JobLedger } from "./ledger.ts";
import type { Machine } from "./machine.ts";
import type { Plan } from "./plan.ts";

/** How many jobs of each key went before a job of another key that waited all the time: by waiting key, then by key. */
type Passed = Map<string, Map<string, number>>;

/**
 * What one process took of one priority in one home. Claims whose answer was lost are not in `heard`: it begins that turn again.
 * What it lost of a round it does not take again, so `all` has these claims too.
 */
interface Place {
  readonly queue: string;
  readonly home: number;
  readonly level: number;
  heard: Passed;
  claimed: Passed;
  readonly all: Passed;
}

/** The jobs of a queue that wait in one home: by priority, best first, and by fair key. */
type Waiting = Map<number, Map<string, number>>;

const RANK_SPAN = 2 ** 45;

/**
 * What fair queues promise, counted from the rows that claims took: while a key has waiting jobs, a process takes from every
 * other key at most its weight before it takes from this one, and never from a worse priority. If the world has rounds, it
 * takes at most the rest of a round, the key's part of the next one, and a turn.
 */
export class FairRules {
  readonly #homes: number;
  readonly #jobs: ReadonlyMap<string, JobLedger>;
  readonly #places = new Map<Machine, Map<string, Place>>();
  /** All settings that a queue ever had: other processes learn of new ones later. */
  readonly #weights = new Map<string, FairOptions[]>();
  /** How often a key was passed over: a world in which this is 0 shows nothing. */
  passedOver = 0;
  /** How many jobs were taken in rounds. */
  inRounds = 0;
  /** The most jobs of a round in which keys give more than their weight. */
  readonly #longestRound: number;
  /** The home of each job. */
  readonly #homesOf = new Map<string, number>();
  /** A job began to wait, or waits no more, since the last look. */
  #isStale = false;

  constructor(
    { settings, roundLimits, fairKeys }: Plan,
    homes: number,
    jobs: ReadonlyMap<string, JobLedger>,
  ) {
    this.#homes = homes;
    this.#jobs = jobs;
    // Jobs without a key count as those of one more.
    this.#longestRound = roundLimits
      ? Math.max(roundLimits.fewestJobs, roundLimits.jobsOfKey * (fairKeys.length + 1))
      : 0;
    for (const [queue, { fair }] of Object.entries(settings)) if (fair) this.allow(queue, fair);
  }

  /** The queue has these weights from now on. */
  allow(queue: string, fair: FairOptions): void {
    this.#weights.set(queue, [...(this.#weights.get(queue) ?? []), fair]);
  }

  /** A job has another row, or is gone. */
  changed(before: JobRow | null, after: JobRow | null): void {
    if (before?.state === "available" || after?.state === "available") this.#isStale = true;
  }

  /** A process was given these rows, in this order. Returns what is wrong. The rows are still what they were before. */
  claimed(by: Machine, rows: readonly JobRow[]): string | undefined {
    const [first] = rows;
    if (!first || !this.#weights.has(first.queue)) return undefined;
    const home = this.#homeOf(first);
    const waiting = this.#waitingIn(first.queue, home);
    const begun = new Set<Place>();
    for (const row of rows) {
      const level = Math.floor(row.rank / RANK_SPAN);
      const best = Math.min(...waiting.keys());
      if (best < level) return `a job of ${row.queue} was taken although a better priority waits`;
      const place = this.#placeOf(by, row.queue, home, level);
      if (!begun.has(place)) place.claimed = copyOf(place.heard);
      begun.add(place);
      const problem = this.#pass(row, place, waiting, level);
      if (problem) return problem;
    }
    return undefined;
  }

  #pass(row: JobRow, { claimed, all }: Place, waiting: Waiting, level: number): string | undefined {
    const key = row.fairKey ?? "";
    const keys = waiting.get(level) ?? new Map<string, number>();
    const left = (keys.get(key) ?? 0) - 1;
    if (left > 0) keys.set(key, left);
    else keys.delete(key);
    if (keys.size === 0) waiting.delete(level);
    claimed.delete(key);
    all.delete(key);
    for (const other of keys.keys()) {
      if (other === key) continue;
      this.passedOver += 1;
      const count = Math.min(passBy(claimed, key, other), passBy(all, key, other));
      const weight = this.#weightOf(row.queue, key);
      if (count > this.#mostBefore(weight))
        return `${count} jobs of "${key}", which has the weight ${weight}, went before "${other}" in ${row.queue}`;
    }
    return undefined;
  }

  /** How many jobs of a key with this weight may go before one of another key. */
  #mostBefore(weight: number): number {
    if (this.#longestRound === 0) return weight;
    const alone = Math.max(weight, this.#longestRound);
    const beside = weight * Math.max(1, Math.floor(this.#longestRound / (weight + 1)));
    return alone + beside + weight;
  }

  /** The process knows of a claim. */
  heard(by: Machine, rows: readonly JobRow[]): void {
    const [first] = rows;
    if (!first || !this.#weights.has(first.queue)) return;
    const home = this.#homeOf(first);
    for (const row of rows) {
      const place = this.#placeOf(by, row.queue, home, Math.floor(row.rank / RANK_SPAN));
      place.heard = place.claimed;
    }
  }

  /** A key without a waiting job has no claim to turns that it missed. */
  looked(): void {
    if (this.#weights.size === 0 || !this.#isStale) return;
    this.#isStale = false;
    const all = new Map<string, Waiting>();
    for (const places of this.#places.values()) {
      for (const { queue, home, level, heard, claimed, all: every } of places.values()) {
        if (heard.size + claimed.size + every.size === 0) continue;
        const name = `${queue} ${home}`;
        const waiting = all.get(name) ?? this.#waitingIn(queue, home);
        all.set(name, waiting);
        const keys = waiting.get(level);
        for (const passed of [heard, claimed, every])
          for (const key of passed.keys()) if (!keys?.has(key)) passed.delete(key);
      }
    }
  }

  #homeOf({ id }: Pick<JobRow, "id">): number {
    if (this.#homes === 1) return 0;
    const known = this.#homesOf.get(id);
    if (known !== undefined) return known;
    const home = homeOf(cellOfId(id), this.#homes);
    this.#homesOf.set(id, home);
    return home;
  }

  #waitingIn(queue: string, home: number): Waiting {
    const waiting: Waiting = new Map();
    for (const { row, isGone } of this.#jobs.values()) {
      if (isGone || row.queue !== queue || row.state !== "available" || this.#homeOf(row) !== home) continue;
      const level = Math.floor(row.rank / RANK_SPAN);
      const keys = waiting.get(level) ?? new Map<string, number>();
      waiting.set(level, keys.set(row.fairKey ?? "", (keys.get(row.fairKey ?? "") ?? 0) + 1));
    }
    return waiting;
  }

  #placeOf(by: Machine, queue: string, home: number, level: number): Place {
    const places = this.#places.get(by) ?? new Map<string, Place>();
    this.#places.set(by, places);
    const name = `${queue} ${home} ${level}`;
    const known = places.get(name);
    if (known) return known;
    const place = { queue, home, level, heard: new Map(), claimed: new Map(), all: new Map() };
    places.set(name, place);
    return place;
  }

  /** The largest that the key ever had. */
  #weightOf(queue: string, key: string): number {
    const all = this.#weights.get(queue) ?? [];
    return Math.max(...all.map(({ weights, defaultWeight = 1 }) => weights?.[key] ?? defaultWeight));
  }
}

/** One more job of `key` went before `other`. Returns how many that are. */
function passBy(passed: Passed, key: string, other: string): number {
  const counts = passed.get(other) ?? new Map<string, number>();
  const count = (counts.get(key) ?? 0) + 1;
  passed.set(other, counts.set(key, count));
  return count;
}

function copyOf(passed: Passed): Passed {
  return new Map([...passed].map(([key, counts]) => [key, new Map(counts)]));
}
