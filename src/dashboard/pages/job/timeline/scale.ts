/** From instants to places on the plot, in per cent of its width. Linear, with long empty stretches cut out. */

export interface Cut {
  readonly from: number;
  readonly to: number;
  /** Its left edge. */
  readonly x: number;
}

export interface Scale {
  readonly from: number;
  readonly until: number;
  readonly cuts: readonly Cut[];
  readonly ticks: readonly number[];
  x(at: number): number;
}

/** What is left free behind the last instant. */
const AFTER = 3;
/** How wide a cut is drawn. */
export const CUT_WIDTH = 8;
const MOST_CUTS = 3;
/** A stretch in which nothing happens is cut where it would take more of the width than this. */
const LONGEST_SHARE = 0.4;
/** What stays visible on both sides of a cut, as a share of what is not cut. */
const MARGIN = 0.08;
/** The axis is cut only where nothing happens for more than this many times the rest. */
const WORTH = 1.2;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((count) => count * DAY),
];
const MOST_TICKS = 10;

/** `instants`: when something happens or ends; between two of them nothing does, unless it is `busy`. */
export function scaleOf(
  from: number,
  until: number,
  instants: readonly number[],
  busy: readonly Stretch[] = [],
): Scale {
  const stops = [...new Set([from, ...instants.filter((at) => at > from && at < until), until])].sort(
    (a, b) => a - b,
  );
  const stretches = stops.slice(1).map((to, index) => ({ from: stops[index] as number, to }));
  const quiet = stretches.filter(
    (stretch) => !busy.some((one) => one.from < stretch.to && one.to > stretch.from),
  );
  const cut = chooseCuts(quiet, until - from);
  const shown = Math.max(1, until - from - cut.reduce((sum, { from: a, to: b }) => sum + (b - a), 0));
  const width = 100 - cut.length * CUT_WIDTH - AFTER;
  const x = (at: number): number => {
    // What lies beyond the end is drawn to the edge.
    if (at > until) return 100;
    const inside = Math.max(at, from);
    let place = ((inside - from) / shown) * width;
    for (const { from: a, to: b } of cut) {
      if (inside <= a) break;
      const share = Math.min(1, (inside - a) / (b - a));
      place += share * CUT_WIDTH - ((Math.min(inside, b) - a) / shown) * width;
    }
    return place;
  };
  const cuts = cut.map((one) => ({ ...one, x: x(one.from) }));
  return { from, until, cuts, ticks: ticksOf(from, until, shown, cut), x };
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** The longest stretches, as long as each of them is longer than all that would be left beside it. */
function chooseCuts(stretches: readonly Stretch[], whole: number): Stretch[] {
  const cuts: Stretch[] = [];
  let shown = whole;
  const longest = [...stretches].sort((a, b) => b.to - b.from - (a.to - a.from));
  for (const { from, to } of longest.slice(0, MOST_CUTS)) {
    const span = to - from;
    if (span < shown * LONGEST_SHARE || span < (shown - span) * WORTH) break;
    shown -= span;
    cuts.push({ from, to });
  }
  const margin = Math.max(SECOND, shown * MARGIN);
  return cuts
    .filter(({ from, to }) => to - from > 4 * margin)
    .map(({ from, to }) => ({ from: from + margin, to: to - margin }))
    .sort((a, b) => a.from - b.from);
}

function ticksOf(from: number, until: number, shown: number, cuts: readonly Stretch[]): number[] {
  const step = STEPS.find((one) => shown / one <= MOST_TICKS) ?? 365 * DAY;
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - zone) / step) * step + zone;
  const ticks: number[] = [];
  let at = first;
  while (at < until && ticks.length < 100) {
    const cut = cuts.find((one) => at > one.from && at < one.to);
    if (cut) at = Math.ceil((cut.to - zone) / step) * step + zone;
    else {
      ticks.push(at);
      at += step;
    }
  }
  return ticks;
}
