import { createInterface } from "node:readline/promises";
import { CommandFailed } from "../exit.ts";

export interface ConfirmOptions {
  /** `--yes` was given: do not ask. */
  readonly yes?: boolean | undefined;
  readonly signal?: AbortSignal;
}

/** Asks on the terminal before an action that cannot be undone. Throws unless the answer is yes. */
export async function confirm(question: string, { yes, signal }: ConfirmOptions = {}): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new CommandFailed("usage", `${question} There is no terminal to ask on; pass --yes to confirm`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // readline swallows Ctrl-C while it waits; pass it on to the command.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    const answer = await lines.question(`${question} [y/N] `, signal ? { signal } : {});
    if (/^y(es)?$/i.test(answer.trim())) return;
  } catch (error) {
    if (signal?.aborted) throw new CommandFailed("interrupted", "nothing was changed", { cause: error });
    throw error;
  } finally {
    lines.close();
  }
  throw new CommandFailed("failed", "nothing was changed");
}
