import type { History, HistoryPoint } from "../../../ojs/replies/history-replies.ts";
import { countText } from "../../ui/format.ts";

/** The share of jobs that kept their limits, and what did not. */
export function onTimeOf(history: History | undefined) {
  const points = history?.data ?? [];
  const share = history?.attainment ?? null;
  const sum = (of: (point: HistoryPoint) => number) => points.reduce((all, point) => all + of(point), 0);
  return {
    value: share === null ? "–" : shareText(share),
    unit: share === null ? "" : "%",
    below: `${countText(sum(({ late }) => late))} late, ${countText(sum(firedOf))} fired`,
    // The stretch that is still being counted would look like a drop.
    missed: points.slice(-61, -1).map((point) => point.late + firedOf(point)),
  };
}

/** How often a limit fired. A lease that ran out is not one: it says that a worker was lost. */
export function firedOf({ timeouts }: HistoryPoint): number {
  return FIRED.reduce((all, kind) => all + (timeouts[kind] ?? 0), 0);
}

const FIRED = ["enqueue_ttl", "execution", "total", "stalled"] as const;

/** Never rounded up to a hundred: one miss in a million stays visible. */
function shareText(share: number): string {
  if (share === 1) return "100";
  const percent = Math.min(share * 100, 99.99);
  return percent >= 99 ? percent.toFixed(2) : percent.toFixed(1);
}
