import { sha256 } from "../runtime/sha256.ts";

const HALF_BITS = 29n;
const HALF_MASK = (1n << HALF_BITS) - 1n;
/** Larger numbers have too many digits for a cursor. No store counts that far. */
const LIMIT = 1n << (2n * HALF_BITS);
const ROUNDS = [0, 1, 2, 3];
const HEX_DIGITS = 8;

/**
 * Cursors of events for one tenant. A position in the one stream of all tenants would tell a tenant how much the others
 * do. So its numbers are mixed by a Feistel network with a secret: each cursor has one text, which says nothing.
 */
export class EventCursors {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  hide(cursor: string): string {
    return this.#each(cursor, ROUNDS);
  }

  /** The position of a cursor that `hide` made. Another text leads somewhere, but never to an event of others. */
  show(cursor: string): string {
    return this.#each(cursor, ROUNDS.toReversed());
  }

  /** `0` is the beginning. What follows the dash counts the events of one commit, which are all of this tenant. */
  #each(cursor: string, rounds: readonly number[]): string {
    const [position = "", part] = cursor.split("-");
    const mixed = position
      .split(".")
      .map((text) => this.#mix(text, rounds))
      .join(".");
    return part === undefined ? mixed : `${mixed}-${part}`;
  }

  #mix(text: string, rounds: readonly number[]): string {
    const value = BigInt(text);
    if (value === 0n || value >= LIMIT) return text;
    let [left, right] = [value >> HALF_BITS, value & HALF_MASK];
    for (const round of rounds) [left, right] = [right, left ^ this.#keyed(round, right)];
    // The halves are swapped at the end, so that the rounds in reverse order undo it.
    return ((right << HALF_BITS) | left).toString();
  }

  #keyed(round: number, half: bigint): bigint {
    return BigInt(`0x${sha256(`${this.#secret} ${round} ${half}`).slice(0, HEX_DIGITS)}`) & HALF_MASK;
  }
}
