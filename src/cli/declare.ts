import { type Command, InvalidArgumentError, Option } from "commander";

/** The help of a command beyond its options. */
export interface CommandPage {
  /** Command lines without the leading `curfew`, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** What `--json` prints. */
  readonly json: string;
  /** A further paragraph. */
  readonly more?: string;
}

const PAGES = new WeakMap<Command, CommandPage>();

export function pageOf(command: Command): CommandPage | undefined {
  return PAGES.get(command);
}

/** Adds `--json`, the examples and the shape of the answer to a command. */
export function withPage(command: Command, page: CommandPage): Command {
  PAGES.set(command, page);
  const width = Math.max(...page.examples.map(([line]) => line.length));
  const examples = page.examples.map(([line, does]) => `  curfew ${line.padEnd(width)}  # ${does}`);
  const more = page.more === undefined ? "" : `\n${page.more}\n`;
  return command
    .option("--json", "print JSON")
    .addHelpText("after", `${more}\nExamples:\n${examples.join("\n")}\n\nWith --json: ${page.json}`);
}

/** Adds commands below a command, in the order of its help. */
export function withCommands(
  parent: Command,
  commands: Readonly<Record<string, (command: Command) => void>>,
): void {
  for (const [name, declare] of Object.entries(commands)) declare(parent.command(name));
}

/** Adds the options that name the store or the server. */
export function withTarget(command: Command): Command {
  return command
    .addOption(
      new Option("--store <address>", "sqlite:<file>, postgres://… or redis://…").env("CURFEW_STORE"),
    )
    .addOption(new Option("--url <url>", "a curfew server, such as http://127.0.0.1:8080").env("CURFEW_URL"))
    .addOption(
      new Option("--key <key>", "the key for the server; the variable keeps it out of the process list").env(
        "CURFEW_KEY",
      ),
    )
    .addOption(new Option("--tenant <name>", "work within this tenant").env("CURFEW_TENANT"));
}

/** The option of a change that is entered in the audit. */
export const REASON = ["--reason <text>", "why, for the audit"] as const;
export interface ReasonOption {
  readonly reason?: string;
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Write a whole number.");
  return Number(text);
}

export function countNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Write a whole number from 1.");
  return Number(text);
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(Number.isFinite(value) && value > 0)) throw new InvalidArgumentError("Write a number above 0.");
  return value;
}
