import type { Explanation, Job } from "../../../../ojs/replies/wire-replies.ts";
import { limitText, readLimit } from "../../../ui/format.ts";
import type { LimitName } from "../../../ui/look.ts";

/** The five limits of a job in milliseconds (null: none), who set them, and the instants they lead to. */
export interface Limits {
  readonly wait: number | null;
  readonly attempt: number | null;
  readonly grace: number | null;
  readonly heartbeat: number | null;
  readonly total: number | null;
  readonly waitAt: number | null;
  readonly totalAt: number | null;
  readonly softAt: number | null;
  readonly hardAt: number | null;
  readonly stallAt: number | null;
  /** When the job may start, or is tried again. */
  readonly dueAt: number;
  readonly rules: Readonly<Record<LimitName, Rule>>;
  /** False: the job ended in the write that would have noted what its worker decided: attempt, grace and heartbeat. */
  readonly isRecorded: boolean;
  /** Whether beats come from the worker itself. */
  readonly isBeatenByWorker: boolean;
}

export interface Rule {
  readonly value: string;
  readonly by: string;
  /** What other sources said: for the one who asks why. */
  readonly others: string;
}

const UNRECORDED: Rule = {
  value: "–",
  by: "definition",
  others: "which a job that ends at once does not note",
};
const OF_WORKER: ReadonlySet<LimitName> = new Set(["attempt", "grace", "heartbeat"]);
const NAMES: readonly LimitName[] = ["wait", "attempt", "grace", "heartbeat", "total"];

export function limitsOf(job: Job, explanation: Explanation): Limits {
  const { instants } = explanation;
  const createdAt = Date.parse(job.created_at);
  const isGone = job.state === "completed" || job.state === "discarded" || job.state === "cancelled";
  const isRecorded = explanation.fixed || !isGone || job.attempt === 0;
  const rule = (name: LimitName) =>
    isRecorded || !OF_WORKER.has(name) ? ruleOf(explanation, name) : UNRECORDED;
  const rules = Object.fromEntries(NAMES.map((name) => [name, rule(name)])) as Limits["rules"];
  const read = (name: LimitName) => readLimit(rules[name].value) ?? null;
  const wait = read("wait") ?? job.enqueue_ttl_ms ?? null;
  const expiresAt = job.expires_at ? Date.parse(job.expires_at) : null;
  return {
    wait,
    attempt: read("attempt"),
    grace: read("grace"),
    heartbeat: read("heartbeat"),
    total: read("total"),
    waitAt: instants.wait ?? expiresAt ?? (wait === null ? null : createdAt + wait),
    totalAt: instants.total,
    softAt: isGone ? null : instants.soft,
    hardAt: isGone ? null : instants.hard,
    stallAt: isGone ? null : instants.stall,
    dueAt: instants.due,
    rules,
    isRecorded,
    isBeatenByWorker: rules.heartbeat.by === "built-in",
  };
}

function ruleOf({ fields }: Explanation, name: LimitName): Rule {
  const field = fields.find((one) => one.field === name);
  if (!field) return { value: "none", by: "built-in", others: "" };
  const lost = field.lost.map(({ source, value }) => `${source} said ${value}`).join(", ");
  const others = [field.note ?? "", lost].filter((text) => text !== "").join("; ");
  return { value: field.value, by: field.source, others };
}

/** The limits as they would be after an extension, for the preview. The server decides; this only draws. */
export function extended(
  limits: Limits,
  job: Job,
  { attempt, total }: { attempt?: number | undefined; total?: number | undefined },
): Limits {
  const startedAt = job.started_at ? Date.parse(job.started_at) : null;
  const anchor =
    limits.totalAt !== null && limits.total !== null
      ? limits.totalAt - limits.total
      : Date.parse(job.created_at);
  const totalAt = total === undefined ? limits.totalAt : anchor + total;
  const length = attempt ?? limits.attempt;
  const wanted = startedAt === null || length === null ? limits.softAt : startedAt + length;
  const softAt = wanted === null ? totalAt : totalAt === null ? wanted : Math.min(wanted, totalAt);
  const isRunning = job.state === "active";
  const shown = (name: LimitName, value: number | undefined): Rule =>
    value === undefined ? limits.rules[name] : { value: limitText(value), by: "preview", others: "" };
  return {
    ...limits,
    rules: { ...limits.rules, attempt: shown("attempt", attempt), total: shown("total", total) },
    attempt: length,
    total: total ?? limits.total,
    totalAt,
    softAt: isRunning ? softAt : limits.softAt,
    hardAt: isRunning && softAt !== null && limits.grace !== null ? softAt + limits.grace : limits.hardAt,
  };
}

/** The delay before the next attempt, as far as the words of the policy say; null where it cannot be told. */
export function nextBackoff(
  job: Job,
  explanation: Explanation,
): { readonly span: number; readonly isExact: boolean } | null {
  const text = explanation.fields.find(({ field }) => field === "backoff")?.value ?? "";
  const [, kind, first] = /^(\w+) (?:from )?(\S+?)(?:,|$)/.exec(text) ?? [];
  const start = first === undefined ? undefined : readLimit(first);
  if (start === undefined || kind === undefined) return null;
  const retry = Math.max(1, job.attempt);
  const factor = Number(/, x([\d.]+)/.exec(text)?.[1] ?? 2);
  const power = Number(/, power ([\d.]+)/.exec(text)?.[1] ?? 1);
  const most = readLimit(/at most (\S+?)(?:,|$)/.exec(text)?.[1] ?? "") ?? Number.POSITIVE_INFINITY;
  const grown: Record<string, number> = {
    constant: start,
    linear: start * retry,
    exponential: start * factor ** (retry - 1),
    polynomial: start * retry ** power,
  };
  const span = grown[kind];
  return span === undefined ? null : { span: Math.min(span, most), isExact: !text.includes("jitter") };
}

/** A limit as its row says it. One that was computed, such as what a workflow had left, is said in whole seconds. */
export function lengthText(value: string): string {
  const text = value.replace(/ \(.*/, "");
  const span = /^\d{5,}ms$/.test(text) ? readLimit(text) : undefined;
  return span === undefined ? text : `~${limitText(Math.round(span / 1_000) * 1_000)}`;
}
