import type { z } from "zod";
import { type AdaptiveOptions, parseAdaptive } from "../../core/stats/adaptive-limit.ts";
import type { Advice } from "../../core/stats/advice.ts";
import type { AdaptiveWhatIf } from "../../core/stats/replay-limit.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { adaptiveFields } from "../../ojs/write-enqueue.ts";
import { refusedField } from "../http/http-error.ts";
import type { adviseQuery } from "./admin-schemas.ts";

type AdviseBy = z.output<typeof adviseQuery>;

/** The rule to replay; undefined if the query names none. */
export function readRule(query: AdviseBy): AdaptiveOptions | undefined {
  const { adaptive_floor_ms: floor, adaptive_ceiling_ms: ceiling } = query;
  const { adaptive_from: from, adaptive_times: times, adaptive_samples: samples } = query;
  if ([floor, ceiling, from, times, samples].every((value) => value === undefined)) return undefined;
  if (floor === undefined || ceiling === undefined) {
    const field = floor === undefined ? "adaptive_floor_ms" : "adaptive_ceiling_ms";
    throw refusedField(field, "an adaptive limit needs both a floor and a ceiling");
  }
  return {
    floor: { milliseconds: floor },
    ceiling: { milliseconds: ceiling },
    ...(from && { from }),
    ...(times !== undefined && { times }),
    ...(samples !== undefined && { samples }),
  };
}

function replayFields({ rule, limit, lowest, highest, runs, wouldCut, share, ...rest }: AdaptiveWhatIf) {
  return {
    rule: adaptiveFields(rule),
    limit_ms: limit,
    lowest_ms: lowest,
    highest_ms: highest,
    runs,
    would_cut: { at_least: wouldCut.atLeast, at_most: wouldCut.atMost },
    share,
    already_cut: rest.alreadyCut,
    changes: rest.changes.map((change) => ({ at: instantText(change.at), limit_ms: change.limit })),
  };
}

/** A piece of advice on the wire. */
export function adviceFields(advice: Advice) {
  const { attempt, others, nearMisses, suggested, whatIf, adaptive, adaptiveWhatIf, ...rest } = advice;
  return {
    ...rest,
    timeout_ms: attempt ?? null,
    other_timeouts_ms: others,
    near_misses: nearMisses,
    suggested_timeout_ms: suggested,
    adaptive: adaptive && {
      ...adaptiveFields(parseAdaptive(adaptive.options, "advice")),
      code: adaptive.code,
    },
    ...(whatIf && {
      what_if: {
        timeout_ms: whatIf.attempt,
        runs: whatIf.runs,
        would_cut: { at_least: whatIf.wouldCut.atLeast, at_most: whatIf.wouldCut.atMost },
        share: whatIf.share,
        already_cut: whatIf.alreadyCut,
      },
    }),
    ...(adaptiveWhatIf && { adaptive_what_if: replayFields(adaptiveWhatIf) }),
  };
}
