import type { Command, Option } from "commander";

/** An option as a shell completes it. */
export interface CompletedOption {
  readonly long: string;
  readonly short: string | null;
  readonly says: string;
  /** What its value may be: null if it takes none. */
  readonly value: CompletedValue | null;
}

/** A list to choose from, names of files, or something that a shell cannot know. */
export type CompletedValue = readonly string[] | "file" | "unknown";

/** A command as a shell completes it. `path` begins with the name of the program. */
export interface CompletedCommand {
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly says: string }[];
  readonly options: readonly CompletedOption[];
  /** What its words may be: null if it takes none. */
  readonly words: CompletedValue | null;
}

/** Every command of a program, drawn from its declarations, so that a completion cannot name what there is not. */
export function completedCommands(program: Command): readonly CompletedCommand[] {
  return commandsFrom(program, program.name());
}

function commandsFrom(command: Command, path: string): readonly CompletedCommand[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== "help");
  const own: CompletedCommand = {
    path,
    commands: below.map((each) => ({ name: each.name(), says: firstSentence(each) })),
    options: command.createHelp().visibleOptions(command).flatMap(completedOption),
    words: wordsOf(command),
  };
  return [own, ...below.flatMap((each) => commandsFrom(each, `${path} ${each.name()}`))];
}

/** Descriptions may have several sentences; a shell has one line. */
function firstSentence(command: Command): string {
  const text = command.summary() || command.description();
  return (/^.*?[.:;](?= |$)/.exec(text)?.[0] ?? text).replace(/[.:;]$/, "");
}

function completedOption(option: Option): CompletedOption[] {
  const { long, short } = option;
  if (!long) return [];
  const isFlag = !option.required && !option.optional;
  const value = isFlag ? null : (option.argChoices ?? kindOf(option.flags));
  return [{ long, short: short ?? null, says: option.description, value }];
}

function wordsOf(command: Command): CompletedValue | null {
  const [first] = command.registeredArguments;
  if (!first) return null;
  return first.argChoices ?? kindOf(first.name());
}

/** Names of files are what arguments called so stand for. */
function kindOf(name: string): CompletedValue {
  return /\b(file|module|folder)\b/.test(name) ? "file" : "unknown";
}
