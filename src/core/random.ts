/** A number in [0, 1). Injected everywhere, so that a seed replays a run exactly. */
export type Random = () => number;

/**
 * A small, fast generator with a 32-bit seed (mulberry32). It is for simulation and tests, where repeating a run
 * matters more than the quality of the bits. Do not use it for secrets.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A whole number in [0, below). */
export function randomInt(random: Random, below: number): number {
  return Math.floor(random() * below);
}
