import { HttpError } from "./errors.ts";

/** Fewer digits than that are always kept. */
const MANY_DIGITS = /\d{16}/;
const WHOLE = /^-?\d+$/;

/**
 * Refuses whole numbers that would come back as others: beyond 2^53 not every one can be kept, and a client in another
 * language has ids that are so long. What survives is let through, however large it is. Most texts have no such number,
 * so looking at one costs next to nothing.
 */
export function refuseInexact(text: string): void {
  if (!MANY_DIGITS.test(text)) return;
  JSON.parse(text, (key: string, value: unknown, context?: { readonly source?: string }) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || !WHOLE.test(source)) return value;
    // Written out again it must be the same text.
    if (source === String(value) || value === 0) return value;
    const place = key === "" ? "the body" : `"${key.slice(0, 100)}"`;
    const message = `${place}: ${source.slice(0, 100)} has more digits than a number can keep (2^53); send it as a text`;
    throw new HttpError(400, "invalid_payload", message, { details: { field: key.slice(0, 100) } });
  });
}
