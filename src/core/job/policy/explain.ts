import { describeLearned, type LearnedLimit } from "../../stats/adaptive-limit.ts";
import { formatDuration, type Instant } from "../../time.ts";
import {
  type Backoff,
  dueAtOf,
  type JobRow,
  type Policy,
  type PolicyField,
  type SettingSource,
} from "../job.ts";
import { attemptLimits } from "./deadlines.ts";
import { isEndless, limitHoldWarning, queueHoldWarning } from "./endless.ts";
import {
  LOCAL_WORKER,
  type Resolved,
  type ResolvedFields,
  resolveBudgets,
  resolveFields,
  resolvePolicy,
  ruleOf,
  type SettingsBySource,
} from "./policy.ts";
import { backoffDelay, describeBackoff } from "./retry.ts";

export interface ExplainedField {
  readonly field: PolicyField | "wait" | "total";
  /** As a user would write it: `30s`, `none`, `fail`. */
  readonly value: string;
  readonly source: SettingSource;
  readonly lost: readonly { readonly source: SettingSource; readonly value: string }[];
  /** How an adaptive limit came about. */
  readonly note?: string;
}

/** Why a job has its limits (SEMANTICS 2). */
export interface Explanation {
  readonly fields: readonly ExplainedField[];
  /** Absolute instants. Before the first start, those of the attempt are what a start now would give. */
  readonly instants: {
    readonly soft: Instant | null;
    readonly hard: Instant | null;
    readonly total: Instant | null;
    readonly wait: Instant | null;
    readonly stall: Instant | null;
    readonly due: Instant;
  };
  /** Whether a start has fixed the policy, so that a redeploy no longer changes it. */
  readonly fixed: boolean;
  readonly warnings: readonly string[];
  /** The rule of an adaptive `attempt` and the runs behind its value; without `learned` it is the ceiling. */
  readonly adaptive?: Policy["adaptive"];
  toString(): string;
}

/** Further input of explainJob. */
export interface ExplainInput {
  /** How many jobs of its queue may be active at once. */
  readonly queueConcurrency?: number | undefined;
  /** Warnings from elsewhere, such as workers whose definition differs. */
  readonly warnings?: readonly string[];
  /** What a start now would fix for an adaptive limit. */
  readonly learned?: LearnedLimit | undefined;
}

/** Explains a job from its row and the current settings of all sources. */
export function explainJob(
  row: JobRow,
  settings: SettingsBySource,
  now: Instant,
  input: ExplainInput = {},
): Explanation {
  const said = row.options?.settings ? { ...settings, enqueue: row.options.settings } : settings;
  const resolved = resolveFields(said);
  const policy = row.policy ?? resolvePolicy(said, LOCAL_WORKER, () => input.learned);
  const { adaptive } = policy;
  const limits =
    row.startedAt === null ? attemptLimits(Math.max(now, dueAtOf(row.rank)), policy, row.totalAt) : row;
  const fixed = row.policy !== null;
  const fields = [
    ...budgetFields(row, said),
    ...policyFields(resolved, row).map((field) =>
      field.field === "attempt" ? attemptField(field, policy, said) : field,
    ),
  ];
  const instants = {
    soft: limits.softAt,
    hard: limits.hardAt,
    total: row.totalAt,
    wait: row.waitAt,
    stall: limits.stallAt,
    due: dueAtOf(row.rank),
  };
  const warnings = [
    ...warn(row, policy, resolved, now),
    ...endlessWarnings(row, policy, input.queueConcurrency),
    ...(input.warnings ?? []),
  ];
  return printable({ fields, instants, fixed, warnings, ...(adaptive && { adaptive }) });
}

/** `attempt` with the data behind an adaptive limit. Sources that lost have no limit yet, only a rule. */
function attemptField(field: ExplainedField, policy: Policy, said: SettingsBySource): ExplainedField {
  const { adaptive, attempt } = policy;
  const lost = field.lost.map(({ source, value }) => {
    const isRule = source !== "built-in" && ruleOf(said[source]) !== undefined;
    return { source, value: isRule ? `adaptive up to ${value}` : value };
  });
  if (!adaptive) return { ...field, lost };
  const note = describeLearned(adaptive.rule, adaptive.learned ?? undefined);
  return { ...field, lost, value: duration(attempt), note };
}

/** Adds the text, which JSON loses. */
export function printable(explanation: Omit<Explanation, "toString">): Explanation {
  const { fields, instants, fixed, warnings } = explanation;
  return { ...explanation, toString: () => print(fields, instants, fixed, warnings) };
}

function budgetFields(row: JobRow, settings: SettingsBySource): ExplainedField[] {
  const { wait, total } = resolveBudgets(settings);
  const fixed = (field: "wait" | "total", resolved: Resolved<number | null>): ExplainedField => {
    // Wait and total were fixed at enqueue. The current settings no longer matter to this job.
    const value = row.options?.[field] ?? null;
    const source = (field === "wait" ? row.options?.waitFrom : row.options?.totalFrom) ?? "built-in";
    const lost = resolved.lost
      .filter((other) => other.source !== source)
      .map((other) => ({ source: other.source, value: duration(other.value) }));
    if (field === "total" && row.options?.inheritedFrom !== undefined && row.totalAt !== null) {
      const left = formatDuration(row.totalAt - row.createdAt);
      return {
        field,
        value: `${left} (inherited from ${row.options.inheritedFrom === row.workflow ? "workflow" : "job"} ${row.options.inheritedFrom})`,
        source: "enqueue",
        lost: value === null ? lost : [{ source: source, value: duration(value) }, ...lost],
      };
    }
    return { field, value: duration(value), source: source, lost };
  };
  return [fixed("wait", wait), fixed("total", total)];
}

function policyFields(resolved: ResolvedFields, row: JobRow): ExplainedField[] {
  const { retention, ...fields } = resolved;
  const flat = { ...fields, retention: retention.completed } as Record<PolicyField, Resolved<unknown>>;
  return (Object.entries(flat) as [PolicyField, Resolved<unknown>][]).map(([field, found]) => {
    const fixedSource = row.policy?.sources[field];
    const show = (value: unknown) => showValue(field, value);
    if (!row.policy || fixedSource === undefined) {
      return {
        field,
        value: show(found.value),
        source: found.source,
        lost: found.lost.map(({ source, value }) => ({ source: source, value: show(value) })),
      };
    }
    const value = fixedValue(field, row);
    const others = [{ source: found.source, value: found.value }, ...found.lost].filter(
      ({ source }) => source !== fixedSource,
    );
    return {
      field,
      value: show(value),
      source: fixedSource,
      lost: others.map((other) => ({ source: other.source, value: show(other.value) })),
    };
  });
}

function fixedValue(field: PolicyField, row: JobRow): unknown {
  const policy = row.policy as NonNullable<JobRow["policy"]>;
  if (field === "retention") return policy.retention.completed;
  return field in policy ? policy[field as "attempt"] : policy.retry[field as "attempts"];
}

function duration(value: number | null): string {
  return value === null ? "none" : formatDuration(value);
}

const DURATIONS: ReadonlySet<string> = new Set(["attempt", "grace", "heartbeat", "retention"]);

function showValue(field: PolicyField, value: unknown): string {
  if (field === "grace" && value === null) return "unbounded";
  if (DURATIONS.has(field)) return duration(value as number | null);
  if (field === "backoff") return describeBackoff(value as Backoff);
  if (field === "except") return (value as readonly string[]).join(", ") || "nothing";
  return typeof value === "string" || typeof value === "number" ? String(value) : JSON.stringify(value);
}

function totalOf(row: JobRow): number | null {
  return row.options?.total ?? (row.totalAt === null ? null : row.totalAt - row.createdAt);
}

function endlessWarnings(
  row: JobRow,
  policy: ReturnType<typeof resolvePolicy>,
  queueConcurrency: number | undefined,
): string[] {
  if (!isEndless(policy, totalOf(row))) return [];
  const holds = [limitHoldWarning(row), queueHoldWarning(row.queue, queueConcurrency)];
  return [
    "no limit ends an attempt by force: one that hangs holds its slot for ever, and one whose process dies stays active until it is cancelled",
    ...holds.filter((hold) => hold !== undefined),
  ];
}

function warn(
  row: JobRow,
  policy: ReturnType<typeof resolvePolicy>,
  resolved: ResolvedFields,
  now: Instant,
): string[] {
  const warnings: string[] = [];
  const total = totalOf(row);
  const { attempts, backoff } = policy.retry;
  let backoffs = 0;
  for (let retry = 1; retry < Math.min(attempts, 100); retry++)
    backoffs += backoffDelay({ ...backoff, jitter: false }, retry, () => 0);
  if (total !== null && backoffs >= total) {
    warnings.push(
      `total (${formatDuration(total)}) is shorter than the backoffs of ${attempts} attempts (${formatDuration(backoffs)}): not all of them can run`,
    );
  }
  if (total !== null && policy.attempt !== null && policy.attempt > total) {
    warnings.push(
      `attempt (${formatDuration(policy.attempt)}) is longer than total (${formatDuration(total)}) and is cut to it`,
    );
  }
  if (policy.heartbeat !== null && policy.grace !== null && policy.grace > policy.heartbeat) {
    warnings.push(
      `grace (${formatDuration(policy.grace)}) is longer than heartbeat (${formatDuration(policy.heartbeat)}): a handler that goes silent in its grace is ended by the stall`,
    );
  }
  if (resolved.heartbeat.source !== "built-in" && policy.beats === "handler" && policy.heartbeat !== null) {
    warnings.push(
      `heartbeat is named (${resolved.heartbeat.source}): the handler itself must call beat(), progress() or checkpoint() every ${formatDuration(policy.heartbeat)}`,
    );
  }
  if (row.totalAt !== null && row.totalAt <= now && row.finishedAt === null)
    warnings.push("total is over: the job ends at the next sweep");
  return warnings;
}

function print(
  fields: readonly ExplainedField[],
  instants: Explanation["instants"],
  fixed: boolean,
  warnings: readonly string[],
): string {
  const width = Math.max(13, ...fields.map(({ value }) => value.length));
  const rows = fields.map(({ field, value, source, lost, note }) => {
    const others = lost.map((other) => `${other.source} said ${other.value}`).join(", ");
    const row = `${field.padEnd(12)}${value.padEnd(width)} by ${source}${others ? ` (${others})` : ""}`;
    return note === undefined ? row : `${row}\n${" ".repeat(12)}${note}`;
  });
  const isBeaten = fields.some(({ field, value }) => field === "heartbeat" && value !== "none");
  const never = (name: string) =>
    name === "stall" && isBeaten ? "once its worker has been silent for the heartbeat" : "never";
  const times = Object.entries(instants).map(
    ([name, at]) => `${name.padEnd(12)}${at === null ? never(name) : new Date(at).toISOString()}`,
  );
  const state = fixed
    ? "Policies were fixed at the first start."
    : "Policies are what a first start now would fix.";
  return [
    state,
    ...rows,
    "",
    ...times,
    ...(warnings.length > 0 ? ["", ...warnings.map((text) => `warning: ${text}`)] : []),
  ].join("\n");
}
