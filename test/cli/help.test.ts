import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { commandWords } from "../../src/cli/command-words.ts";
import { pageOf } from "../../src/cli/declare.ts";
import { EXITS } from "../../src/cli/exit.ts";
import { createProgram } from "../../src/cli/program.ts";

const program = await createProgram("all");

function leaves(command: Command, path: string): readonly (readonly [string, Command])[] {
  if (command.commands.length === 0) return [[path, command]];
  return command.commands.flatMap((each) => leaves(each, `${path} ${each.name()}`));
}

const commands = leaves(program, "curfew");

/** The whole help as it is printed, with the examples, at a fixed width. */
function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => 100,
  });
  command.outputHelp();
  return text;
}

describe("the help", () => {
  it("of the program and of every command stays as it was seen", async () => {
    const shown = commands.filter(([path]) => !path.startsWith("curfew jobs "));
    const texts = [["curfew", program] as const, ...shown].map(
      ([path, command]) => `$ ${path} --help\n\n${helpOf(command).trimEnd()}\n`,
    );
    await expect(texts.join("\n")).toMatchFileSnapshot("help.txt");
  });

  it.each(commands)("of %s has an example", (_path, command) => {
    expect(helpOf(command)).toMatch(/^Examples:\n {2}curfew /m);
  });

  it.each(commands.filter(([, command]) => pageOf(command) !== undefined))(
    "of %s says what --json prints",
    (_path, command) => {
      expect(helpOf(command)).toContain(`With --json: ${pageOf(command)?.json}`);
    },
  );
});

describe("a command that nobody named", () => {
  it("is in the program by its summary only, so that its module is not loaded", async () => {
    const light = await createProgram(["queues", "ls"]);
    const named = light.commands.find((command) => command.name() === "queues");
    const other = light.commands.find((command) => command.name() === "cron");
    expect(named?.commands.length).toBeGreaterThan(0);
    expect(other?.commands).toEqual([]);
  });
});

describe("the words of a command line", () => {
  it.each([
    ["queues", "queues ls"],
    ["queues --url http://h", "queues ls --url http://h"],
    ["queues --help", "queues --help"],
    ["queues pause mail", "queues pause mail"],
    ["maintenance", "maintenance status"],
    ["ls", "ls"],
    ["help queues ls", "queues ls --help"],
    ["help lst", "lst"],
    ["help", "help"],
  ])("%s means %s", (said, meant) => {
    expect(commandWords(program, said.split(" "))).toEqual(meant.split(" "));
  });

  it.each([
    ["ls --bogus", "(see curfew ls --help)"],
    ["queues limit mail --bogus", "(see curfew queues limit --help)"],
    ["queues lsst", "(see curfew queues --help)"],
  ])("that are wrong, as in %s, end with %s", async (said, hint) => {
    let text = "";
    const fresh = await createProgram("all");
    const catching = (command: Command) => {
      command.configureOutput({
        writeErr: (part) => {
          text += part;
        },
      });
      command.commands.forEach(catching);
    };
    catching(fresh);
    await expect(fresh.parseAsync(said.split(" "), { from: "user" })).rejects.toThrow("error:");
    expect(text.trim().split("\n").at(-1)).toBe(hint);
  });
});

describe("exit codes", () => {
  it("are different for each reason", () => {
    const codes = Object.values(EXITS).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
  });
});
