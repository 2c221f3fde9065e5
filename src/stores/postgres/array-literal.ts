/**
 * PostgreSQL's text form of arrays, built here because the client library's own builder costs several times as much
 * per element. An array that would hold nothing but nulls is written as null: `unnest` fills the column up.
 */

/** Numbers and nulls. */
export function numberArray<Item>(
  items: readonly Item[],
  read: (item: Item) => number | null | undefined,
): string | null {
  let text = "";
  let isEmpty = true;
  for (const item of items) {
    const value = read(item) ?? null;
    if (value === null) text += ",NULL";
    else {
      text += `,${value}`;
      isEmpty = false;
    }
  }
  return isEmpty ? null : `{${text.slice(1)}}`;
}

/** Texts and nulls. */
export function textArray<Item>(
  items: readonly Item[],
  read: (item: Item) => string | null | undefined,
): string | null {
  let text = "";
  let isEmpty = true;
  for (const item of items) {
    const value = read(item) ?? null;
    if (value === null) text += ",NULL";
    else {
      text += `,"${escaped(value)}"`;
      isEmpty = false;
    }
  }
  return isEmpty ? null : `{${text.slice(1)}}`;
}

/** No JSON text holds these two, so nothing needs to be escaped: that costs more than all else about a document. */
const SEPARATOR = "\u001f";
const NONE = "\u001e";

/** JSON texts and nulls, as `texts` in statements takes them apart. The empty text, which clears a document, is one too. */
export function jsonTexts<Item>(
  items: readonly Item[],
  read: (item: Item) => string | null | undefined,
): string | null {
  let isEmpty = true;
  const texts = items.map((item) => {
    const value = read(item) ?? null;
    if (value === null) return NONE;
    isEmpty = false;
    return value;
  });
  if (isEmpty) return null;
  // The server takes an empty text for a list of none; a null behind it is one that matches nothing.
  return texts.join(SEPARATOR) || SEPARATOR + NONE;
}

const SPECIAL = /["\\]/g;

function escaped(value: string): string {
  return value.includes('"') || value.includes("\\") ? value.replace(SPECIAL, "\\$&") : value;
}

/** Ids that are known to be UUIDs, which need no quotes. */
export function idArray(ids: readonly string[]): string {
  return `{${ids.join(",")}}`;
}
