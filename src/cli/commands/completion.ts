import { Argument, type Command } from "commander";
import type { CompletedCommand } from "../completion/command-tree.ts";

const SHELLS: Readonly<Record<string, () => Promise<(commands: readonly CompletedCommand[]) => string>>> = {
  bash: async () => (await import("../completion/bash.ts")).bashScript,
  zsh: async () => (await import("../completion/zsh.ts")).zshScript,
  fish: async () => (await import("../completion/fish.ts")).fishScript,
};

/** The whole program is passed in as a function, because it has this command in it. */
export function register(command: Command, wholeProgram: () => Promise<Command>): void {
  command
    .description("Print a script that completes commands, options and their values in a shell.")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SHELLS)))
    .addHelpText(
      "after",
      `
Examples:
  curfew completion bash >> ~/.bashrc                              # from the next shell on
  source <(curfew completion zsh)                                  # in this shell
  curfew completion fish > ~/.config/fish/completions/curfew.fish  # where fish looks for it`,
    )
    .action(async (shell: string) => {
      const { completedCommands } = await import("../completion/command-tree.ts");
      const script = await (SHELLS[shell] as (typeof SHELLS)[string])();
      process.stdout.write(script(completedCommands(await wholeProgram())));
    });
}
