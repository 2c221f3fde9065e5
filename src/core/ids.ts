import { CELLS, type Cell, cellOfName } from "./home/cell.ts";
import type { Instant } from "./time.ts";

/**
 * Makes growing UUIDv7 strings, so that ids sort in the order in which they were made. A cell puts the id into the home
 * that has it. A source for a store with one home ignores the cell.
 */
export interface IdSource {
  (cell?: Cell): string;
  /** What stored names begin with: the prefix of a tenant, or nothing. Left out for a store with one home. */
  readonly namePrefix?: string;
}

const DIGITS = Uint8Array.from("0123456789abcdef", (character) => character.charCodeAt(0));
const DASH = 45;
const COUNTER_LIMIT = 2 ** 26;

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * `now` gives the engine's time, and `fill` fills a pool with random bytes. The 26 bits after the timestamp are a
 * counter, seeded low each millisecond. If the counter overflows, the timestamp advances, so no id repeats.
 * `counterLimit` exists for the test of that: making 67 million ids takes long.
 */
export function createIdSource(
  now: () => Instant,
  fill: (bytes: Uint8Array) => void,
  counterLimit: number = COUNTER_LIMIT,
): IdSource {
  // One call to the random source serves 512 ids. A call per id would cost more than the rest of the id.
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
    const text = prefix + tailText(counter, pool, used + 2);
    used += 8;
    return text;
  };
}

const HOMED_COUNTER_LIMIT = 2 ** 14;
/** Ids of one cell are stored by one call, so that many ids in a row share it. */
const IDS_PER_CELL = 32;

/**
 * Ids for a store with several homes: the low 12 bits of the counter are the cell. An id for which no cell is given is
 * spread: `IDS_PER_CELL` in a row share a random one, but those of different milliseconds do not.
 */
export function createHomedIdSource(now: () => Instant, fill: (bytes: Uint8Array) => void): IdSource {
  const pool = new Uint8Array(4_096);
  let used = pool.length;
  let lastAt = -1;
  let counter = 0;
  let prefix = "";
  let spread = 0;
  let left = 0;
  const reserve = (bytes: number) => {
    if (used + bytes > pool.length) {
      fill(pool);
      used = 0;
    }
    used += bytes;
    return used - bytes;
  };

  const next = (cell?: Cell) => {
    const at = Math.floor(now());
    if (at > lastAt || ++counter >= HOMED_COUNTER_LIMIT) {
      lastAt = at > lastAt ? at : lastAt + 1;
      counter = pool[reserve(1)] as number;
      prefix = timestampText(lastAt);
      left = 0;
    }
    if (cell === undefined && left-- <= 0) {
      const from = reserve(2);
      spread = (((pool[from] as number) << 8) | (pool[from + 1] as number)) % CELLS;
      left = IDS_PER_CELL - 1;
    }
    return prefix + tailText(counter * CELLS + (cell ?? spread), pool, reserve(6));
  };
  return Object.assign(next, { namePrefix: "" });
}

/** The same ids, for names of a tenant. */
export function idsOfTenant(nextId: IdSource, namePrefix: string): IdSource {
  return nextId.namePrefix === undefined
    ? nextId
    : Object.assign((cell?: Cell) => nextId(cell), { namePrefix });
}

/** The same ids, but in the cell of this name where no other is asked for. */
export function idsBeside(nextId: IdSource, name: string): IdSource {
  const { namePrefix } = nextId;
  if (namePrefix === undefined) return nextId;
  const beside = cellOfName(namePrefix + name);
  return Object.assign((cell: Cell = beside) => nextId(cell), { namePrefix });
}

/**
 * The part after the timestamp: 12 bits of the counter, the variant, 14 bits of the counter, 48 random bits. Built in
 * one call: a concatenated string is flattened when it is first hashed, which costs more.
 */
function tailText(counter: number, pool: Uint8Array, from: number): string {
  const high = counter >>> 14;
  const low = counter & 0x3fff;
  const [a, b, c] = [pool[from] as number, pool[from + 1] as number, pool[from + 2] as number];
  const [d, e, f] = [pool[from + 3] as number, pool[from + 4] as number, pool[from + 5] as number];
  // biome-ignore format: one line per group of the id
  return String.fromCharCode(
    digit(high >>> 8), digit(high >>> 4), digit(high), DASH,
    digit(8 | (low >>> 12)), digit(low >>> 8), digit(low >>> 4), digit(low), DASH,
    digit(a >>> 4), digit(a), digit(b >>> 4), digit(b), digit(c >>> 4), digit(c),
    digit(d >>> 4), digit(d), digit(e >>> 4), digit(e), digit(f >>> 4), digit(f),
  );
}

/** The character code of the lowest four bits. */
function digit(bits: number): number {
  return DIGITS[bits & 15] as number;
}

function timestampText(at: Instant): string {
  const hex = at.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
}
