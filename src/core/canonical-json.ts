import type { Json } from "./schema.ts";

/**
 * The one text of a JSON value, as RFC 8785 writes it: keys sorted by their UTF-16 code units, no spaces, numbers as
 * JavaScript writes them. Texts are normalised to NFC on top of it, as Open Job Spec asks for unique keys: an umlaut
 * typed on another keyboard makes no other job.
 */
export function canonicalJson(value: Json): string {
  if (typeof value === "string") return JSON.stringify(value.normalize("NFC"));
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonicalJson).join(",")}]`;
  const fields = Object.entries(value).map(([name, field]) => [name.normalize("NFC"), field] as const);
  fields.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(",")}}`;
}
