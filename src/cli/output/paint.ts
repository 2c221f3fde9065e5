import { styleText } from "node:util";

export type Format = Parameters<typeof styleText>[0];

/** Colours text on a terminal; leaves it plain in a pipe and with NO_COLOR. */
export function paint(format: Format, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(format, text, { stream });
}

export function dim(text: string, stream?: NodeJS.WriteStream): string {
  return paint("dim", text, stream);
}

/** Control characters, and those that break a line or turn the direction of the text around. */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose.
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const LONGEST = 1_000;

/** Replaces what must not reach a terminal: names and messages come from users. */
export function printable(text: string): string {
  return text.slice(0, LONGEST).replace(UNPRINTABLE, " ").toWellFormed();
}

const STATES: Readonly<Record<string, Format>> = {
  active: "cyan",
  running: "cyan",
  completed: "green",
  discarded: "red",
  failed: "red",
  dead: "red",
  stale: "red",
  paused: "yellow",
  quiet: "yellow",
  held: "yellow",
  retryable: "yellow",
  cancelled: "dim",
};

/** The name of a state in its colour. */
export function paintState(state: string): string {
  const format = STATES[state];
  return format === undefined ? state : paint(format, state);
}
