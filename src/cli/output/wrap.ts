import { terminalWidth } from "./table.ts";

const WIDEST = 100;

/**
 * Breaks a text at spaces so that it fits the terminal; without a terminal it stays one line. `hanging` is the indent of
 * the lines after the first.
 */
export function wrapText(text: string, indent: string, hanging = indent, width = terminalWidth()): string {
  const most = Math.min(width, Number.isFinite(width) ? WIDEST : width) - hanging.length;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > most) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines.map((each, index) => (index === 0 ? indent : hanging) + each).join("\n");
}
