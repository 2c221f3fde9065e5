import type { Command } from "commander";

const named = (command: Command | undefined, name: string | undefined) =>
  command?.commands.find((each) => each.name() === name || each.aliases().includes(String(name)));

/** What a noun alone means: the first of these that it has. */
const QUESTIONS = ["ls", "status"];

/** The words of a command line as commander takes them: a noun alone means its question, `help ls` means `ls --help`. */
export function commandWords(program: Command, words: readonly string[]): readonly string[] {
  const [first, second] = words;
  if (first === "help" && second !== undefined) return helpWords(program, words.slice(1));
  const isAlone = second === undefined || (second.startsWith("-") && !["-h", "--help"].includes(second));
  if (!isAlone) return words;
  const question = QUESTIONS.find((name) => named(named(program, first), name));
  return question === undefined ? words : [String(first), question, ...words.slice(1)];
}

/** Help of an unknown command is the error that names it. */
function helpWords(program: Command, names: readonly string[]): readonly string[] {
  let command: Command | undefined = program;
  for (const name of names) command = named(command, name);
  return command === undefined ? names : [...names, "--help"];
}
