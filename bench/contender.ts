/** Where a contender keeps its jobs: the URL of a PostgreSQL database of its own or of Redis, or the path of a SQLite file. */
export type Place = string;

/** Limits at their smallest, for the workload that kills a worker. */
export interface OpenSettings {
  readonly short?: boolean;
}

export type Database = "postgres" | "redis" | "sqlite";

/** A variant is curfew with something more turned on, measured where that could cost something. */
export type Role = "curfew" | "variant" | "peer" | "floor";

/** What can be measured. A floor is raw SQL: a bound, and no job queue. */
export interface Contender {
  readonly name: string;
  readonly role: Role;
  readonly database: Database;
  /** It runs under Bun, and not under Node. */
  readonly runtime?: "bun";
  open(place: Place, settings?: OpenSettings): Promise<OpenContender>;
}

export interface OpenContender {
  /** Adds so many jobs with small payloads, in bulk, as fast as its documentation knows how. */
  enqueue(count: number): Promise<void>;
  /** Adds one job and resolves when it is stored. */
  add(n: number): Promise<void>;
  /** Adds jobs that are due later, the job `n` at `dueAt[n]` (milliseconds since 1970). A floor has no delays. */
  delay?(dueAt: readonly number[]): Promise<void>;
  /** Starts a worker that runs jobs until the function it gives is called. */
  work(concurrency: number, handler: Handler): Promise<() => Promise<void>>;
  /** Whether so many jobs, all that there were, are acknowledged in the store. */
  isDrained(count: number): Promise<boolean>;
  /** Removes all jobs, waiting and finished. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** `beat` is a sign of life, for who wants one. */
export type Handler = (n: number, beat: () => void) => void | Promise<void>;

export interface Payload {
  readonly n: number;
  readonly text: string;
}

export function payload(n: number): Payload {
  return { n, text: "a payload of an ordinary size" };
}

/** The payloads of the jobs from `from` to before `to`. */
export function payloads(from: number, to: number): Payload[] {
  return Array.from({ length: to - from }, (_, index) => payload(from + index));
}

/** Splits `count` into calls of at most `size`, with so many of them in flight. */
export async function inBatches(
  count: number,
  size: number,
  inFlight: number,
  add: (from: number, to: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const from = next;
      next = Math.min(count, from + size);
      await add(from, next);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}
