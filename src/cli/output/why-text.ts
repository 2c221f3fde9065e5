import type { Fields } from "../target/target.ts";
import { shownState } from "./job-table.ts";
import { dim, paint, paintState, printable } from "./paint.ts";
import { relativeText } from "./times.ts";
import { wrapText } from "./wrap.ts";

/** A word of a command line, quoted if a shell would read it otherwise. */
function word(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const NAMED = /"(?<name>(?:[^"\\]|\\.)*)"/.source;

const COUNT_OPTION = "--concurrency <count>";
const RATE_OPTION = "--rate <count/time>";

/** Calls of the library in the texts of `why`, and the command that does the same. The library gives the same texts. */
const COMMANDS: readonly (readonly [
  call: RegExp,
  command: (name: string, job: string, fields: string) => string,
])[] = [
  [call("retry"), (id) => `curfew retry ${word(id)}`],
  [call("cancel"), (id) => `curfew cancel ${word(id)}`],
  [call("activate"), (id) => `curfew activate ${word(id)}`],
  [runNow(), (id) => `curfew run ${word(id)}`],
  [call("extend"), (id, _job, fields) => `curfew extend ${word(id)} ${limitOption(fields)}`],
  [
    call("limits\\.put"),
    (key, _job, fields) =>
      `curfew limits set ${word(key)} ${/rate/.test(fields) ? RATE_OPTION : COUNT_OPTION}`,
  ],
  [call("queues\\.configure"), (queue) => `curfew queues limit ${word(queue)} --concurrency <count>`],
  [call("queues\\.resume"), (queue) => `curfew queues resume ${word(queue)}`],
  [/engine\.maintenance\.end\(\)/g, () => "curfew maintenance off"],
  [/engine\.advise\(\)/g, () => "curfew advise"],
  [/engine\.audit\b/g, () => "curfew audit"],
  [/handle\.prioritise\(\)/g, (_name, job) => `curfew extend ${job} --priority <number>`],
];

function call(name: string): RegExp {
  return new RegExp(`engine\\.${name}\\(${NAMED}(?<fields>[^)]*)\\)`, "g");
}

function runNow(): RegExp {
  return new RegExp(`engine\\.job\\(${NAMED}\\)\\.runNow\\(\\)`, "g");
}

/** `{ attempt: "30m" }` -> --attempt 30m; `…` -> an attempt to be filled in. */
function limitOption(fields: string): string {
  const [, name = "attempt", value] = /(\w+)(?:: "(\w+)")?/.exec(fields) ?? [];
  return `--${name} ${value ?? "<duration>"}`;
}

/** The text of a reason with commands in the place of calls of the library. */
export function inCommands(text: string, job: string): string {
  let said = text;
  for (const [pattern, command] of COMMANDS) {
    said = said.replaceAll(pattern, (...match) => {
      const groups = match.at(-1) as { readonly name?: string; readonly fields?: string } | string;
      const { name = "", fields = "" } = typeof groups === "object" ? groups : {};
      return command(name, job, fields);
    });
  }
  return said.replaceAll(/\b([Cc])all (?=curfew )/g, (_all, letter: string) =>
    letter === "C" ? "Run " : "run ",
  );
}

/** The command that the advice names first; null if it names none. */
function commandOf({ name, target, text }: Fields, job: string): string | null {
  const look = typeof target === "string" ? LOOK[String(name)]?.(target) : undefined;
  const named = COMMANDS.flatMap(([pattern]) => [...String(text).matchAll(pattern)])
    .sort((a, b) => a.index - b.index)
    .map(([said]) => inCommands(said, job));
  return named[0] ?? look ?? null;
}

/** The answer with the command beside the text of each action. */
export function withCommands(why: Fields): Fields {
  const reasons = (why.reasons as readonly Fields[]).map((reason) => {
    const action = reason.action as Fields;
    return { ...reason, action: { ...action, command: commandOf(action, String(why.job_id)) } };
  });
  return { ...why, reasons };
}

/** A command to look further, for advice that names none. */
const LOOK: Readonly<Record<string, (target: string) => string>> = {
  "look-at-job": (id) => `curfew why ${word(id)}`,
  "look-at-workflow": (id) => `curfew workflows show ${word(id)}`,
  "look-at-worker": () => "curfew workers ls",
  "start-worker": (queue) => `curfew work <module> --queues ${word(queue)}`,
};

export function whyText(why: Fields, now: number): string {
  const reasons = why.reasons as readonly Fields[];
  const job = String(why.job_id);
  const lines = reasons.flatMap(({ sentence, until, action }, index) => {
    const { name, target, text } = action as Fields;
    const look = typeof target === "string" ? LOOK[String(name)]?.(printable(target)) : undefined;
    const ends = until === null ? "" : ` (until ${relativeText(until, now)})`;
    const said = wrapText(`${index + 1}. ${printable(inCommands(String(sentence), job))}${ends}`, "", "   ");
    return [
      index === 0 ? paint("bold", said) : said,
      wrapText(`→ ${printable(inCommands(String(text), job))}`, "   ", "     "),
      ...(look === undefined ? [] : [`     ${dim(look)}`]),
    ];
  });
  return [`Job ${job} is ${paintState(shownState(why))}.`, ...lines].join("\n");
}
