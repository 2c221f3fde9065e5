import { refuse, refuseUnknownKeys } from "../../errors.ts";
import {
  type Adaptive,
  type AdaptiveRule,
  isAdaptive,
  type LearnedLimit,
  parseAdaptive,
} from "../../stats/adaptive-limit.ts";
import { type Duration, formatDuration, parseDuration } from "../../time.ts";
import type {
  Policy,
  PolicyField,
  PolicySettings,
  Retention,
  RetryPolicy,
  SettingSource,
  Terminal,
  TimeoutMode,
  TimeoutSettings,
} from "../job.ts";
import { BUILT_IN_RETRY, parseRetry, type RetryOptions } from "./retry.ts";

/** The five timeouts and the mode, as users write them (SEMANTICS 1). */
export interface TimeoutOptions {
  /** From creation until the first start. Default none. */
  readonly wait?: Duration | "none";
  /**
   * From the start of each attempt to its soft signal. Default 30 min. `adaptive({ floor, ceiling })` computes it from
   * the recorded runs; a single enqueue cannot have that.
   */
  readonly attempt?: Duration | "none" | Adaptive;
  /** From creation through queue time, attempts and backoff. Default none. */
  readonly total?: Duration | "none";
  /** From the soft signal until the attempt is ended by force. Default 30 s. */
  readonly grace?: Duration | "unbounded";
  /** The longest silence of a running attempt; the worker itself beats unless this is named. Default 1 min. */
  readonly heartbeat?: Duration | "none";
  /** What an `attempt` timeout does: `fail` (the default) ends the attempt, which may be retried; `discard` ends the job. */
  readonly mode?: "fail" | "discard";
}

/** How long finished jobs are kept. `"0s"` deletes in the settle itself. One duration applies to all three states. */
export type RetentionOptions = Duration | RetentionPerState;

/**
 * How long jobs are kept after they end. Dead letters are kept until somebody removes them, unless `deadLetter` says
 * otherwise.
 */
type RetentionPerState = { readonly [state in Terminal]?: Duration } & {
  readonly deadLetter?: Duration | "until-removed";
};

/** Settings of any source: an enqueue, a definition, a queue or the engine. */
export interface PolicyOptions {
  /** The five timeouts: see below. */
  readonly timeouts?: TimeoutOptions;
  /** How often and when a failed attempt is repeated: see below. */
  readonly retry?: RetryOptions;
  /**
   * How long ended jobs are kept: one duration, or one each for `completed`, `discarded`, `cancelled` and `deadLetter`.
   * Default 1 day for completed jobs, 14 days for others, and no end for dead letters.
   */
  readonly retention?: RetentionOptions;
}

const BUILT_IN_ATTEMPT = 30 * 60_000;
export const BUILT_IN_GRACE = 30_000;
const BUILT_IN_HEARTBEAT = 60_000;
/** A foreign worker may beat rarely or never. Open Job Spec's test suite is silent for 65 s while it holds a job. */
const FOREIGN_HEARTBEAT = 90_000;
const DAY = 86_400_000;
export const BUILT_IN_RETENTION: Retention = { completed: DAY, discarded: 14 * DAY, cancelled: 14 * DAY };

const TERMINALS = ["completed", "discarded", "cancelled"] as const;
const RETENTION_KEYS: readonly string[] = [...TERMINALS, "deadLetter"];
const LIMITS = ["wait", "attempt", "total", "heartbeat"] as const;

/**
 * Parses the settings of one source. `field` is the prefix in messages: empty for a definition, `options` for an
 * enqueue.
 */
export function parseSettings(options: PolicyOptions, field: string): PolicySettings {
  const at = (name: string) => (field === "" ? name : `${field}.${name}`);
  return {
    ...(options.timeouts !== undefined && { timeouts: parseTimeouts(options.timeouts, at("timeouts")) }),
    ...(options.retry !== undefined && { retry: parseRetry(options.retry, at("retry")) }),
    ...(options.retention !== undefined && { retention: parseRetention(options.retention, at("retention")) }),
  };
}

export function parseTimeouts(options: TimeoutOptions, field: string): TimeoutSettings {
  refuseUnknownKeys(options, field, [...LIMITS, "grace", "mode"]);
  const source: { -readonly [name in keyof TimeoutSettings]: TimeoutSettings[name] } = {};
  for (const name of LIMITS) {
    const value = options[name];
    if (value === undefined) continue;
    if (name === "attempt" && isAdaptive(value)) {
      refuseUnknownKeys(value, `${field}.${name}`, ["adaptive"]);
      source.adaptive = parseAdaptive(value.adaptive, `${field}.${name}.adaptive`);
      source[name] = source.adaptive.ceiling;
    } else source[name] = value === "none" ? null : parseDuration(value, `${field}.${name}`);
  }
  if (options.grace !== undefined) {
    source.grace =
      options.grace === "unbounded" ? null : parseDuration(options.grace, `${field}.grace`, { zero: true });
  }
  if (options.mode !== undefined) {
    if (options.mode !== "fail" && options.mode !== "discard") {
      throw refuse("invalid_timeout", `${field}.mode`, options.mode, 'write "fail" or "discard"');
    }
    source.mode = options.mode;
  }
  if (
    typeof source.total === "number" &&
    typeof source.attempt === "number" &&
    source.total < source.attempt
  ) {
    throw refuse(
      "timeouts_contradict",
      `${field}.total`,
      options.total,
      `it is shorter than ${field}.attempt (${source.adaptive ? "its ceiling is " : ""}${formatDuration(source.attempt)}): make total at least as long`,
    );
  }
  return source;
}

function parseRetention(options: RetentionOptions, field: string): Partial<Retention> {
  const isPerState =
    typeof options === "object" &&
    options !== null &&
    Object.keys(options).some((key) => RETENTION_KEYS.includes(key));
  if (!isPerState) {
    const kept = parseDuration(options, field, { zero: true });
    return { completed: kept, discarded: kept, cancelled: kept };
  }
  refuseUnknownKeys(options, field, RETENTION_KEYS);
  const perState = options as RetentionPerState;
  const kept: Partial<Record<Terminal, number>> = Object.fromEntries(
    TERMINALS.filter((state) => perState[state] !== undefined).map((state) => [
      state,
      parseDuration(perState[state], `${field}.${state}`, { zero: true }),
    ]),
  );
  const { deadLetter } = perState;
  if (deadLetter === undefined) return kept;
  const isKept = deadLetter === "until-removed";
  return {
    ...kept,
    deadLetter: isKept ? null : parseDuration(deadLetter, `${field}.deadLetter`, { zero: true }),
  };
}

/** The settings of all sources of one job. A source that is left out has none. */
export interface SettingsBySource {
  readonly enqueue?: PolicySettings | undefined;
  readonly definition?: PolicySettings | undefined;
  readonly queue?: PolicySettings | undefined;
  readonly engine?: PolicySettings | undefined;
}

const SOURCES = ["enqueue", "definition", "queue", "engine"] as const;

/** Whether any source has settings of this kind. For most jobs none has, and nothing needs to be resolved. */
export function saysAnything(settings: SettingsBySource, kind: keyof PolicySettings): boolean {
  return (
    settings.enqueue?.[kind] !== undefined ||
    settings.definition?.[kind] !== undefined ||
    settings.queue?.[kind] !== undefined ||
    settings.engine?.[kind] !== undefined
  );
}

/** The value of a field, the source that set it, and what less specific sources say. */
export interface Resolved<Value> {
  readonly value: Value;
  readonly source: SettingSource;
  readonly lost: readonly { readonly source: SettingSource; readonly value: Value }[];
}

export function resolveField<Value>(
  settings: SettingsBySource,
  read: (source: PolicySettings) => Value | undefined,
  builtIn: Value,
): Resolved<Value> {
  const said: { source: SettingSource; value: Value }[] = [];
  for (const name of SOURCES) {
    const source = settings[name];
    const value = source && read(source);
    if (value !== undefined) said.push({ source: name, value });
  }
  said.push({ source: "built-in", value: builtIn });
  const [winner, ...lost] = said as [{ source: SettingSource; value: Value }, ...typeof said];
  return { ...winner, lost };
}

/** `wait` and `total` of a job, which an enqueue fixes as instants (SEMANTICS 2). */
export function resolveBudgets(settings: SettingsBySource): {
  wait: Resolved<number | null>;
  total: Resolved<number | null>;
} {
  return {
    wait: resolveField<number | null>(settings, (source) => source.timeouts?.wait, null),
    total: resolveField<number | null>(settings, (source) => source.timeouts?.total, null),
  };
}

/** Which worker is about to start the job. It decides the built-in grace and who acts at the hard deadline. */
export interface WorkerKind {
  /** Whether it hears the soft signal (SEMANTICS 1.4). */
  readonly hears: boolean;
  /**
   * A remote worker names its jobs in its beats, so its silence counts per job. The server's own beats do not count
   * for it.
   */
  readonly remote: boolean;
  readonly visibility?: number;
  /** The name of a remote worker, by which its reports are recognised. */
  readonly worker?: string;
  /** The name of the key that fetched the job, if the server has keys. */
  readonly caller?: string;
}

/**
 * The least retention of jobs of remote workers: a client must be able to read the job after its report (SEMANTICS
 * 9).
 */
const KEPT_FOR_REMOTE = 60_000;

export const LOCAL_WORKER: WorkerKind = { hears: true, remote: false };

function resolveEach(settings: SettingsBySource, kind: WorkerKind) {
  const retry = <Name extends keyof RetryPolicy>(name: Name) =>
    resolveField<RetryPolicy[Name]>(settings, (source) => source.retry?.[name], BUILT_IN_RETRY[name]);
  const kept = (state: Terminal) => {
    const field = resolveField(settings, (source) => source.retention?.[state], BUILT_IN_RETENTION[state]);
    return kind.remote ? { ...field, value: Math.max(field.value, KEPT_FOR_REMOTE) } : field;
  };
  return {
    attempt: resolveField<number | null>(settings, (source) => source.timeouts?.attempt, BUILT_IN_ATTEMPT),
    // A foreign worker hears no signal, so a built-in grace would only delay the end.
    grace: resolveField<number | null>(
      settings,
      (source) => source.timeouts?.grace,
      kind.hears ? BUILT_IN_GRACE : 0,
    ),
    heartbeat: resolveField<number | null>(
      settings,
      (source) => source.timeouts?.heartbeat,
      builtInHeartbeat(kind),
    ),
    mode: resolveField<TimeoutMode>(settings, (source) => source.timeouts?.mode, "fail"),
    attempts: retry("attempts"),
    backoff: retry("backoff"),
    except: retry("except"),
    retryFit: retry("retryFit"),
    onStall: retry("onStall"),
    onExhausted: retry("onExhausted"),
    retention: {
      completed: kept("completed"),
      discarded: kept("discarded"),
      cancelled: kept("cancelled"),
      deadLetter: resolveField<number | null>(settings, (source) => source.retention?.deadLetter, null),
    },
  };
}

export type ResolvedFields = ReturnType<typeof resolveEach>;

/** Every field with the winning source and the others, for `explain()`. */
export function resolveFields(settings: SettingsBySource, kind: WorkerKind = LOCAL_WORKER): ResolvedFields {
  return resolveEach(settings, kind);
}

/** The rule of a source whose attempt timeout is adaptive. */
export function ruleOf(
  source: { readonly timeouts?: TimeoutSettings | undefined } | undefined,
): AdaptiveRule | undefined {
  const { attempt, adaptive } = source?.timeouts ?? {};
  // A process that does not know adaptive limits keeps the rule when it changes the timeout.
  return adaptive !== undefined && adaptive.ceiling === attempt ? adaptive : undefined;
}

/** The rule of the source that decides `attempt`; undefined if that one names a duration. */
export function adaptiveRule(settings: SettingsBySource): AdaptiveRule | undefined {
  const decides = SOURCES.find((name) => settings[name]?.timeouts?.attempt !== undefined);
  return decides && ruleOf(settings[decides]);
}

/** What is known about the runs of a type under a rule; undefined if too few were recorded. */
export type LearnedBy = (rule: AdaptiveRule) => LearnedLimit | undefined;

/** The policy that the first start fixes for all attempts of a job. Without `learned`, an adaptive limit is its ceiling. */
export function resolvePolicy(
  settings: SettingsBySource,
  kind: WorkerKind = LOCAL_WORKER,
  learned?: LearnedBy,
): Policy {
  const fields = resolveEach(settings, kind);
  const { retention, attempts, backoff, except, retryFit, onStall, onExhausted } = fields;
  const rule = adaptiveRule(settings);
  const found = rule && learned?.(rule);
  return {
    attempt: found ? found.limit : fields.attempt.value,
    ...(rule && { adaptive: { rule, learned: found ?? null } }),
    grace: fields.grace.value,
    heartbeat: fields.heartbeat.value,
    mode: fields.mode.value,
    retry: {
      attempts: attempts.value,
      backoff: backoff.value,
      except: except.value,
      retryFit: retryFit.value,
      onStall: onStall.value,
      onExhausted: onExhausted.value,
    },
    retention: {
      completed: retention.completed.value,
      discarded: retention.discarded.value,
      cancelled: retention.cancelled.value,
      ...(retention.deadLetter.value !== null && {
        deadLetter: kind.remote
          ? Math.max(retention.deadLetter.value, KEPT_FOR_REMOTE)
          : retention.deadLetter.value,
      }),
    },
    beats: fields.heartbeat.source === "built-in" && !kind.remote ? "worker" : "handler",
    hears: kind.hears,
    ...(kind.visibility !== undefined && { visibility: kind.visibility }),
    ...(kind.worker !== undefined && { worker: kind.worker }),
    ...(kind.caller !== undefined && { caller: kind.caller }),
    sources: sourceNames(fields),
  };
}

function builtInHeartbeat({ remote, hears }: WorkerKind): number {
  return remote && !hears ? FOREIGN_HEARTBEAT : BUILT_IN_HEARTBEAT;
}

/**
 * A policy for another kind of worker. What a source named stays. What is built in depends on the worker that runs
 * this attempt (SEMANTICS 1.4, 3.6): a job that a foreign worker fetched first has a grace again when a local worker
 * runs it.
 */
export function policyFor(policy: Policy, kind: WorkerKind): Policy {
  const heartbeat = policy.sources.heartbeat === "built-in" ? builtInHeartbeat(kind) : policy.heartbeat;
  const grace = policy.sources.grace === "built-in" ? (kind.hears ? BUILT_IN_GRACE : 0) : policy.grace;
  const beats = policy.sources.heartbeat === "built-in" && !kind.remote ? "worker" : "handler";
  const isSame =
    grace === policy.grace &&
    heartbeat === policy.heartbeat &&
    beats === policy.beats &&
    kind.hears === policy.hears &&
    kind.visibility === policy.visibility &&
    kind.worker === policy.worker &&
    kind.caller === policy.caller;
  if (isSame) return policy;
  const { visibility: _visibility, worker: _worker, caller: _caller, ...rest } = policy;
  return {
    ...rest,
    grace,
    heartbeat,
    beats,
    hears: kind.hears,
    ...(kind.visibility !== undefined && { visibility: kind.visibility }),
    ...(kind.worker !== undefined && { worker: kind.worker }),
    ...(kind.caller !== undefined && { caller: kind.caller }),
  };
}

function sourceNames(fields: ResolvedFields): Record<PolicyField, SettingSource> {
  return Object.fromEntries(
    Object.entries({ ...fields, retention: fields.retention.completed }).map(([name, field]) => [
      name,
      field.source,
    ]),
  ) as Record<PolicyField, SettingSource>;
}

/** The retention of a job, also of one that ends before a worker resolved its policy. */
export function retentionOf(policy: Policy | null, fallback: Retention | undefined): Retention {
  return policy?.retention ?? fallback ?? BUILT_IN_RETENTION;
}
