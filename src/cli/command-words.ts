import type { Command } from "commander";

const named = (command: Command | undefined, name: string | undefined) =>
  command?.commands.find((each) => each.name() === name || each.aliases().includes(String(name)));

/** The words of a command line as commander takes them: a noun alone means `ls`, and `help ls` means `ls --help`. */
export function commandWords(program: Command, words: readonly string[]): readonly string[] {
  const [first, second] = words;
  if (first === "help" && second !== undefined) return helpWords(program, words.slice(1));
  const isAlone = second === undefined || (second.startsWith("-") && !["-h", "--help"].includes(second));
  if (isAlone && named(named(program, first), "ls")) return [String(first), "ls", ...words.slice(1)];
  return words;
}

/** Help of an unknown command is the error that names it. */
function helpWords(program: Command, names: readonly string[]): readonly string[] {
  let command: Command | undefined = program;
  for (const name of names) command = named(command, name);
  return command === undefined ? names : [...names, "--help"];
}
