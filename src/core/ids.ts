import type { Instant } from "./time.ts";

/** Makes UUIDv7 strings that only grow, so that the order of ids is the order in which they were made. */
export type IdSource = () => string;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const COUNTER_LIMIT = 2 ** 26;

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * `now` gives the engine's time and `fill` fills a pool with random bytes. The 26 bits behind the timestamp are a
 * counter, seeded low each millisecond; if it runs over, the timestamp is advanced instead of repeating an id
 * (`counterLimit` is there for the test of that: 67 million ids take long to make).
 */
export function createIdSource(
  now: () => Instant,
  fill: (bytes: Uint8Array) => void,
  counterLimit: number = COUNTER_LIMIT,
): IdSource {
  // One call to the random source serves 512 ids: a call per id costs more than the rest of the id.
  const pool = new Uint8Array(4_096);
  let used = pool.length;
  let lastAt = -1;
  let counter = 0;
  let prefix = "";

  return () => {
    if (used + 8 > pool.length) {
      fill(pool);
      used = 0;
    }
    const at = Math.floor(now());
    if (at > lastAt) {
      lastAt = at;
      counter = ((pool[used] as number) << 8) | (pool[used + 1] as number);
      prefix = timestampText(lastAt);
    } else if (++counter >= counterLimit) {
      lastAt += 1;
      counter = 0;
      prefix = timestampText(lastAt);
    }
    // Layout: 48 bits time, version 7, 12 bits counter high, variant 10, 14 bits counter low, 48 bits random.
    const high = counter >>> 14;
    const low = counter & 0x3fff;
    const text = `${prefix}-7${hexAt(high >>> 8).slice(1)}${hexAt(high & 0xff)}-${hexAt(0x80 | (low >>> 8))}${hexAt(low & 0xff)}-${poolText(pool, used + 2)}`;
    used += 8;
    return text;
  };
}

function hexAt(byte: number): string {
  return HEX[byte] as string;
}

function poolText(pool: Uint8Array, from: number): string {
  let text = "";
  for (let offset = from; offset < from + 6; offset++) text += hexAt(pool[offset] as number);
  return text;
}

function timestampText(at: Instant): string {
  const hex = at.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}
