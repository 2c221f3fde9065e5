import { createInterface } from "node:readline/promises";
import { CommandFailed } from "../exit.ts";

export interface ConfirmOptions {
  /** `--yes` was given: nobody is asked. */
  readonly yes?: boolean | undefined;
  readonly signal?: AbortSignal;
}

/** Asks on the terminal before something that cannot be taken back. Throws where the answer is not yes. */
export async function confirm(question: string, { yes, signal }: ConfirmOptions = {}): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new CommandFailed("usage", `${question} There is no terminal to ask on; pass --yes to do it`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // The reader takes Ctrl-C for itself while it waits; the command must hear it.
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
