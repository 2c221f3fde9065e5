import { terminalWidth } from "./terminal-width.ts";
import { breakWord, displayWidth } from "./width.ts";

const WIDEST = 100;

/**
 * Breaks a text at spaces so that it fits the terminal, and a word that is too long anywhere; without a terminal it stays
 * one line. `hanging` is the indent of the lines after the first.
 */
export function wrapText(text: string, indent: string, hanging = indent, width = terminalWidth()): string {
  const widest = Math.max(indent.length, hanging.length);
  const most = Math.max(1, Math.min(width, Number.isFinite(width) ? WIDEST : width) - widest);
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const [index, word] of text.split(" ").entries()) {
    const length = displayWidth(word);
    if (index > 0 && used + 1 + length <= most) {
      line += ` ${word}`;
      used += 1 + length;
      continue;
    }
    if (index > 0) lines.push(line);
    const pieces = breakWord(word, most);
    line = pieces.pop() as string;
    used = displayWidth(line);
    lines.push(...pieces);
  }
  lines.push(line);
  return lines.map((each, index) => (index === 0 ? indent : hanging) + each).join("\n");
}
