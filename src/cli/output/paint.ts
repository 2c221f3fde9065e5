import { styleText } from "node:util";

export type Format = Parameters<typeof styleText>[0];

/** Colours text on a terminal; leaves it plain in a pipe and with NO_COLOR. */
export function paint(format: Format, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(format, text, { stream });
}

export function dim(text: string, stream?: NodeJS.WriteStream): string {
  return paint("dim", text, stream);
}

/** Replaces control characters: names and messages come from users and must not control the terminal. */
export function printable(text: string, longest = 1_000): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose.
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").slice(0, longest);
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
