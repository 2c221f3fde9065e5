/**
 * Writes the pages of docs/ that are drawn from tables in the code, so that the two cannot disagree.
 * With `--check` it writes nothing and fails when a page on disk differs: that is the docs stage of `npm test`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { type CommandPage, pageOf } from "../src/cli/declare.ts";
import { EXITS } from "../src/cli/exit.ts";
import { createProgram } from "../src/cli/program.ts";
import { ERRORS, type ErrorCode } from "../src/core/errors.ts";
import { JOB_STATES } from "../src/core/job/job.ts";
import { isTerminal, LIFECYCLE } from "../src/core/job/lifecycle.ts";
import { openApiText } from "../src/server/openapi/openapi.ts";
import { ERROR_FIXES } from "./error-fixes.ts";
import { optionTables } from "./options-page.ts";
import { reliabilityPage } from "./reliability-page.ts";
import { runtimeSections } from "./runtimes-page.ts";
import { warningSections } from "./warnings-page.ts";

const pages: Record<string, () => string | Promise<string>> = {
  "docs/cli.md": commandLine,
  "docs/errors.md": errors,
  "docs/lifecycle.md": lifecycle,
  "docs/openapi.json": openApiText,
  "docs/options.md": options,
  "docs/runtimes.md": () => page("Runtimes", "docs/runtimes.json", ...runtimeSections()),
  "docs/reliability.md": () => reliabilityPage(join(import.meta.dirname, "../docs/reliability")),
  "docs/warnings.md": warnings,
};

function errors(): string {
  const kinds = {
    programmer:
      "Thrown at once, where the mistake was written. The message is the field, the value, the words below and the fix.",
    operating: "Thrown when the world does not do what was asked of it. Code that meets one can go on.",
    verdict: "Kept on a job as the reason why an attempt or the job ended. Never thrown at the caller.",
  };
  const sections = Object.entries(kinds).map(([kind, meaning]) => {
    const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].kind === kind);
    const rows = codes.map((code) => `| \`${code}\` | ${ERRORS[code].says} | ${ERROR_FIXES[code]} |`);
    return `## ${kind}\n\n${meaning}\n\n| code | meaning | do |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  const summary =
    "Every error has a code that stays the same. There are three kinds, and they are never mixed.";
  return page("Errors", "src/core/errors.ts", summary, sections);
}

function options(): string {
  const summary = [
    "What you may pass to curfew, and what each option does if you leave it out. An option that is not listed is refused.",
    "`timeouts`, `retry` and `retention` may be written at an enqueue, in a definition, for a queue and for the engine: the first",
    'of these that names a field decides it ([the rules](semantics.md), section 2). A duration is a text such as `"30s"` or `"5m"`, or',
    "an object such as `{ minutes: 5 }`. Every instant that curfew gives you is a number of milliseconds since 1970.",
  ].join("\n");
  return page("Options", "the types of options", summary, optionTables());
}

function warnings(): string {
  const summary = [
    "Every warning that curfew gives, and what to do. The [runbook](guides/operations.md#runbook-events) also says what to look",
    "at. [Errors](errors.md) has the codes that calls throw and that jobs keep.",
  ].join("\n");
  return page("Warnings", "the runbook and the code", summary, warningSections());
}

async function commandLine(): Promise<string> {
  const program = await createProgram("all");
  const exits = Object.values(EXITS).map(({ code, says }) => `| ${code} | ${says} |`);
  const summary = [
    "`curfew` operates jobs on a store (`--store`, CURFEW_STORE) or through a server (`--url`, CURFEW_URL, with `--key` or",
    "CURFEW_KEY). Both give the same answers: on a store the routes of the server run inside the command. What is written",
    "on the command line wins over the environment.",
    "",
    "Standard output holds data and nothing else; remarks, progress and errors go to standard error. `--json` prints one",
    "JSON document, or one per line where things come as they happen. Fields are those of [openapi.json](openapi.json); new",
    "ones may be added. In all of them names are in snake_case, instants are RFC 3339 texts, and a duration in milliseconds has",
    "a name in `_ms`. A list is in `items`, with `has_more` where it may be cut. A state is a state of the server: a job that",
    "only its limit holds is `available` and has `held_by`; the tables call it held. What users wrote (`args`, `meta`, `result`,",
    "log fields) and the stored documents of an export (`options`, `policy`, `errors`) keep their own names.",
    "",
    'Under `--json` an error is one line on standard error, `{"error":{"code","message"}}`, whose code is `failed`, `usage`,',
    "`unreachable`, `refused` or `interrupted`. Colours appear on a terminal only, and never with NO_COLOR.",
    "",
    "| exit code | meaning |",
    "|---|---|",
    ...exits,
  ].join("\n");
  const sections = commandSections(program, "curfew");
  return page("Command line", "src/cli/program.ts", `${summary}\n`, sections);
}

/** A section for each command that does something, in the order of the help. */
function commandSections(command: Command, path: string): string[] {
  const shown = command.createHelp().visibleCommands(command);
  return shown.flatMap((each) => {
    const name = `${path} ${each.name()}`;
    if (each.name() === "help") return [];
    if (each.commands.length > 0) return commandSections(each, name);
    const help = each.createHelp();
    const options = help
      .visibleOptions(each)
      .filter(({ long }) => long !== "--help")
      .map(
        (option) =>
          `| \`${option.flags.replaceAll("|", "\\|")}\` | ${cellText(help.optionDescription(option))} |`,
      );
    const words = help
      .visibleArguments(each)
      .map((word) => `| \`${help.argumentTerm(word)}\` | ${cellText(word.description)} |`);
    const about = pageOf(each);
    return [
      [
        `## ${name}`,
        each.description(),
        ...(about?.more === undefined ? [] : [about.more]),
        ["| option | meaning |", "|---|---|", ...words, ...options].join("\n"),
        ...(about === undefined ? [] : [examplesText(about), `\`--json\`: \`${about.json}\``]),
        "",
      ].join("\n\n"),
    ];
  });
}

function cellText(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "\\<");
}

function examplesText({ examples }: CommandPage): string {
  const lines = examples.map(([line, does]) => `# ${does}\ncurfew ${line}`);
  return `\`\`\`sh\n${lines.join("\n")}\n\`\`\``;
}

function lifecycle(): string {
  const labels = new Map<string, string[]>();
  for (const { from, event, to } of LIFECYCLE) {
    for (const target of to) {
      const arrow = `${from} --> ${target}`;
      labels.set(arrow, [...(labels.get(arrow) ?? []), event]);
    }
  }
  const arrows = [...labels]
    // An arrow from a state to itself says nothing in a drawing; the table below has it.
    .filter(([arrow]) => arrow.split(" --> ")[0] !== arrow.split(" --> ")[1])
    .map(([arrow, events]) => `  ${arrow}: ${events.join(", ")}`);
  // Not in the table, since no row exists before it: an enqueue makes a job in one of these states.
  const births = ["available", "scheduled", "pending"].map((state) => `  [*] --> ${state}: enqueue`);
  const ends = JOB_STATES.filter(isTerminal).map((state) => `  ${state} --> [*]`);
  const rows = LIFECYCLE.map(
    ({ from, event, to, why }) => `| ${from} | ${event} | ${to.join(", ")} | ${why} |`,
  );
  const drawing = ["```mermaid", "stateDiagram-v2", ...births, ...arrows, ...ends, "```\n"].join("\n");
  const table = ["| from | event | to | why |", "|---|---|---|---|", ...rows].join("\n");
  const summary = [
    "What can happen to a job, and where it leads. What is not in the table is rejected and changes nothing.",
    "`wake` is the sweep finding that the job's next instant has come; what it finds decides where the job goes.",
  ].join("\n");
  return page("Lifecycle", "src/core/job/lifecycle.ts", summary, [drawing, `${table}\n`]);
}

function page(title: string, source: string, summary: string, sections: string[]): string {
  const notice = `<!-- Generated from ${source} by \`npm run docs\`. Change that file, not this one. -->`;
  return `# ${title}\n\n${notice}\n\n${summary}\n\n${sections.join("\n")}`;
}

const isCheck = process.argv.includes("--check");
for (const [path, render] of Object.entries(pages)) {
  const file = join(import.meta.dirname, "..", path);
  const text = await render();
  if (!isCheck) {
    writeFileSync(file, text);
    continue;
  }
  const onDisk = readOrUndefined(file);
  if (onDisk !== text) {
    console.error(`${path} ${onDisk === undefined ? "is missing" : "is out of date"}: run \`npm run docs\``);
    process.exitCode = 1;
  }
}

function readOrUndefined(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
