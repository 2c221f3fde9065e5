import { signal } from "@preact/signals";
import { every, localNow } from "../system.ts";

/** The server's time minus this machine's, as far as it is known. */
const offset = signal(0);
const SAMPLES = 10;
const samples: number[] = [];

/** The server's time, once a second. What counts down reads this; it stands still while the data is stale. */
export const now = signal(localNow());
/** Whether `now` moves on. The live line switches it off when it has heard nothing for a while. */
export const isTicking = signal(true);

export function serverNow(): number {
  return localNow() + offset.value;
}

/**
 * Takes over what the server said its time was. A reply is always late, never early, so of the last few samples the one
 * that is furthest ahead is the nearest to the truth.
 */
export function heardServerTime(at: number): void {
  if (!Number.isFinite(at)) return;
  samples.push(at - localNow());
  if (samples.length > SAMPLES) samples.shift();
  offset.value = Math.max(...samples);
  // Nothing is ever shown by this machine's own idea of the time, not even for the first second.
  if (samples.length === 1) now.value = serverNow();
}

export function clockOffset(): number {
  return offset.value;
}

every(1_000, () => {
  if (isTicking.value && !document.hidden) now.value = serverNow();
});
