import type { History } from "../../ojs/replies/history-replies.ts";

/** A plot keeps at least this many points, so that it does not jump about. */
const LEAST = 10;

/** Leaves out what lies before the first job. Otherwise the plots of a store that is minutes old would be almost empty. */
export function fromFirstJob<Point extends History["data"][number]>(
  points: readonly Point[],
): readonly Point[] {
  const first = points.findIndex(({ enqueued, processed }) => enqueued > 0 || processed > 0);
  return first <= 0 ? points : points.slice(Math.max(0, Math.min(first - 1, points.length - LEAST)));
}
