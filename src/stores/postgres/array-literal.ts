/**
 * PostgreSQL's text form of arrays. The builder of the client library costs several times as much per element. An
 * array of nulls alone is written as null: `unnest` fills the column.
 */

export function numberArray<Item>(
  items: readonly Item[],
  read: (item: Item) => number | null | undefined,
): string | null {
  let text = "";
  let isEmpty = true;
  // By position: an iterator would make garbage for each element.
  for (let index = 0; index < items.length; index++) {
    const value = read(items[index] as Item) ?? null;
    if (value === null) text += ",NULL";
    else {
      text += `,${value}`;
      isEmpty = false;
    }
  }
  return isEmpty ? null : `{${text.slice(1)}}`;
}

export function textArray<Item>(
  items: readonly Item[],
  read: (item: Item) => string | null | undefined,
): string | null {
  let text = "";
  let isEmpty = true;
  for (let index = 0; index < items.length; index++) {
    const value = read(items[index] as Item) ?? null;
    if (value === null) text += ",NULL";
    else {
      text += `,"${escaped(value)}"`;
      isEmpty = false;
    }
  }
  return isEmpty ? null : `{${text.slice(1)}}`;
}

/**
 * No JSON text contains these two characters, so nothing needs escaping, which would cost more than the rest of a
 * document.
 */
const SEPARATOR = "\u001f";
const NONE = "\u001e";

/**
 * JSON texts and nulls, in the form that `texts` in statements splits. The empty text, which clears a document, is
 * allowed.
 */
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
  // The server reads an empty text as an empty list. A null after it makes a list of two, and the second matches
  // nothing.
  return texts.join(SEPARATOR) || SEPARATOR + NONE;
}

const SPECIAL = /["\\]/g;

function escaped(value: string): string {
  return value.includes('"') || value.includes("\\") ? value.replace(SPECIAL, "\\$&") : value;
}

/** Ids that are known to be UUIDs. They need no quotes. */
export function idArray(ids: readonly string[]): string {
  return `{${ids.join(",")}}`;
}
