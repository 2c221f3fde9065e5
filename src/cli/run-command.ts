import type { Command } from "commander";
import { CommandFailed } from "./exit.ts";
import { createOutput, type Output } from "./output/output.ts";
import { openTarget, type Target, type TargetOptions } from "./target/target.ts";

interface CommonOptions extends TargetOptions {
  readonly json?: boolean;
}

interface CommandContext {
  readonly output: Output;
  /** Aborts at Ctrl-C. The second Ctrl-C ends the process at once. */
  readonly signal: AbortSignal;
}

export interface TargetContext extends CommandContext {
  readonly target: Target;
}

const INTERRUPTED = 130;

function onInterrupt(): AbortSignal {
  const stop = new AbortController();
  process.on("SIGINT", () => {
    if (stop.signal.aborted) process.exit(INTERRUPTED);
    stop.abort(new CommandFailed("interrupted", ""));
  });
  return stop.signal;
}

type Action<Options, Context> = (
  context: Context,
  options: Options,
  words: readonly string[],
) => Promise<void>;

/**
 * Sets the action of a command: it opens the target, acts, and closes the target. `onUnopened` runs instead if the
 * target cannot be reached; without it, the command fails.
 */
export function act<Options extends object = object>(
  command: Command,
  action: Action<Options, TargetContext>,
  onUnopened?: (context: CommandContext, error: CommandFailed, options: Options) => Promise<void>,
  { runsJobs }: Pick<TargetOptions, "runsJobs"> = {},
): Command {
  return command.action(async (...given: unknown[]) => {
    const options = command.optsWithGlobals<Options & CommonOptions>();
    const signal = onInterrupt();
    const output = createOutput(options.json === true);
    let target: Target;
    try {
      target = await output.during("opening", () =>
        openTarget({ ...named(command, options), runsJobs }, { output, signal }),
      );
    } catch (error) {
      if (!onUnopened || !(error instanceof CommandFailed) || error.exit !== "unreachable") throw error;
      return onUnopened({ output, signal }, error, options);
    }
    try {
      await action({ target, output, signal }, options, wordsOf(given));
    } finally {
      await target.close();
    }
  });
}

/** The command line wins over the environment: `--url` counts even if CURFEW_STORE is set. */
function named(command: Command, { store, url, key, tenant }: TargetOptions): TargetOptions {
  const isWritten = (name: string) => command.getOptionValueSource(name) === "cli";
  if (isWritten("url") && !isWritten("store")) return { url, key, tenant };
  if (isWritten("store") && !isWritten("url")) return { store, tenant };
  return { store, url, key, tenant };
}

/** Commander passes the arguments (a variadic one as a list), then the options and the command. */
function wordsOf(given: readonly unknown[]): string[] {
  return given
    .slice(0, -2)
    .flat()
    .filter((word) => typeof word === "string");
}
