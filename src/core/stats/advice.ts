import { REMEDY } from "../job/policy/endless.ts";
import { NEAR_SHARE } from "../job/policy/near-miss.ts";
import { type DurationText, formatDuration } from "../time.ts";
import type { AdaptiveOptions, AdaptiveRule } from "./adaptive-limit.ts";
import { type Above, type LogHistogram, RESOLUTION } from "./histogram.ts";
import { type Percentiles, percentilesOf } from "./job-stats.ts";
import { type AdaptiveWhatIf, type RunSpan, replayLimit } from "./replay-limit.ts";
import type { SeriesSum } from "./series.ts";

/** What a proposed attempt timeout would have done to the runs that were seen. */
export interface WhatIf {
  readonly attempt: number;
  /** Attempts that succeeded. */
  readonly runs: number;
  /** How many of them it would have cut off. The two bounds differ by the runs in the limit's histogram bucket. */
  readonly wouldCut: Above;
  /** `wouldCut.atMost` divided by `runs`. */
  readonly share: number;
  /** Attempts that were cut off anyway. They were at least as long as their limit. */
  readonly alreadyCut: number;
}

/** An adaptive limit to try. */
export interface AdaptiveProposal {
  readonly options: AdaptiveOptions;
  /** As it stands in `timeouts` of a definition. */
  readonly code: string;
}

/** A job that holds a slot of a limit or of a queue, and that neither a deadline nor a missing heartbeat will end. */
export interface HeldSlot {
  /** Its limit key; null if it has none. */
  readonly key: string | null;
  /** Its queue; null if that has no concurrency. */
  readonly queue: string | null;
  readonly job: string;
  /** When it started. */
  readonly since: number;
  /** Its worker no longer beats, so it holds the slot until somebody cancels it. */
  readonly isWorkerGone: boolean;
}

export interface Advice {
  readonly type: string;
  /** Jobs of this type that hold a slot of a limit or of a queue now and will not end by time. */
  readonly holds: readonly HeldSlot[];
  /** The attempt timeout seen last, in milliseconds; null for none, undefined if no attempt was seen. */
  readonly attempt: number | null | undefined;
  /** Other attempt timeouts that applied in the same time: of other enqueue calls, queues or releases. */
  readonly others: readonly (number | null)[];
  readonly run: Percentiles | null;
  readonly nearMisses: number;
  readonly timeouts: Readonly<
    Record<"execution" | "total" | "enqueue_ttl" | "stalled" | "visibility", number>
  >;
  readonly verdict: "unknown" | "keep" | "raise" | "lower" | "set";
  /** An attempt timeout that fits what was seen, in milliseconds; null if too little was seen. */
  readonly suggested: number | null;
  /** The verdict in words, with the numbers behind it. */
  readonly text: string;
  readonly whatIf?: WhatIf;
  /** An adaptive limit that fits what was seen, and the code for it; null if too little was seen. */
  readonly adaptive: AdaptiveProposal | null;
  readonly adaptiveWhatIf?: AdaptiveWhatIf;
  /** The largest relative error of durations. */
  readonly resolution: number;
}

/** Fewer runs say nothing about the slowest one percent. */
const FEWEST_RUNS = 100;
const TOO_OFTEN = 0.01;
/** With a limit this many times above p99, a hung attempt wastes most of its time. */
const FAR_ABOVE = 10;
const HEADROOM = 2;
const ADAPTIVE_TIMES = 3;
const ADAPTIVE_SAMPLES = 200;

const STEPS = [
  100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000,
  180_000, 300_000, 600_000, 900_000, 1_200_000, 1_800_000, 2_700_000,
] as const;
const HOUR = 3_600_000;

/** The next longer duration that a person would write. */
export function rounded(duration: number): number {
  return STEPS.find((step) => step >= duration) ?? Math.ceil(duration / HOUR) * HOUR;
}

/** Further input of `advise`. */
export interface AdviseInput {
  /** A limit to try on the runs. */
  readonly attempt?: number | undefined;
  /** A rule to replay on the runs, which are needed by time for it. */
  readonly adaptive?: { readonly rule: AdaptiveRule; readonly spans: readonly RunSpan[] } | undefined;
  readonly holds?: readonly HeldSlot[];
}

/** What the runs of one type say about its attempt timeout. */
export function advise(type: string, sum: SeriesSum, input: AdviseInput = {}): Advice {
  const { attempt: proposed, adaptive, holds = [] } = input;
  const { counts, durations } = sum;
  const run = percentilesOf(durations.run);
  const seen = sum.limits.at(-1);
  const attempt = seen === undefined ? undefined : seen === 0 ? null : seen;
  const { execution, total, enqueue_ttl, stalled, visibility } = counts;
  const assessment = assess({ run, attempt, cut: execution, near: counts.nearMisses });
  return {
    type,
    holds,
    attempt,
    others: sum.limits.slice(0, -1).map((limit) => (limit === 0 ? null : limit)),
    run,
    nearMisses: counts.nearMisses,
    timeouts: { execution, total, enqueue_ttl, stalled, visibility },
    ...assessment,
    text: [assessment.text, ...holds.filter(({ isWorkerGone }) => isWorkerGone).map(heldText)].join(" "),
    ...(proposed !== undefined && { whatIf: whatIf(durations.run, proposed, execution) }),
    adaptive: assessment.verdict === "unknown" || !run ? null : proposalOf(run, attempt ?? null),
    ...(adaptive && { adaptiveWhatIf: replayLimit(adaptive.rule, adaptive.spans) }),
    resolution: RESOLUTION,
  };
}

/** Not below the slowest one percent of today, and far enough above it for runs that become slower. */
function proposalOf({ p99, max }: Percentiles, attempt: number | null): AdaptiveProposal {
  const floor = rounded(Math.max(p99, 1));
  const ceiling = Math.max(rounded(Math.max(FAR_ABOVE * p99, HEADROOM * max, 1)), attempt ?? 0);
  const options = {
    from: "p99",
    times: ADAPTIVE_TIMES,
    floor: formatDuration(floor) as DurationText,
    ceiling: formatDuration(ceiling) as DurationText,
    samples: ADAPTIVE_SAMPLES,
  } as const;
  const said = Object.entries(options).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return { options, code: `attempt: adaptive({ ${said.join(", ")} })` };
}

function heldText({ key, queue, job, since }: HeldSlot): string {
  const slots = [key !== null && `the key "${key}"`, queue !== null && `a slot of the queue "${queue}"`];
  return `Job ${job} holds ${slots.filter((text) => text !== false).join(" and ")} since ${new Date(since).toISOString()}. Its worker is gone, and no deadline ends it: cancel it, and ${REMEDY}.`;
}

function whatIf(runs: LogHistogram, attempt: number, alreadyCut: number): WhatIf {
  const wouldCut = runs.above(attempt);
  const share = runs.total === 0 ? 0 : wouldCut.atMost / runs.total;
  return { attempt, runs: runs.total, wouldCut, share, alreadyCut };
}

interface Seen {
  readonly run: Percentiles | null;
  readonly attempt: number | null | undefined;
  readonly cut: number;
  readonly near: number;
}

function assess({ run, attempt, cut, near }: Seen): Pick<Advice, "verdict" | "suggested" | "text"> {
  const runs = (run?.count ?? 0) + cut;
  if (runs < FEWEST_RUNS) {
    const text = `Not enough runs: ${runs} of at least ${FEWEST_RUNS}.`;
    return { verdict: "unknown", suggested: null, text };
  }
  const p99 = run?.p99 ?? 0;
  const slowest = run ? `99 of 100 runs took at most ${about(p99)}` : "no run succeeded";
  const fitting = rounded(Math.max(HEADROOM * p99, run?.max ?? 0, 1));
  if (attempt === null || attempt === undefined) {
    const text = `There is no attempt timeout, and ${slowest}. Set one of ${formatDuration(fitting)}, so that a run that hangs is found.`;
    return { verdict: "set", suggested: fitting, text };
  }
  const limit = formatDuration(attempt);
  // The runs that were cut off would have taken longer, so the percentiles of the others are too low.
  const longer = rounded(Math.max(fitting, HEADROOM * attempt));
  if (cut > TOO_OFTEN * runs) {
    const text = `${cut} of ${runs} runs were cut off at ${limit}; ${slowest}. Raise it to ${formatDuration(longer)}, or split the work.`;
    return { verdict: "raise", suggested: longer, text };
  }
  // A job may also come near its total, which a longer attempt does not help.
  if (near > TOO_OFTEN * runs && p99 > NEAR_SHARE * attempt) {
    const text = `${near} of ${runs} runs used more than 80 % of ${limit}; ${slowest}. Raise it to ${formatDuration(longer)} before they are cut off.`;
    return { verdict: "raise", suggested: longer, text };
  }
  if (run && attempt > FAR_ABOVE * Math.max(p99, 1) && fitting < attempt) {
    const text = `${slowest}, far below ${limit}. Lower it to ${formatDuration(fitting)}, so that a run that hangs is found sooner.`;
    return { verdict: "lower", suggested: fitting, text: capitalised(text) };
  }
  const text = `${limit} fits: ${slowest}, ${cut} of ${runs} were cut off and ${near} came near.`;
  return { verdict: "keep", suggested: attempt, text };
}

/** A measured duration in words. More digits would pretend a precision that it does not have. */
function about(duration: number): string {
  if (duration < 1_000) return `${duration}ms`;
  const unit = duration < 120_000 ? "s" : duration < 2 * HOUR ? "m" : "h";
  const length = { s: 1_000, m: 60_000, h: HOUR }[unit];
  return `${Number((duration / length).toPrecision(2))}${unit}`;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
