import type { FairOptions } from "../../src/core/fair/fair-options.ts";
import type { RoundLimits } from "../../src/core/fair/round-limits.ts";
import type { Backoff } from "../../src/core/job/job.ts";
import { type AnyDefinition, defineJob, type JobDefinition } from "../../src/core/job/job-definition.ts";
import type { PolicyOptions, RetentionOptions, TimeoutOptions } from "../../src/core/job/policy/policy.ts";
import { constant, delays, exponential, linear, type RetryOptions } from "../../src/core/job/policy/retry.ts";
import type { LimitOptions } from "../../src/core/limit/limit.ts";
import type { QueueOptions } from "../../src/core/limit/queue-settings.ts";
import type { Json } from "../../src/core/schema.ts";
import { adaptive } from "../../src/core/stats/adaptive-limit.ts";
import type { Duration } from "../../src/core/time.ts";
import { Dice, subSeed } from "./dice.ts";
import type { FaultRates } from "./network.ts";

/** What a job carries: enough for its handler and for the checker to know what it is about. */
export type SimPayload = {
  readonly n: number;
  /** Takes its process down whenever it runs. */
  readonly kills?: "at once" | "soon";
  readonly parent?: string;
} & { readonly [key: string]: Json };

export type SimDefinition = JobDefinition<Json | undefined, Json | undefined, Json | undefined>;

/** A definition, and what was written into it: the checker reads only the latter. */
export interface SimJobType {
  readonly definition: SimDefinition;
  readonly said: PolicyOptions;
  readonly queue: string;
}

export interface ProcessPlan {
  readonly name: string;
  readonly queues: { readonly [queue: string]: { readonly concurrency: number } };
  readonly types: readonly SimJobType[];
  readonly maxStuck: number | undefined;
  /** A process without a worker only enqueues, operates and sweeps. */
  readonly works: boolean;
}

export interface Plan {
  readonly seed: number;
  readonly queues: readonly string[];
  readonly types: readonly SimJobType[];
  readonly processes: readonly ProcessPlan[];
  /** Limits by key that enqueues may name, durations in whole milliseconds. */
  readonly limits: readonly LimitOptions[];
  /** Settings of queues, from the beginning on. */
  readonly settings: { readonly [queue: string]: QueueOptions };
  readonly operations: number;
  /** When faults and new work stop, in milliseconds from the start. */
  readonly calmAt: number;
  readonly rates: FaultRates;
  readonly crashes: number;
  readonly pauses: number;
  readonly suspends: number;
  readonly wallSteps: number;
  readonly deploys: number;
  /** The fair keys that enqueues name. */
  readonly fairKeys: readonly string[];
  /** How often somebody enqueues many jobs of one fair key. */
  readonly bursts: number;
  /** The most jobs of one. */
  readonly burst: number;
  /** When fair queues are busy. Left out: as always, which no world is busy enough for. */
  readonly roundLimits?: RoundLimits;
  /** Whether events are recorded. */
  readonly records: boolean;
}

export const NO_FAULTS: FaultRates = { drop: 0, loseReply: 0, slow: 0, crash: 0, loseHint: 0 };

/** Everything about a world that is fixed before it starts. */
export function planOf(seed: number): Plan {
  const dice = new Dice(subSeed(seed, "plan"));
  const queues = ["alpha", "beta", "gamma"].slice(0, 1 + dice.int(3));
  // Not thrown for, as `records` below.
  const isAdaptive = seed % 5 === 3;
  const types = Array.from({ length: 2 + dice.int(4) }, (_, index) =>
    jobType(dice, index, queues, isAdaptive),
  );
  const processes = Array.from({ length: 1 + dice.int(4) }, (_, index) =>
    processPlan(dice, index, queues, types),
  );
  // A fifth of the worlds is healthy: what goes wrong there has no excuse.
  const trouble = dice.chance(0.2) ? 0 : dice.pick([0.3, 1, 3]);
  // A wall clock that is set back by as long as the machine slept hides the sleep from everybody: not both in one world.
  const sleeps = dice.chance(0.3);
  const { limits, settings } = limitsOf(new Dice(subSeed(seed, "limits")), queues);
  const times = (most: number) => (trouble === 0 ? 0 : dice.int(most + 1));
  return {
    seed,
    queues,
    types,
    processes,
    limits,
    settings,
    operations: 20 + dice.int(50),
    calmAt: dice.between(5_000, 40_000),
    rates: {
      drop: 0.01 * trouble * dice.random(),
      loseReply: 0.01 * trouble * dice.random(),
      slow: 0.01 * trouble * dice.random(),
      crash: 0.001 * trouble * dice.random(),
      loseHint: 0.1 * trouble * dice.random(),
    },
    crashes: times(3),
    pauses: times(4),
    suspends: sleeps ? times(2) : 0,
    wallSteps: sleeps ? 0 : times(3),
    deploys: dice.chance(0.4) ? 1 + dice.int(2) : 0,
    fairKeys: [],
    bursts: 0,
    burst: 40,
    // Not thrown for: what a seed means otherwise stays what it was.
    records: seed % 4 !== 0,
  };
}

/** Half of the worlds have limits; their dice are their own, so that the others are what they were before there were any. */
function limitsOf(dice: Dice, queues: readonly string[]): Pick<Plan, "limits" | "settings"> {
  if (dice.chance(0.5)) return { limits: [], settings: {} };
  const onLimit = () =>
    dice.pick([
      {},
      {},
      { onLimit: "drop" as const },
      { onLimit: { reschedule: ms(dice.between(50, 5_000)) } },
    ]);
  const limits: readonly LimitOptions[] = [
    { key: "places", concurrency: 1 + dice.int(4), ...onLimit() },
    { key: "order", concurrency: 1, strict: true },
    { key: "pace", rate: { limit: 1 + dice.int(3), per: ms(dice.between(2_000, 8_000)) }, ...onLimit() },
    { key: "both", concurrency: 1 + dice.int(3), rate: { limit: 2, per: ms(dice.between(2_000, 5_000)) } },
  ];
  const settings: Record<string, QueueOptions> = {};
  for (const queue of queues) {
    settings[queue] = {
      ...(dice.chance(0.4) && { concurrency: 1 + dice.int(4) }),
      ...(dice.chance(0.3) && {
        depth: { most: 3 + dice.int(10), onFull: dice.pick(["reject", "drop-oldest"] as const), warnAt: 2 },
      }),
    };
  }
  return { limits, settings };
}

/** The same world with fair queues, and with customers that enqueue many jobs at once. */
export function withFairness(plan: Plan): Plan {
  const dice = new Dice(subSeed(plan.seed, "fair"));
  const fairKeys = ["a", "b", "c", "d", "e"].slice(0, 2 + dice.int(4));
  const settings: Record<string, QueueOptions> = { ...plan.settings };
  for (const queue of plan.queues)
    if (dice.chance(0.8)) settings[queue] = { ...settings[queue], fair: fairness(dice, fairKeys) };
  return { ...plan, settings, fairKeys, bursts: 2 + dice.int(6) };
}

/** The same world, in which six starts within some seconds make a fair queue busy, and which has more jobs. */
export function withRounds(plan: Plan): Plan {
  const dice = new Dice(subSeed(plan.seed, "rounds"));
  const roundLimits: RoundLimits = {
    busyFrom: 6,
    busyWithin: dice.pick([2_000, 20_000]),
    longest: dice.pick([5_000, 60_000]),
    jobsOfKey: 1 + dice.int(3),
    fewestJobs: 4 + dice.int(12),
    mostKeys: dice.pick([2, 1_000]),
  };
  return { ...plan, roundLimits, burst: 80 };
}

export function fairness(dice: Dice, keys: readonly string[]): FairOptions {
  if (dice.chance(0.3)) return { strategy: "round-robin" };
  const weighted = keys.filter(() => dice.chance(0.5));
  const weights = Object.fromEntries(weighted.map((key) => [key, 1 + dice.int(4)]));
  return { weights, defaultWeight: 1 + dice.int(2) };
}

function processPlan(
  dice: Dice,
  index: number,
  queues: readonly string[],
  types: readonly SimJobType[],
): ProcessPlan {
  // The first process serves everything, so that whatever can be done gets done by somebody.
  const isFirst = index === 0;
  const served = isFirst ? queues : queues.filter(() => dice.chance(0.7));
  const known = isFirst ? types : types.filter(() => dice.chance(0.9));
  return {
    name: `p${index}`,
    queues: Object.fromEntries(served.map((queue) => [queue, { concurrency: dice.pick([1, 1, 2, 5, 20]) }])),
    types: known,
    maxStuck: dice.chance(0.2) ? 1 + dice.int(5) : undefined,
    works: isFirst || (served.length > 0 && known.length > 0 && dice.chance(0.85)),
  };
}

function jobType(dice: Dice, index: number, queues: readonly string[], isAdaptive: boolean): SimJobType {
  const queue = dice.pick(queues);
  const drawn = timeouts(dice, 0.5);
  const said: PolicyOptions = {
    timeouts: isAdaptive ? withAdaptive(drawn) : drawn,
    ...(dice.chance(0.8) && { retry: retry(dice) }),
    ...(dice.chance(0.5) && { retention: retention(dice) }),
  };
  const definition = defineJob({
    type: `sim.t${index}`,
    queue,
    priority: dice.chance(0.3) ? dice.int(201) - 100 : 0,
    ...said,
  });
  return { definition: definition as AnyDefinition as SimDefinition, said, queue };
}

/** The limit may fall to a tenth, by large steps: a world lasts for a few minutes. */
function withAdaptive({ attempt, ...rest }: TimeoutOptions): TimeoutOptions {
  if (attempt === undefined || attempt === "none") return rest;
  const ceiling = Number.parseInt(String(attempt), 10);
  const floor = Math.ceil(ceiling / 10);
  const rule = { floor: ms(floor), ceiling: ms(ceiling), samples: 10, step: 4, times: 2 } as const;
  return { ...rest, attempt: adaptive({ ...rule, every: "1m", window: "10m", from: "p50" }) };
}

function ms(value: number): Duration {
  return `${value}ms`;
}

/** Random limits; `density` is how likely each of them is named. */
export function timeouts(dice: Dice, density: number): TimeoutOptions {
  const limit = (low: number, high: number) =>
    !dice.chance(density) ? undefined : dice.chance(0.15) ? ("none" as const) : ms(dice.between(low, high));
  const heartbeat = dice.chance(0.5) ? limit(200, 10_000) : undefined;
  // Without a heartbeat, a dead process is found only at the hard deadline: the built-in one is half an hour away.
  const attempt = limit(30, 20_000) ?? (heartbeat === "none" ? ms(dice.between(30, 20_000)) : undefined);
  const least = attempt === undefined || attempt === "none" ? 50 : Number.parseInt(String(attempt), 10);
  const wait = limit(100, 20_000);
  const total = limit(least, least + 60_000);
  const grace = !dice.chance(density)
    ? undefined
    : dice.pick(["0s", "unbounded", ms(dice.between(5, 5_000)), ms(dice.between(5, 500))] as const);
  return {
    ...(wait !== undefined && { wait }),
    ...(attempt !== undefined && { attempt }),
    ...(total !== undefined && { total }),
    ...(heartbeat !== undefined && { heartbeat }),
    ...(grace !== undefined && { grace }),
    ...(dice.chance(0.3) && { mode: dice.pick(["fail", "discard"] as const) }),
  };
}

export function retry(dice: Dice): RetryOptions {
  return {
    ...(dice.chance(0.7) && { attempts: 1 + dice.int(4) }),
    // Built-in backoffs reach minutes; most worlds should not spend their time waiting for them.
    ...(dice.chance(0.9) && { backoff: backoff(dice) }),
    ...(dice.chance(0.2) && { except: dice.pick([["timeout"], ["stalled"], ["Boom"], ["total_timeout"]]) }),
    ...(dice.chance(0.3) && { retryFit: dice.pick(["full", "any"] as const) }),
    ...(dice.chance(0.3) && { onStall: dice.pick(["retry", "discard"] as const) }),
    ...(dice.chance(0.3) && { onExhausted: dice.pick(["discard", "dead-letter"] as const) }),
  };
}

function backoff(dice: Dice): Backoff {
  const first = ms(dice.between(1, 2_000));
  return dice.pick([
    () => constant({ first: "0s", jitter: false }),
    () => constant({ first }),
    () => linear({ first, max: "5s" }),
    () => exponential({ first, max: "8s", factor: 3 }),
    () => delays(["0s", first]),
  ])();
}

function retention(dice: Dice): RetentionOptions {
  return dice.pick<RetentionOptions>([
    "0s",
    { completed: "0s" },
    { discarded: "0s", cancelled: "0s" },
    ms(dice.between(10, 60_000)),
    "1d",
  ]);
}
