import type { Command } from "commander";
import { parseDuration } from "../../core/time.ts";
import { REASON, type ReasonOption, withCommands, withPage, withTarget } from "../declare.ts";
import { dim, printable } from "../output/paint.ts";
import { relativeText } from "../output/times.ts";
import { wrapText } from "../output/wrap.ts";
import { act } from "../run-command.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/admin/maintenance";
const JSON_SHAPE = '{"enabled","reason","started_at","ends_at","estimated_end"}';

export function register(maintenance: Command): void {
  maintenance.description("Maintenance: no queue hands out jobs, in all processes.");
  withCommands(maintenance, { status: declareStatus, on: declareOn, off: declareOff });
}

function declareStatus(command: Command): void {
  command.description("Say whether maintenance is on.");
  withPage(withTarget(command), {
    examples: [["maintenance status", "since when, until when, and why"]],
    json: JSON_SHAPE,
  });
  act(command, async ({ target, output }) => {
    const view = await target.get(PATH);
    output.answer(view, () => statusText(view, target.now()));
  });
}

interface OnOptions {
  readonly for?: string;
  readonly estimate?: string;
  readonly reason?: string;
}

function declareOn(command: Command): void {
  command.description(
    "Stop workers from taking jobs of any queue. New jobs are accepted, running ones continue.",
  );
  withTarget(command)
    .option("--for <duration>", "end it after this time, such as 30m; without it, maintenance off ends it")
    .option("--estimate <duration>", "how long it may take, for people who ask")
    .option("--reason <text>", "why, for the audit and for people who ask");
  withPage(command, {
    examples: [['maintenance on --for 30m --reason "database upgrade"', "for half an hour at most"]],
    json: JSON_SHAPE,
    more: "Workers in other processes stop within 5 seconds. Deadlines of jobs keep running.",
  });
  act<OnOptions>(command, async ({ target, output }, options) => {
    const view = await target.send("POST", PATH, {
      enabled: true,
      ...(options.for !== undefined && { duration: durationText(options.for, "--for") }),
      ...(options.estimate !== undefined && {
        estimated_duration: durationText(options.estimate, "--estimate"),
      }),
      reason: options.reason,
    });
    output.answer(view, () => statusText(view, target.now()));
  });
}

/** A duration for the wire, in the form of ISO 8601. */
function durationText(text: string, option: string): string {
  return `PT${parseDuration(text, option) / 1_000}S`;
}

function declareOff(command: Command): void {
  command.description("Let workers take jobs again.");
  withTarget(command).option(...REASON);
  withPage(command, { examples: [["maintenance off", "all queues at once"]], json: JSON_SHAPE });
  act<ReasonOption>(command, async ({ target, output }, { reason }) => {
    const view = await target.send("POST", PATH, { enabled: false, reason });
    output.answer(view, () => statusText(view, target.now()));
  });
}

function statusText({ enabled, reason, started_at, ends_at, estimated_end }: Fields, now: number): string {
  if (enabled !== true) return "Maintenance is off: workers take jobs.";
  const end = ends_at ?? estimated_end;
  const until =
    end === null || end === undefined ? "until curfew maintenance off" : `ends ${relativeText(end, now)}`;
  const why = typeof reason === "string" ? `\n${dim(wrapText(printable(reason), ""))}` : "";
  const state = `Maintenance is on: no queue hands out jobs. It began ${relativeText(started_at, now)}, ${until}.`;
  return wrapText(state, "") + why;
}
