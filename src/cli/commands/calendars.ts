import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { isObject } from "../../core/is-object.ts";
import { REASON, withCommands, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { printable } from "../output/paint.ts";
import { type Column, fieldsText, listText, tableText } from "../output/table.ts";
import { relativeText } from "../output/times.ts";
import { act } from "../run-command.ts";
import { orNearest } from "../target/not-found.ts";
import type { Fields, Target } from "../target/target.ts";

const PATH = "/ojs/v1/admin/calendars";
const CALENDAR = '{"name","zone","week":{"mon"?,…},"days":[{"date","hours"?,"name"?}],"until"}';

export function register(calendars: Command): void {
  calendars.description("Business calendars: working days, holidays and hours, for timeouts and crons.");
  withCommands(calendars, {
    ls: declareList,
    show: declareShow,
    put: declarePut,
    delete: declareDelete,
    when: declareWhen,
  });
}

const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}`;

async function all(target: Target): Promise<readonly Fields[]> {
  return (await target.get(PATH, { per_page: 200 })).items as readonly Fields[];
}

function onCalendar(target: Target, name: string, ask: () => Promise<Fields>): Promise<Fields> {
  const names = async () => (await all(target)).map((calendar) => String(calendar.name));
  return orNearest("calendar", name, names, ask);
}

const columns: Column<Fields>[] = [
  { title: "CALENDAR", show: ({ name }) => printable(String(name)), shrinkTo: 12 },
  { title: "ZONE", show: ({ zone }) => printable(String(zone)), shrinkTo: 10 },
  { title: "WEEK", show: ({ week }) => weekText(week as Fields), shrinkTo: 12 },
  { title: "DAYS", show: ({ days }) => String((days as unknown[]).length), align: "right" },
  { title: "KNOWN UNTIL", show: ({ until }) => String(until ?? "-"), drop: 1 },
];

function weekText(week: Fields): string {
  return Object.entries(week)
    .map(([name, hours]) => `${name} ${hours}`)
    .join(", ");
}

function declareList(command: Command): void {
  command.description("List business calendars.");
  withPage(withTarget(command), {
    examples: [["calendars ls", "their zones, their hours, and how many special days they have"]],
    json: `{"items":[${CALENDAR}]}`,
  });
  act(command, async ({ target, output }) => {
    const items = await all(target);
    output.answer({ items }, () => listText(columns, items, NO_CALENDARS));
  });
}

const NO_CALENDARS = "No calendars. Store one with: curfew calendars put <name> <file>";

function declareShow(command: Command): void {
  command.description("Show a business calendar with its special days.").argument("<name>", "its name");
  withPage(withTarget(command), {
    examples: [["calendars show frankfurt", "its week, its holidays and its half days"]],
    json: CALENDAR,
  });
  act(command, async ({ target, output }, _options, [name]) => {
    const { calendar } = await onCalendar(target, name as string, () => target.get(pathOf(name as string)));
    output.answer(calendar, () => calendarText(calendar as Fields));
  });
}

function calendarText(calendar: Fields): string {
  const fields = fieldsText([
    ["name", printable(String(calendar.name))],
    ["zone", printable(String(calendar.zone))],
    ["week", weekText(calendar.week as Fields)],
    ["known until", String(calendar.until ?? "-")],
  ]);
  const days = calendar.days as readonly Fields[];
  if (days.length === 0) return `${fields}\n\nIt has no special days.`;
  const table = tableText<Fields>(
    [
      { title: "DAY", show: ({ date }) => String(date) },
      { title: "HOURS", show: ({ hours }) => String(hours ?? "closed") },
      { title: "", show: ({ name }) => printable(String(name ?? "")), shrinkTo: 10 },
    ],
    days,
  );
  return `${fields}\n\n${table}`;
}

function declarePut(command: Command): void {
  command
    .description(
      "Store a business calendar from a JSON file; what was computed with the old one is resolved anew.",
    )
    .argument("<name>", "its name")
    .argument("<file>", 'JSON: {"zone","week","days"?,"until"?}');
  withTarget(command)
    .option("--ics <file>", "an iCalendar file instead of days: each all-day event is a closed day")
    .option(...REASON);
  withPage(command, {
    examples: [
      ["calendars put frankfurt frankfurt.json", "its week and its days"],
      [
        "calendars put frankfurt frankfurt.json --ics hessen.ics",
        "its week, with the holidays of an iCalendar file",
      ],
    ],
    json: `{"calendar":${CALENDAR},"moved"}`,
  });
  act<{ readonly ics?: string; readonly reason?: string }>(
    command,
    async ({ target, output }, options, [name, file]) => {
      const calendar = await readJson(file as string);
      const ics = options.ics === undefined ? {} : { ics: await readText(options.ics) };
      const reason = options.reason === undefined ? {} : { reason: options.reason };
      const reply = await target.send("PUT", pathOf(name as string), { ...calendar, ...ics, ...reason });
      output.answer(
        reply,
        () =>
          `Calendar ${printable(name as string)} is stored; ${reply.moved} timeouts and crons have another time now.`,
      );
    },
  );
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CommandFailed("usage", `calendars put: ${file} cannot be read (${(error as Error).message})`, {
      cause: error,
    });
  }
}

async function readJson(file: string): Promise<Fields> {
  const text = await readText(file);
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Refused below.
  }
  throw new CommandFailed(
    "usage",
    `calendars put: ${file} is not a JSON object; write {"zone","week","days"?}`,
  );
}

function declareDelete(command: Command): void {
  command
    .description("Delete a business calendar; pending timeouts keep their instants.")
    .argument("<name>", "its name");
  withPage(withTarget(command), {
    examples: [["calendars delete frankfurt", "refused while a cron uses it"]],
    json: `{"deleted","calendar":${CALENDAR}}`,
  });
  act(command, async ({ target, output }, _options, [name]) => {
    const reply = await onCalendar(target, name as string, () =>
      target.send("DELETE", pathOf(name as string)),
    );
    output.answer(reply, () => `Calendar ${printable(name as string)} is deleted.`);
  });
}

interface WhenOptions {
  readonly workingDays?: string;
  readonly at?: string;
  readonly cutOff?: string;
  readonly date?: string;
}

function declareWhen(command: Command): void {
  command
    .description("Say which instant a time by a calendar means now, and why.")
    .argument("<name>", "the calendar");
  withTarget(command)
    .option("--working-days <count>", "working days after today, or after --date; below 0: before it")
    .option("--at <time>", 'a time of day such as 17:00, "open" or "close"')
    .option("--cut-off <time>", "from this time of day on, today no longer counts")
    .option("--date <day>", "count from this day, such as 2030-01-31");
  withPage(command, {
    examples: [
      ["calendars when frankfurt --working-days 2 --at 17:00 --cut-off 15:00", "an instant and a sentence"],
    ],
    json: '{"at","local","offset","zone","calendar","rule","text"}',
  });
  act<WhenOptions>(command, async ({ target, output }, { workingDays, at, cutOff, date }, [name]) => {
    const when = {
      calendar: name,
      working_days: workingDays === undefined ? undefined : Number(workingDays),
      at,
      cut_off: cutOff,
      date,
    };
    const reply = await target.send("POST", "/ojs/v1/admin/when", { when });
    output.answer(reply, () => `${relativeText(reply.at, target.now())}  ${printable(String(reply.text))}`);
  });
}
