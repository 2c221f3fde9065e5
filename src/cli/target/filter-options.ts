import { type Command, Option } from "commander";
import { JOB_STATES } from "../../core/job/job.ts";
import { isDurationText, parseDuration, parseInstant } from "../../core/time.ts";
import { CommandFailed } from "../exit.ts";
import type { Fields } from "./target.ts";

/** The filters of a command line. */
export interface FilterOptions {
  readonly queue?: string;
  readonly type?: string;
  readonly state?: string;
  readonly since?: string;
  readonly until?: string;
  readonly errorType?: string;
  readonly errorCode?: string;
  readonly all?: boolean;
}

/** The filters that every list of jobs takes. */
export function withFilters(
  command: Command,
  leave: readonly "state"[] = [],
  states: readonly string[] = JOB_STATES,
): Command {
  command
    .option("--queue <name>", "only jobs of this queue")
    .option("--type <type>", "only jobs of this type");
  if (!leave.includes("state"))
    command.addOption(new Option("--state <state>", "only jobs in this state").choices(states));
  return command
    .option(
      "--since <time>",
      "created at or after: 15m, 2h, 1d ago, or an instant such as 2030-01-31T12:00:00Z",
    )
    .option("--until <time>", "created before");
}

/** Filters by the last error; only actions on many jobs have them. */
export function withErrorFilters(command: Command): Command {
  return command
    .option("--error-type <type>", "only jobs whose last error has this type")
    .option("--error-code <code>", "only jobs whose last error has this code");
}

/** An instant for the wire: as written, or a duration before now. */
export function instantOption(text: string, now: number, option: string): string {
  if (isDurationText(text)) return new Date(now - parseDuration(text, option, { zero: true })).toISOString();
  return writtenInstant(text, option);
}

function writtenInstant(text: string, option: string): string {
  try {
    return new Date(parseInstant(text, option)).toISOString();
  } catch (error) {
    const fix = "write 15m, 2h, 1d or 2026-01-31T10:00:00Z";
    throw new CommandFailed("usage", `${option}: ${JSON.stringify(text)} is not a time; ${fix}`, {
      cause: error,
    });
  }
}

/** An instant for the wire: as written, or a duration after now. */
export function futureOption(text: string, now: number, option: string): string {
  if (isDurationText(text)) return new Date(now + parseDuration(text, option, { zero: true })).toISOString();
  return writtenInstant(text, option);
}

/** The filter for the wire, with the given options only. */
export function filterFields(options: FilterOptions, now: number): Fields {
  const { queue, type, state, since, until, errorType, errorCode } = options;
  return {
    ...(queue !== undefined && { queue }),
    ...(type !== undefined && { type }),
    ...(state !== undefined && { state }),
    ...(since !== undefined && { since: instantOption(since, now, "--since") }),
    ...(until !== undefined && { until: instantOption(until, now, "--until") }),
    ...(errorType !== undefined && { error_type: errorType }),
    ...(errorCode !== undefined && { error_code: errorCode }),
  };
}

/** The filter of an action. An empty one needs --all, so that nobody changes all jobs by mistake. */
export function actionFilter(options: FilterOptions, now: number): Fields {
  const filter = filterFields(options, now);
  if (Object.keys(filter).length > 0) return filter;
  if (options.all) return { all: true };
  throw new CommandFailed("usage", "no jobs given; pass ids, a filter such as --queue or --type, or --all");
}
