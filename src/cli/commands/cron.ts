import type { Command } from "commander";
import type { BusinessCalendar, NamedCalendars } from "../../core/calendar/business-calendar.ts";
import { countNumber, REASON, type ReasonOption, withPage, withTarget } from "../declare.ts";
import { dim, paintState, printable } from "../output/paint.ts";
import { type Column, fieldsText, listText, tableText } from "../output/table.ts";
import { relativeText, relativeTime } from "../output/times.ts";
import { act, type TargetContext } from "../run-command.ts";
import { orNearest } from "../target/not-found.ts";
import { readItems } from "../target/read-items.ts";
import type { Fields, Target } from "../target/target.ts";

const PATH = "/ojs/v1/cron";

export function register(cron: Command): void {
  cron.description("Crons: jobs that are enqueued on a schedule.");
  declareList(cron.command("ls"));
  declareShow(cron.command("show"));
  declareNext(cron.command("next"));
  declareRun(cron.command("run"));
  declarePause(cron.command("pause"), "pause", "Pause a cron; jobs that it enqueued continue.");
  declarePause(cron.command("resume"), "resume", "Let a paused cron fire again, from now on.");
}

async function names(target: Target): Promise<readonly string[]> {
  const { items } = await target.get(PATH, { limit: 200 });
  return (items as readonly Fields[]).map(({ name }) => String(name));
}

function onCron(target: Target, name: string, ask: (path: string) => Promise<Fields>): Promise<Fields> {
  const path = `${PATH}/${encodeURIComponent(name)}`;
  return orNearest(
    "cron",
    name,
    () => names(target),
    () => ask(path),
  );
}

const columns = (now: number): Column<Fields>[] => [
  { title: "CRON", show: ({ name }) => printable(String(name)), shrinkTo: 12 },
  { title: "STATE", show: ({ status }) => paintState(String(status)) },
  { title: "WHEN", show: ({ expression }) => printable(String(expression)), shrinkTo: 12 },
  { title: "ZONE", show: ({ timezone }) => printable(String(timezone)), shrinkTo: 10, drop: 2 },
  { title: "NEXT", show: ({ next_run_at }) => relativeText(next_run_at, now) },
  { title: "LAST", show: ({ last_run_at }) => relativeText(last_run_at, now), drop: 3 },
  { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 10, drop: 1 },
];

const NO_CRONS = "No crons. Code makes them: engine.crons.put(name, { cron, job })";

function declareList(command: Command): void {
  command.description("List crons and when they fire next.");
  withPage(withTarget(command), {
    examples: [["cron ls", "all of them"]],
    json: '{"items":[{"name","expression","timezone","enabled","next_run_at","last_run_at","type",…}]}',
  });
  act(command, async ({ target, output }) => {
    const { items } = await readItems(target, PATH);
    output.answer({ items }, () => listText(columns(target.now()), items, NO_CRONS));
  });
}

function declareShow(command: Command): void {
  command.description("Show a cron and its last runs.").argument("<name>", "its name");
  withPage(withTarget(command), {
    examples: [["cron show nightly-report", "its schedule, its job, and the outcome of its last runs"]],
    json: '{"name","expression","timezone",…,"runs":[{"scheduled_for","at","job_id","state"?,"skipped"?}]}',
  });
  act(command, async ({ target, output }, _options, [name]) => {
    const { cron } = await onCron(target, name as string, (path) => target.get(path));
    const { runs } = await onCron(target, name as string, (path) => target.get(`${path}/history`));
    output.answer({ ...(cron as Fields), runs }, () =>
      cronText(cron as Fields, runs as readonly Fields[], target.now()),
    );
  });
}

function cronText(cron: Fields, runs: readonly Fields[], now: number): string {
  const fields = fieldsText([
    ["name", printable(String(cron.name))],
    ["state", paintState(String(cron.status))],
    ["when", `${printable(String(cron.expression))} in ${printable(String(cron.timezone))}`],
    ...(cron.calendar === undefined
      ? []
      : [["calendar", `${printable(String(cron.calendar))}, closed days: ${cron.closed_days}`] as const]),
    ["overlap", String(cron.overlap_policy)],
    ["missed", JSON.stringify(cron.missed_policy)],
    ["next", `${relativeText(cron.next_run_at, now)}  ${dim(String(cron.next_run_at ?? ""))}`],
    ["job", printable(JSON.stringify(cron.job_template))],
  ]);
  if (runs.length === 0) return `${fields}\n\nThe cron has not run yet.`;
  const table = tableText<Fields>(
    [
      { title: "DUE", show: ({ scheduled_for }) => relativeText(scheduled_for, now) },
      { title: "JOB", show: ({ job_id }) => String(job_id ?? "-") },
      {
        title: "STATE",
        show: ({ state, skipped }) => (skipped ? `skipped: ${skipped}` : paintState(String(state ?? "-"))),
      },
      { title: "", show: ({ manual }) => (manual ? "by hand" : ""), drop: 1 },
    ],
    runs,
  );
  return `${fields}\n\n${table}`;
}

function declareNext(command: Command): void {
  command.description("Say when a cron fires next.").argument("<name>", "its name");
  withTarget(command).option("-n, --count <count>", "how many instants", countNumber, 5);
  withPage(command, {
    examples: [["cron next nightly-report -n 10", "the next ten instants, in its zone and in UTC"]],
    json: '{"name","timezone","enabled","items":[{"at","local"}]}',
    more: "Instants after the first are computed from the expression. The definition of the cron says what it does when clocks change.",
  });
  act<{ readonly count: number }>(command, next);
}

const MOST_INSTANTS = 1_000;

async function next(
  { target, output }: TargetContext,
  { count }: { readonly count: number },
  [name]: readonly string[],
): Promise<void> {
  const { cron } = await onCron(target, name as string, (path) => target.get(path));
  const { expression, timezone, enabled, calendar } = cron as Fields;
  const { parseSchedule } = await import("../../core/cron/expression.ts");
  const { preview } = await import("../../core/cron/instants-of.ts");
  const calendars = calendar === undefined ? undefined : await calendarOf(target, String(calendar));
  const options = { cron: String(expression), zone: String(timezone) };
  const days = calendars && { calendar: String(calendar), closed: (cron as Fields).closed_days as "skip" };
  const schedule = parseSchedule({ ...options, ...days }, "cron", calendars);
  const now = target.now();
  const items = preview(schedule, now, Math.min(count, MOST_INSTANTS), calendars).map(
    ({ at, local, offset }) => ({
      at: new Date(at).toISOString(),
      local: local + offset,
    }),
  );
  output.answer({ name, timezone, enabled, items }, () =>
    tableText(
      [
        { title: "IN", show: ({ at }) => relativeTime(Date.parse(at), now) },
        { title: printable(String(timezone)).toUpperCase(), show: (each) => each.local },
        { title: "UTC INSTANT", show: ({ at }) => at, drop: 1 },
      ],
      items,
    ),
  );
  if (enabled === false) output.note(`The cron is paused; resume it with: curfew cron resume ${name}`);
}

/** The calendar of a cron, as the schedule asks for it. */
async function calendarOf(target: Target, name: string): Promise<NamedCalendars> {
  const { calendar } = await target.get(`/ojs/v1/admin/calendars/${encodeURIComponent(name)}`);
  return { find: (wanted) => (wanted === name ? (calendar as unknown as BusinessCalendar) : undefined) };
}

function declareRun(command: Command): void {
  command
    .description("Enqueue the job of a cron now; its schedule does not change.")
    .argument("<name>", "its name");
  withPage(withTarget(command), {
    examples: [["cron run nightly-report", "prints the id of the job"]],
    json: "the job as in docs/openapi.json",
  });
  act(command, async ({ target, output }, _options, [name]) => {
    const { job } = await onCron(target, name as string, (path) =>
      target.send("POST", `${path}/trigger`, {}),
    );
    output.answer(job, () => String((job as Fields).id));
  });
}

function declarePause(command: Command, action: "pause" | "resume", says: string): void {
  command.description(says).argument("<name>", "its name");
  withTarget(command).option(...REASON);
  withPage(command, {
    examples: [[`cron ${action} nightly-report`, "for all processes"]],
    json: '{"name","enabled","next_run_at",…}',
  });
  act<ReasonOption>(command, async ({ target, output }, { reason }, [name]) => {
    const { cron } = await onCron(target, name as string, (path) =>
      target.send("POST", `${path}/${action}`, { reason }),
    );
    const { next_run_at } = cron as Fields;
    output.answer(cron, () =>
      action === "pause"
        ? `Cron ${printable(name as string)} is paused.`
        : `Cron ${printable(name as string)} fires next ${relativeText(next_run_at, target.now())}.`,
    );
  });
}
