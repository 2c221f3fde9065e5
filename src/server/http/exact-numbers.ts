import { HttpError } from "./http-error.ts";

/** Numbers with fewer digits are always exact. */
const MANY_DIGITS = /\d{16}/;
/** Matches strings too, so that digits in them are skipped. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;
const WHOLE = /^-?\d{16,}$/;

/**
 * Refuses whole numbers that JavaScript would change: above 2^53 not all are exact, and clients in other languages use such
 * ids. Numbers that stay the same pass. Most texts have no such number, so the check is cheap.
 */
export function refuseInexact(text: string): void {
  if (!MANY_DIGITS.test(text)) return;
  for (const [token] of text.matchAll(TOKENS)) {
    if (!WHOLE.test(token) || token === String(Number(token))) continue;
    const message = `The body has the number ${token.slice(0, 100)}, which is not exact beyond 2^53; send it as a text`;
    throw new HttpError(400, "invalid_payload", message);
  }
}
