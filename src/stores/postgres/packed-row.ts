import { restValue } from "../sql/claimed-row.ts";
import type { SqlRow } from "../sql/row-codec.ts";

/** In a packed text: before the options, and before the type, which is the last. No JSON text contains it. */
const SEPARATOR = "\u001f";

const SHARED =
  "concat(fence, ',', rev, ',', created_at, ',', rank, ',', wait_at, ',', total_at, chr(31), options, chr(31), type)";

/**
 * What a claim returns of each row: id, payload, one text, and the rest. Each value of an answer costs Node time and garbage.
 * The text has what jobs that were enqueued together share, so most rows of a large claim have the same, which is read once.
 */
export const CLAIMED = `id, payload, ${SHARED}, ${restValue("json_build_array", "fair_key, ")}`;

/** CLAIMED of a fair queue, and the fair key. */
export const CLAIMED_FAIR = `id, payload, ${SHARED}, ${restValue("json_build_array", "")}, fair_key`;

/** How many values CLAIMED_FAIR has. */
export const CLAIMED_FAIR_LENGTH = 5;

type Maybe<Value> = Value | null;
type Numbers = readonly [
  fence: number,
  rev: number,
  createdAt: number,
  rank: number,
  waitAt: Maybe<number>,
  totalAt: Maybe<number>,
];
type Shared = readonly [...Numbers, options: Maybe<string>, type: string];

/** The values of a row of CLAIMED or CLAIMED_FAIR, as `decodeClaimed` and `decodeFair` take them. */
export function unpacked([id, payload, text, rest, fairKey]: SqlRow): SqlRow {
  const [fence, rev, createdAt, rank, waitAt, totalAt, options, type] = sharedIn(text as string);
  return [id, type, fence, rev, createdAt, payload, options, rank, waitAt, totalAt, rest, fairKey];
}

let last: { readonly text: string; readonly shared: Shared } | undefined;

function sharedIn(text: string): Shared {
  if (last?.text !== text) last = { text, shared: readShared(text) };
  return last.shared;
}

function readShared(text: string): Shared {
  const options = text.indexOf(SEPARATOR) + 1;
  const type = text.indexOf(SEPARATOR, options) + 1;
  // The server writes null as an empty text, which neither a number nor options are.
  const numbers = text
    .slice(0, options - 1)
    .split(",")
    .map((value) => (value === "" ? null : Number(value)));
  return [...(numbers as unknown as Numbers), text.slice(options, type - 1) || null, text.slice(type)];
}
