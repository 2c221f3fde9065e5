/** How many jobs waited at once, and for how long the oldest of them: the highest of a period. */
export interface WaitPeak {
  /** Null for all queues together. */
  readonly queue: string | null;
  /** Available jobs. */
  readonly waiting: number;
  /** Milliseconds since the oldest of them became due. */
  readonly oldest: number;
}

/** Queues of one period. The ones with the most waiting jobs are kept. */
const MOST_QUEUES = 50;

/** The higher figures of two periods, by queue. */
export function mergeWaits(first: readonly WaitPeak[], second: readonly WaitPeak[]): readonly WaitPeak[] {
  if (first.length === 0) return second;
  const peaks = new Map<string | null, WaitPeak>();
  for (const { queue, waiting, oldest } of [...first, ...second]) {
    const known = peaks.get(queue);
    peaks.set(queue, {
      queue,
      waiting: Math.max(waiting, known?.waiting ?? 0),
      oldest: Math.max(oldest, known?.oldest ?? 0),
    });
  }
  return mostWaiting([...peaks.values()]);
}

/** The peak of all queues first, then the queues with the most waiting jobs. */
export function mostWaiting(peaks: readonly WaitPeak[]): readonly WaitPeak[] {
  const queues = peaks.filter(({ queue }) => queue !== null);
  queues.sort((a, b) => b.waiting - a.waiting || b.oldest - a.oldest);
  return [...peaks.filter(({ queue }) => queue === null), ...queues.slice(0, MOST_QUEUES)];
}

/** The peak of a queue; of all if none is named. Undefined if nobody looked, zero if no job of it waited. */
export function peakOf(peaks: readonly WaitPeak[], queue: string | undefined): WaitPeak | undefined {
  if (peaks.length === 0) return undefined;
  const named = queue ?? null;
  return peaks.find((peak) => peak.queue === named) ?? { queue: named, waiting: 0, oldest: 0 };
}
