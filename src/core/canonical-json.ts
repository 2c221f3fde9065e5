import type { Json } from "./schema.ts";

/**
 * The canonical text of a JSON value by RFC 8785: keys sorted by their UTF-16 code units, no spaces, numbers as
 * JavaScript writes them. Texts are also normalised to NFC, as Open Job Spec requires for unique keys: two encodings
 * of the same umlaut must give the same key.
 */
export function canonicalJson(value: Json): string {
  if (typeof value === "string") return JSON.stringify(value.normalize("NFC"));
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonicalJson).join(",")}]`;
  const fields = Object.entries(value).map(([name, field]) => [name.normalize("NFC"), field] as const);
  fields.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(",")}}`;
}
