import { styleText } from "node:util";

export type Format = Parameters<typeof styleText>[0];

/** In colour where a person looks and wants it: not in a pipe, and not with NO_COLOR. */
export function paint(format: Format, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(format, text, { stream });
}

export function dim(text: string, stream?: NodeJS.WriteStream): string {
  return paint("dim", text, stream);
}

/** Names and messages come from others: nothing in them may steer a terminal. */
export function printable(text: string, longest = 1_000): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
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
  retryable: "yellow",
  cancelled: "dim",
};

/** The word for a state, in the colour that it has everywhere. */
export function paintState(state: string): string {
  const format = STATES[state];
  return format === undefined ? state : paint(format, state);
}
