/** What a store can do, as data. The conformance kit prints what it skips, and the engine refuses what cannot work. */
export interface Capabilities {
  readonly name: string;
  /**
   * An acknowledged write survives a crash of the store (`ack`), may be lost if it is very recent (`interval`), or is
   * lost with the process (`none`).
   */
  readonly durable: "ack" | "interval" | "none";
  /** Whether the store accepts `tx`. */
  readonly tx: boolean;
  /** Whether `listen` reaches other processes, or they must poll. */
  readonly hints: "push" | "poll";
  /** Calls are carried out by the thread that makes them, so nothing else gets done while one is under way. */
  readonly inProcess?: boolean;
  /** The number of homes. A unit is atomic within one; see `core/home/cell.ts` for which row is in which. */
  readonly homes: number;
  /** Within what a unit is atomic. */
  readonly atomic: Reach;
  /** Within what the available jobs of a queue are claimed in order, unless the queue is strict. */
  readonly order: Reach;
  /** Within what a unique key is held once. The id of a unique job carries the home of its key. */
  readonly unique: Reach;
}

export type Reach = "store" | "home";

/** The capabilities of a store with this many homes. */
export function reachOf(homes: number): Pick<Capabilities, "homes" | "atomic" | "order" | "unique"> {
  const reach: Reach = homes === 1 ? "store" : "home";
  return { homes, atomic: reach, order: reach, unique: reach };
}
