/** What the clocks of the machine show at one moment. */
export interface Reading {
  readonly boot: string;
  /** Milliseconds since the boot without sleeps, equal in all processes. */
  readonly monotonic: number;
  readonly slept: number;
  readonly wall: number;
}

/** The stored moment from which all processes of the file count, so that they agree on the time. */
export interface Anchor extends Reading {
  /** The time of the file at that moment. */
  readonly time: number;
}

/** The share of passing time by which a difference to the wall clock is reduced: a second in 2.8 hours. */
const CREEP = 1e-4;
/** A shorter difference is noise: the two clocks are not read at the same moment. */
const SHORTEST_SLEEP = 100;
/** A longer difference is closed at a restart, in milliseconds. */
const LONGEST_CREPT = 1_000;
/** A wall clock before 2026 is that of a machine that lost its time: curfew did not exist. */
const EARLIEST = 1_767_225_600_000;
/** Write a new anchor after this many milliseconds. An anchor is the last time that the file is known to have seen. */
const ANCHOR_EVERY = 20_000;

/**
 * The time of a file: the wall clock at the first anchor, and from then on the time that passes, including sleeps of
 * the machine. If the wall clock is set, only the creep follows it, slowly enough to stay within the drift that
 * engines allow for. After a boot nobody knows how long the machine was off, so the wall clock counts again.
 */
export function timeAt(anchor: Anchor | undefined, reading: Reading): number {
  if (anchor?.boot !== reading.boot) return restartedAt(anchor, reading).time;
  const passed = Math.max(0, reading.monotonic - anchor.monotonic) + sleptSince(anchor, reading);
  const ahead = anchor.wall - anchor.time;
  const most = passed * CREEP;
  return anchor.time + passed + Math.max(-most, Math.min(ahead, most));
}

/**
 * An anchor from the wall clock, if no running process knows the time. It may be behind what the file has seen: one
 * start with a wall clock that was ahead must not keep the file ahead. The creep closes a difference of up to a second.
 */
export function restartedAt(anchor: Anchor | undefined, reading: Reading): Anchor {
  const { wall } = reading;
  const seen = anchor?.time ?? wall;
  const isSetBack = wall < seen - LONGEST_CREPT && wall >= EARLIEST;
  return { ...reading, time: isSetBack ? wall : Math.max(wall, seen) };
}

/** The next anchor. It changes no past time; only the direction of the creep may change. */
export function anchorAt(anchor: Anchor | undefined, reading: Reading): Anchor {
  const time = timeAt(anchor, reading);
  const isSame = anchor?.boot === reading.boot && sleptSince(anchor, reading) === 0;
  // Noise must not add up. A difference that did not count as a sleep is compared with the same number next time.
  return { ...reading, time, slept: isSame ? anchor.slept : reading.slept };
}

/** `now`: without a new anchor, other processes would count differently. `soon`: the anchor is old. */
export function needsAnchor(anchor: Anchor | undefined, reading: Reading): "now" | "soon" | null {
  if (anchor?.boot !== reading.boot || sleptSince(anchor, reading) > 0) return "now";
  return reading.monotonic - anchor.monotonic >= ANCHOR_EVERY ? "soon" : null;
}

function sleptSince(anchor: Anchor, reading: Reading): number {
  const slept = reading.slept - anchor.slept;
  return slept > SHORTEST_SLEEP ? slept : 0;
}
