import type { Command } from "commander";
import { parseDuration } from "../../core/time.ts";
import { withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { act } from "../run-command.ts";

interface TopOptions {
  readonly every: string;
  readonly once?: boolean;
}

const FASTEST = 500;

export function register(command: Command): void {
  command.description(
    "Show queues, workers and running jobs on a live screen, with their deadlines counting down.",
  );
  withTarget(command)
    .option("--every <duration>", "how often to read, at least 500ms", "2s")
    .option("--once", "print everything once and end");
  withPage(command, {
    examples: [
      ["top", "press ? for the keys: sort, filter, cancel, retry, pause"],
      ["top --once", "the same as text"],
      ["top --json", "the same for a program"],
    ],
    json: '{"at","queues","workers","running":[job with "deadline_at"],"failed":[job],"stats"}, once',
  });
  act<TopOptions>(command, async (context, options) => {
    const { output, target } = context;
    const every = Math.max(FASTEST, parseDuration(options.every, "--every"));
    if (output.isJson || options.once) {
      const [{ TopReader }, { onceText }, { START }] = await Promise.all([
        import("../top/data.ts"),
        import("../top/screen.ts"),
        import("../top/state.ts"),
      ]);
      const data = await new TopReader(target).read();
      output.answer({ ...data, at: new Date(data.at).toISOString() }, () => onceText(data, START));
      return;
    }
    if (!process.stdin.isTTY || !process.stdout.isTTY)
      throw new CommandFailed("usage", "top: there is no terminal; pass --once or --json");
    const { runTop } = await import("../top/run-top.ts");
    await runTop(context, every);
  });
}
