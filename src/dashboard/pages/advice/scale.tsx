import type { Advice } from "../../../ojs/replies/wire-replies.ts";
import { durationText, limitText } from "../../ui/format.ts";

/** Durations from a millisecond to days are drawn side by side, so the scale is one of powers; it says so in words. */
export interface Powers {
  readonly low: number;
  readonly high: number;
}

export function powersOf({ run, timeout_ms, suggested_timeout_ms }: Advice): Powers {
  const known = [run?.p50, run?.p99, run?.max, timeout_ms, suggested_timeout_ms].filter(
    (value): value is number => typeof value === "number" && value > 0,
  );
  if (known.length === 0) return { low: 100, high: 60_000 };
  return { low: Math.max(1, Math.min(...known) / 3), high: Math.max(...known) * 3 };
}

export const shareOf = ({ low, high }: Powers, value: number): number =>
  Math.max(0, Math.min(1, Math.log(Math.max(low, value) / low) / Math.log(high / low)));

export const valueAt = ({ low, high }: Powers, share: number): number => low * (high / low) ** share;

/** Where the runs lie and where the limit stands. */
export function Scale({ advice, proposed }: { readonly advice: Advice; readonly proposed?: number }) {
  const { run, timeout_ms } = advice;
  if (!run) return <span class="t3">–</span>;
  const powers = powersOf(advice);
  const x = (value: number) => `${(shareOf(powers, value) * 100).toFixed(2)}%`;
  const wide = (from: number, to: number) =>
    `${Math.max(0.5, (shareOf(powers, to) - shareOf(powers, from)) * 100).toFixed(2)}%`;
  const says = `p50 ${durationText(run.p50)}, p95 ${durationText(run.p95)}, p99 ${durationText(run.p99)}, slowest ${durationText(run.max)}, limit ${limitText(timeout_ms)}`;
  return (
    <svg class="scale" role="img" aria-label={says}>
      <line class="rail" x1="0" x2="100%" y1="10" y2="10" />
      <rect class="far" x={x(run.p99)} width={wide(run.p99, run.max)} y="8" height="4" />
      <rect class="most" x={x(run.p50)} width={wide(run.p50, run.p99)} y="6" height="8" rx="2" />
      <line class="mid" x1={x(run.p50)} x2={x(run.p50)} y1="4" y2="16" />
      {timeout_ms !== null && (
        <line
          class={timeout_ms < run.p99 ? "limit bad" : "limit"}
          x1={x(timeout_ms)}
          x2={x(timeout_ms)}
          y1="1"
          y2="19"
        />
      )}
      {proposed !== undefined && (
        <line class="limit proposed" x1={x(proposed)} x2={x(proposed)} y1="1" y2="19" />
      )}
    </svg>
  );
}
