import { stripVTControlCharacters } from "node:util";

const ASCII = /^[\x20-\x7e]*$/;
/** Marks and format characters are drawn on the character before them. */
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u;
/** Characters of East Asia and emoji. */
const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;
const EMOJI_STYLE = "\ufe0f";

function widthOf(character: string): number {
  // This one makes the symbol before it an emoji, which is wider by one.
  if (character === EMOJI_STYLE) return 1;
  if (ZERO.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/**
 * How many columns of a terminal a text takes; its colours take none. Terminals differ in joined emoji, so their parts
 * are added: the text may be narrower than that, and is never wider.
 */
export function displayWidth(text: string): number {
  const plain = stripVTControlCharacters(text);
  if (ASCII.test(plain)) return plain.length;
  let width = 0;
  for (const character of plain) width += widthOf(character);
  return width;
}

/** The text in at most `width` columns. Cutting could remove the code that ends a colour, so a cut text has none. */
export function cutTo(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width <= 0) return "";
  return `${beginning(stripVTControlCharacters(text), width - 1)}…`;
}

function beginning(plain: string, width: number): string {
  let left = width;
  let end = 0;
  for (const character of plain) {
    left -= widthOf(character);
    if (left < 0) break;
    end += character.length;
  }
  return plain.slice(0, end);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches the codes of colours.
const PIECES = /\u001b\[[0-9;]*m|./gsu;

/** A word without spaces in pieces of at most `width` columns. */
export function breakWord(word: string, width: number): string[] {
  if (displayWidth(word) <= width) return [word];
  const most = Math.max(2, width);
  const lines = [""];
  let used = 0;
  for (const [piece] of word.matchAll(PIECES)) {
    const each = displayWidth(piece);
    if (used + each > most) {
      lines.push("");
      used = 0;
    }
    lines[lines.length - 1] += piece;
    used += each;
  }
  return lines;
}
