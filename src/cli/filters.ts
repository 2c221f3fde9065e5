import { type Command, Option } from "commander";
import { JOB_STATES } from "../core/job/job.ts";
import { isDurationText, parseDuration, parseInstant } from "../core/time.ts";
import { CommandFailed } from "./exit.ts";
import type { Fields } from "./target.ts";

/** Which jobs are meant, as the command line says it. */
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
export function withFilters(command: Command, leave: readonly "state"[] = []): Command {
  command
    .option("--queue <name>", "only jobs of this queue")
    .option("--type <type>", "only jobs of this type");
  if (!leave.includes("state"))
    command.addOption(new Option("--state <state>", "only jobs in this state").choices(JOB_STATES));
  return command
    .option(
      "--since <time>",
      "created at or after: 15m, 2h, 1d ago, or an instant such as 2030-01-31T12:00:00Z",
    )
    .option("--until <time>", "created before");
}

/** Filters that look into the last error; only actions on many jobs have them. */
export function withErrorFilters(command: Command): Command {
  return command
    .option("--error-type <type>", "only jobs whose last error has this type")
    .option("--error-code <code>", "only jobs whose last error has this code");
}

/** An instant for the wire: written out, or as long ago as a duration says. */
export function instantOption(text: string, now: number, option: string): string {
  if (isDurationText(text)) return new Date(now - parseDuration(text, option, { zero: true })).toISOString();
  return new Date(parseInstant(text, option)).toISOString();
}

/** An instant to come: written out, or after a duration. */
export function futureOption(text: string, now: number, option: string): string {
  if (isDurationText(text)) return new Date(now + parseDuration(text, option, { zero: true })).toISOString();
  return new Date(parseInstant(text, option)).toISOString();
}

/** The filter on the wire; only what was said. */
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

/** A filter for an action: it must name something, or say that all are meant. */
export function actionFilter(options: FilterOptions, now: number): Fields {
  const filter = filterFields(options, now);
  if (Object.keys(filter).length > 0) return filter;
  if (options.all) return { all: true };
  throw new CommandFailed(
    "usage",
    "which jobs? Name their ids, filter with --queue, --type and the like, or pass --all",
  );
}
