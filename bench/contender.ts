/** What a peer must be able to do to be measured. The engine replaces curfew's stand-in by giving another `open`. */
export interface Contender {
  readonly name: string;
  /** Opens it on an empty database. */
  open(url: string): Promise<OpenContender>;
}

export interface OpenContender {
  /** Adds so many jobs with small payloads, in bulk, as fast as its documentation knows how. */
  enqueue(count: number): Promise<void>;
  /**
   * Runs so many waiting jobs with a handler that does nothing, until the last one is acknowledged in the store. Calls
   * `begin` when the first handler is entered, so that nobody is charged for starting a worker, and gives a function
   * that stops it.
   */
  drain(count: number, concurrency: number, begin: () => void): Promise<() => Promise<void>>;
  /** Removes all jobs, waiting and finished. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export interface Payload {
  readonly n: number;
  readonly text: string;
}

export function payload(n: number): Payload {
  return { n, text: "a payload of an ordinary size" };
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

/** A promise that `count` calls of `done` resolve; the first one calls `begin`. */
export function countdown(count: number, begin: () => void): { done: () => void; reached: Promise<void> } {
  let left = count;
  let resolve: () => void;
  const reached = new Promise<void>((settle) => {
    resolve = settle;
  });
  const done = () => {
    if (left === count) begin();
    left -= 1;
    if (left === 0) resolve();
  };
  return { done, reached };
}
