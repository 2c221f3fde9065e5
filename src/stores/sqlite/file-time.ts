/** What the clocks of the machine say at one moment. */
export interface Reading {
  readonly boot: string;
  /** Milliseconds since the boot without sleeps, the same in all processes. */
  readonly monotonic: number;
  readonly slept: number;
  readonly wall: number;
}

/** What the file keeps, so that all processes on it count from the same moment and agree on the time ever after. */
export interface Anchor extends Reading {
  /** The time of the file at that moment. */
  readonly time: number;
}

/** Differences to the wall clock are closed by so much of the time that passes: a second in 2.8 hours. */
const CREEP = 1e-4;
/** Less than this is noise between two clocks that are not read at the same moment. */
const SHORTEST_SLEEP = 100;
/** An anchor is the last time that the file is known to have seen, so a fresh one is dropped now and then. */
const ANCHOR_EVERY = 20_000;

/**
 * The time of a file: the wall clock's when it was first anchored, and from then on time as it passes, sleeps of the
 * machine included. A wall clock that is set moves it by nothing but the creep; that is slow enough to be within what
 * engines allow for drift. After a boot nobody knows how long the machine was off, so the wall clock is asked again.
 */
export function timeAt(anchor: Anchor | undefined, reading: Reading): number {
  if (anchor?.boot !== reading.boot) return restartedAt(anchor, reading).time;
  const passed = Math.max(0, reading.monotonic - anchor.monotonic) + sleptSince(anchor, reading);
  const ahead = anchor.wall - anchor.time;
  const most = passed * CREEP;
  return anchor.time + passed + Math.max(-most, Math.min(ahead, most));
}

/** An anchor at which the wall clock counts, where nobody is left who could tell; time never goes back. */
export function restartedAt(anchor: Anchor | undefined, reading: Reading): Anchor {
  return { ...reading, time: Math.max(reading.wall, anchor?.time ?? 0) };
}

/** The next anchor, which changes the time of no moment but by a new course for the creep. */
export function anchorAt(anchor: Anchor | undefined, reading: Reading): Anchor {
  const time = timeAt(anchor, reading);
  const isSame = anchor?.boot === reading.boot && sleptSince(anchor, reading) === 0;
  // Noise must not add up: what was not counted as a sleep yet is compared with the same number next time.
  return { ...reading, time, slept: isSame ? anchor.slept : reading.slept };
}

/** `now`: others would count from something else. `soon`: the anchor is old, and a fresh one better. */
export function needsAnchor(anchor: Anchor | undefined, reading: Reading): "now" | "soon" | null {
  if (anchor?.boot !== reading.boot || sleptSince(anchor, reading) > 0) return "now";
  return reading.monotonic - anchor.monotonic >= ANCHOR_EVERY ? "soon" : null;
}

function sleptSince(anchor: Anchor, reading: Reading): number {
  const slept = reading.slept - anchor.slept;
  return slept > SHORTEST_SLEEP ? slept : 0;
}
