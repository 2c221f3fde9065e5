import type { Instant } from "../time.ts";
import { type AdaptiveRule, nextLimit, periodOf } from "./adaptive-limit.ts";
import { type HistogramData, LogHistogram } from "./histogram.ts";

/** The runs of one recorded span of time. */
export interface RunSpan {
  readonly start: Instant;
  readonly span: number;
  readonly run: HistogramData | undefined;
  readonly cut: number;
}

/** The limit from an instant on, in milliseconds. */
export interface LimitChange {
  readonly at: Instant;
  readonly limit: number;
}

/** What an adaptive limit would have done to the recorded runs, had it been switched on at the first of them. */
export interface AdaptiveWhatIf {
  readonly rule: AdaptiveRule;
  /** The limit at the end, and the shortest and longest on the way. */
  readonly limit: number;
  readonly lowest: number;
  readonly highest: number;
  /** Attempts that succeeded. */
  readonly runs: number;
  /** How many of them it would have cut off. The bounds differ by the runs in the buckets of the limits. */
  readonly wouldCut: { readonly atLeast: number; readonly atMost: number };
  /** `wouldCut.atMost` divided by `runs`. */
  readonly share: number;
  /** Attempts that were cut off anyway. */
  readonly alreadyCut: number;
  /** The last 100 changes, the oldest first. */
  readonly changes: readonly LimitChange[];
}

const MOST_CHANGES = 100;

/**
 * Replays recorded spans under a rule: each span is held against the limit of its period, which knows only the runs
 * before. A span that is longer than a period (old runs are stored by the hour or day) counts for its first period.
 */
export function replayLimit(rule: AdaptiveRule, recorded: readonly RunSpan[]): AdaptiveWhatIf {
  const spans = [...recorded].sort((a, b) => a.start - b.start);
  let limit = rule.ceiling;
  let [lowest, highest, first] = [limit, limit, 0];
  let [runs, alreadyCut, atLeast, atMost] = [0, 0, 0, 0];
  let period: Instant | undefined;
  const changes: LimitChange[] = [];
  for (const [index, { start, run, cut }] of spans.entries()) {
    const until = periodOf(rule, start);
    if (period !== undefined && until > period) {
      const since = until - rule.window;
      while ((spans[first] as RunSpan).start + (spans[first] as RunSpan).span <= since && first < index)
        first++;
      const next = nextLimit(rule, { ...sumOf(spans.slice(first, index)), since, until }, limit).limit;
      if (next !== limit) changes.push({ at: until, limit: next });
      limit = next;
      lowest = Math.min(lowest, limit);
      highest = Math.max(highest, limit);
    }
    period = until;
    const own = LogHistogram.of(run);
    const above = own.above(limit);
    runs += own.total;
    alreadyCut += cut;
    atLeast += above.atLeast;
    atMost += above.atMost;
  }
  const share = runs === 0 ? 0 : atMost / runs;
  const wouldCut = { atLeast, atMost };
  return {
    rule,
    limit,
    lowest,
    highest,
    runs,
    wouldCut,
    share,
    alreadyCut,
    changes: changes.slice(-MOST_CHANGES),
  };
}

function sumOf(spans: readonly RunSpan[]): { readonly runs: LogHistogram; readonly cut: number } {
  const runs = new LogHistogram();
  let cut = 0;
  for (const span of spans) {
    if (span.run) runs.merge(span.run);
    cut += span.cut;
  }
  return { runs, cut };
}
