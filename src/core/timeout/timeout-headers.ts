import { refuse } from "../errors.ts";
import { DOCUMENT_LIMIT, type Json, toJsonText } from "../schema.ts";

/** Values that accompany a payload, by name: JSON or bytes. */
export type TimeoutHeaders = Readonly<Record<string, Json | Uint8Array>>;

/**
 * Headers as one text: a list of name and value, with a third item for bytes, so that no JSON value can look like
 * them.
 */
export function encodeHeaders(headers: TimeoutHeaders, field = "headers"): string {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw refuse("invalid_option", field, headers, "write an object of names and their values");
  }
  const entries = Object.entries(headers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (value instanceof Uint8Array ? [name, null, base64(value)] : [name, value]));
  return toJsonText(entries, field, DOCUMENT_LIMIT);
}

/** Returns a new copy each time, so that a caller may change it without changing what is stored. */
export function decodeHeaders(text: string): TimeoutHeaders {
  const entries = JSON.parse(text) as [string, Json, string?][];
  return Object.fromEntries(
    entries.map(([name, value, bytes]) => [name, bytes === undefined ? value : fromBase64(bytes)]),
  );
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
