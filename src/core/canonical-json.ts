import { refuse } from "./errors.ts";
import type { Json } from "./schema.ts";

/**
 * The canonical text of a JSON value by RFC 8785: keys sorted by their UTF-16 code units, no spaces, numbers as
 * JavaScript writes them. Texts are also normalised to NFC, as Open Job Spec requires for unique keys: two encodings
 * of the same umlaut must give the same key. Refuses a value of more than `most` parts with the name of the field.
 */
export function canonicalJson(value: Json, field = "value", most = Number.POSITIVE_INFINITY): string {
  const parts: string[] = [];
  write(value, { parts, field, most, count: 0 });
  return parts.join("");
}

interface Output {
  readonly parts: string[];
  readonly field: string;
  readonly most: number;
  /** Values and keys so far. */
  count: number;
}

function countParts(output: Output, more: number): void {
  output.count += more;
  if (output.count <= output.most) return;
  const fix = `it may have ${output.most} keys and values at most: name the fields that count`;
  throw refuse("too_large", output.field, "a large value", fix);
}

/** Appends to one list: joining the texts of each level would copy a deep value once per level. */
function write(value: Json, output: Output): void {
  const { parts } = output;
  if (typeof value === "string") parts.push(JSON.stringify(normalised(value)));
  else if (typeof value !== "object" || value === null) parts.push(String(value));
  else if (Array.isArray(value)) {
    countParts(output, value.length);
    parts.push("[");
    for (let index = 0; index < value.length; index++) {
      if (index > 0) parts.push(",");
      write(value[index] as Json, output);
    }
    parts.push("]");
  } else writeObject(value as { readonly [key: string]: Json }, output);
}

function writeObject(value: { readonly [key: string]: Json }, output: Output): void {
  const { parts } = output;
  const keys = Object.keys(value);
  countParts(output, keys.length);
  const fields = keys.map((key) => ({ key, name: normalised(key) }));
  fields.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  let before = "{";
  for (const { key, name } of fields) {
    parts.push(before, JSON.stringify(name), ":");
    write(value[key] as Json, output);
    before = ",";
  }
  parts.push(before === "{" ? "{}" : "}");
}

const ASCII = /^[\0-\x7f]*$/;
/** Real text has a few combining marks in a row. Unicode's stream-safe format allows 30. */
const LONG_RUN = /(?:\P{M}|^)\p{M}{31,}/u;

/**
 * The text in NFC. Sorting a run of combining marks takes the square of its length, so a text with a run that no writing
 * system has stays as it is.
 */
function normalised(text: string): string {
  return ASCII.test(text) || LONG_RUN.test(text) ? text : text.normalize("NFC");
}
