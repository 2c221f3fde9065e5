import { HttpError } from "./http-error.ts";

/** Fewer digits than that are always kept. */
const MANY_DIGITS = /\d{16}/;
/** Strings are passed over, and so are fractions and powers of ten. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;
const WHOLE = /^-?\d{16,}$/;

/**
 * Refuses whole numbers in a JSON text that would come back as others: beyond 2^53 not every one can be kept, and a client
 * in another language has ids that are so long. What survives is let through, however large it is. Most texts have no
 * such number, so looking at one costs next to nothing.
 */
export function refuseInexact(text: string): void {
  if (!MANY_DIGITS.test(text)) return;
  for (const [token] of text.matchAll(TOKENS)) {
    // Written out again it must be the same text.
    if (!WHOLE.test(token) || token === String(Number(token))) continue;
    const message = `The body has the number ${token.slice(0, 100)}, of which not all digits can be kept (2^53); send it as a text`;
    throw new HttpError(400, "invalid_payload", message);
  }
}
