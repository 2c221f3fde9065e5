import { isInternalQueue } from "../../core/job/internal-queue.ts";
import type { JobState } from "../../core/job/job.ts";
import { jittered } from "../../core/pace.ts";
import { type Advice, advise } from "../../core/stats/advice.ts";
import { startOf } from "../../core/stats/grains.ts";
import { type JobStats, statsOf } from "../../core/stats/job-stats.ts";
import type { RunSpan } from "../../core/stats/replay-limit.ts";
import { OTHER, type SeriesData, SeriesSum, SeriesTable } from "../../core/stats/series.ts";
import { mergeWaits, peakOf, type WaitPeak } from "../../core/stats/waits.ts";
import type { Instant } from "../../core/time.ts";
import type { LiveCount } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";
import { heldSlots } from "./count-held-slots.ts";
import { MOST_SERIES, RollUp } from "./roll-up.ts";
import { type AdviseQuery, parseAdvise, parseStats, type Range, type StatsQuery } from "./stats-query.ts";
import { readRanges } from "./stats-reader.ts";
import { StatsWriter } from "./stats-writer.ts";
import { WaitSampler } from "./wait-sampler.ts";

/** Live jobs by state. */
export type Depth = Readonly<Record<Exclude<JobState, "completed" | "cancelled" | "discarded">, number>>;

/** The stats of one queue and type; `queue` or `type` is null if the group contains all. */
export interface StatsGroup extends JobStats {
  readonly queue: string | null;
  readonly type: string | null;
  readonly depth: Depth;
}

/** The stats of the `span` milliseconds from `at`. */
export interface StatsPoint extends JobStats {
  readonly at: Instant;
  /** Longer than the step where only hours or days are stored. */
  readonly span: number;
  /**
   * The most jobs that waited at once in this span, and the longest that the oldest had waited, in milliseconds. An
   * engine looks once a minute; undefined if none did, and if the query names a type.
   */
  readonly waiting?: number;
  readonly oldestWait?: number;
}

export interface Stats {
  readonly since: Instant;
  readonly until: Instant;
  readonly step: number;
  readonly total: JobStats & { readonly depth: Depth };
  readonly groups: readonly StatsGroup[];
  /** By time; spans without any event are left out. */
  readonly points: readonly StatsPoint[];
}

/** A crash loses the counts since the last write. */
const FLUSH_EVERY = 5_000;
const ROLL_UP_EVERY = 300_000;
/**
 * A count of live jobs is reused for this many times as long as it took. For as long again it is still returned while the
 * next one runs, so that nobody who asks often waits for a count of millions.
 */
const DEPTH_SHARE = 20;
const DEPTH_AT_LEAST = 500;
/** Fewer jobs are counted anew for each caller: that is slow only on a busy machine, and the count is of now. */
const DEPTH_FEW = 10_000;
/** Later callers wait this long for the next count, then get the last one if it is not older than `DEPTH_KEPT`. */
const DEPTH_WAIT = 250;
const DEPTH_KEPT = 120_000;

/** Stats of all processes that share a store: counted in memory, written every few seconds, added up when old. */
export class Statistics {
  readonly loop: Loop;
  readonly #context: EngineContext;
  readonly #writer: StatsWriter;
  readonly #rollUp: RollUp;
  readonly #waits: WaitSampler;
  #rollUpAt: Instant | null = null;
  #live:
    | {
        readonly counts: readonly LiveCount[];
        readonly freshUntil: number;
        readonly until: number;
        readonly keptUntil: number;
      }
    | undefined;
  #counting: Promise<readonly LiveCount[]> | undefined;
  #areFew = false;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#writer = new StatsWriter(context, context.nextId());
    this.#rollUp = new RollUp(context);
    this.#waits = new WaitSampler(context, () => this.#counted());
    this.loop = storeLoop(context, "statistics", () => this.round());
  }

  /** Writes the counts and, every five minutes, adds up old ones. Returns the pause until the next round. */
  async round(): Promise<number> {
    const { clock, random, idlePollFactor } = this.#context;
    await this.#writer.flush();
    const now = clock.now();
    await this.#waits.round(this.#context.counters.minutes.pending(now).running.slices.size > 0);
    // A random start, so that engines that were opened together do not roll up at the same moment.
    this.#rollUpAt ??= now + ROLL_UP_EVERY * random();
    if (now >= this.#rollUpAt) {
      await this.#rollUp.round();
      this.#rollUpAt = now + jittered(ROLL_UP_EVERY * idlePollFactor, random);
    }
    return FLUSH_EVERY * idlePollFactor;
  }

  /** Writes the counts. */
  flush(): Promise<void> {
    return this.#writer.flush();
  }

  /** Stops the loop and writes the last counts. */
  async stop(): Promise<void> {
    await this.loop.stop();
    await this.#writer.flush().catch((error) => this.#context.storeFailed(error, "statistics"));
  }

  async stats(query: StatsQuery): Promise<Stats> {
    const { by, step, ...range } = parseStats(query, this.#context.clock.now());
    const groups = new SeriesTable(MOST_SERIES);
    const points = new Points(step);
    const total = new SeriesSum();
    const name = (value: string, kind: "queue" | "type") => (by === "pair" || by === kind ? value : ALL);
    for await (const { start, span, series, waits } of this.#read(range)) {
      if (range.type === undefined && waits.length > 0) points.at(start, span).addWaits(waits);
      for (const data of series) {
        total.add(data);
        groups.sumOf(name(data.queue, "queue"), name(data.type, "type")).add(data);
        points.at(start, span).sum.add(data);
      }
    }
    const depths = new Depths(await this.#counted(), range);
    for (const { queue, type } of depths.counts) groups.sumOf(name(queue, "queue"), name(type, "type"));
    const length = range.until - range.since;
    return {
      since: range.since,
      until: range.until,
      step,
      total: { ...statsOf(total, length), depth: depths.of(ALL, ALL) },
      groups: groups.entries().map(({ queue, type, sum }) => ({
        queue: queue === ALL ? null : queue,
        type: type === ALL ? null : type,
        ...statsOf(sum, length),
        depth: depths.of(queue, type),
      })),
      points: points.all().map(({ at, span, sum, waits }) => ({
        at,
        span,
        ...statsOf(sum, span),
        ...waitFields(peakOf(waits, range.queue)),
      })),
    };
  }

  async advise(query: AdviseQuery): Promise<Advice[]> {
    const { attempt, rule, ...range } = parseAdvise(query, this.#context.clock.now());
    const types = new SeriesTable(MOST_SERIES);
    const spans = new RunSpans();
    for await (const { series, start, span } of this.#read(range))
      for (const data of series) {
        types.sumOf(ALL, data.type).add(data);
        if (rule) spans.add(start, span, data);
      }
    const slots = (await heldSlots(this.#context.store)).filter(({ type }) => (range.type ?? type) === type);
    const holds = Map.groupBy(slots, ({ type }) => type);
    for (const type of holds.keys()) types.sumOf(ALL, type);
    const adaptive = rule && { rule, spans: spans.all() };
    const holdsOf = (type: string) => (holds.get(type) ?? []).map(({ type: _type, ...hold }) => hold);
    return types
      .entries()
      .filter(({ queue, type }) => queue !== OTHER && type !== OTHER)
      .map(({ type, sum }) => advise(type, sum, { attempt, adaptive, holds: holdsOf(type) }))
      .sort((a, b) => (a.type < b.type ? -1 : 1));
  }

  async *#read({ since, until, queue, type }: Range) {
    await this.#writer.flush();
    const isAsked = (data: SeriesData) =>
      (queue === undefined || data.queue === queue) && (type === undefined || data.type === type);
    for await (const { series, ...read } of readRanges(this.#context.store, since, until))
      yield { ...read, series: series.filter(isAsked) };
  }

  /**
   * Counts live jobs. The cost grows with their number, so callers share a count of many, and frequent ones get a cached answer.
   * The first caller of a process waits for the whole count.
   */
  async #counted(): Promise<readonly LiveCount[]> {
    if (this.#areFew) return this.#count();
    const now = this.#context.system.monotonic();
    const live = this.#live;
    if (live && now < live.freshUntil) return live.counts;
    this.#counting ??= this.#count().finally(() => {
      this.#counting = undefined;
    });
    const counting = this.#counting;
    // A caller that does not wait gets no error. The next one after `until` does.
    counting.catch(() => {});
    if (live && now < live.until) return live.counts;
    if (!live || now >= live.keptUntil) return counting;
    return this.#within(DEPTH_WAIT, counting, live.counts);
  }

  /** The value of `work`, or `other` if it takes longer than `limit`. */
  async #within<Value>(limit: number, work: Promise<Value>, other: Value): Promise<Value> {
    const { promise, resolve } = Promise.withResolvers<Value>();
    const timer = this.#context.system.after(limit, () => resolve(other), { keepAlive: true });
    try {
      return await Promise.race([work, promise]);
    } finally {
      timer.cancel();
    }
  }

  async #count(): Promise<readonly LiveCount[]> {
    const { system, store } = this.#context;
    const startedAt = system.monotonic();
    const counts = await store.inspect.live();
    const endedAt = system.monotonic();
    const reuse = (endedAt - startedAt) * DEPTH_SHARE;
    const keptUntil = startedAt + DEPTH_KEPT;
    this.#areFew = counts.reduce((sum, { count }) => sum + count, 0) < DEPTH_FEW;
    // A count that was fast is not reused, and neither is an older one.
    this.#live =
      reuse > DEPTH_AT_LEAST && !this.#areFew
        ? { counts, freshUntil: endedAt + reuse, until: endedAt + 2 * reuse, keptUntil }
        : undefined;
    return counts;
  }
}

/** The runs of a type by time: engines and queues that counted the same span are added up. */
class RunSpans {
  readonly #sums = new Map<
    string,
    { readonly start: Instant; readonly span: number; readonly sum: SeriesSum }
  >();

  add(start: Instant, span: number, data: SeriesData): void {
    const key = `${start} ${span}`;
    const known = this.#sums.get(key) ?? { start, span, sum: new SeriesSum() };
    known.sum.add(data);
    this.#sums.set(key, known);
  }

  all(): RunSpan[] {
    return Array.from(this.#sums.values(), ({ start, span, sum }) => ({
      start,
      span,
      run: sum.durations.run.data(),
      cut: sum.counts.execution,
    }));
  }
}

/** Stands for every queue or type in a group. */
const ALL = "";

/** One point while it is added up. */
class Point {
  readonly at: Instant;
  readonly span: number;
  readonly sum = new SeriesSum();
  waits: readonly WaitPeak[] = [];

  constructor(at: Instant, span: number) {
    this.at = at;
    this.span = span;
  }

  addWaits(waits: readonly WaitPeak[]): void {
    this.waits = mergeWaits(this.waits, waits);
  }
}

/** The points of a query, by their start. */
class Points {
  readonly #step: number;
  readonly #points = new Map<Instant, Point>();

  constructor(step: number) {
    this.#step = step;
  }

  /** The point of a stored span. */
  at(start: Instant, span: number): Point {
    const width = Math.max(this.#step, span);
    const at = startOf(start, width);
    const known = this.#points.get(at);
    if (known) return known;
    const point = new Point(at, width);
    this.#points.set(at, point);
    return point;
  }

  all(): Point[] {
    return [...this.#points.values()].sort((a, b) => a.at - b.at);
  }
}

function waitFields(peak: WaitPeak | undefined) {
  return peak && { waiting: peak.waiting, oldestWait: peak.oldest };
}

/** Live jobs of a query, by group. */
class Depths {
  readonly counts: readonly LiveCount[];

  constructor(counts: readonly LiveCount[], { queue, type }: Range) {
    this.counts = counts.filter(
      (count) =>
        (queue === undefined ? !isInternalQueue(count.queue) : count.queue === queue) &&
        (type === undefined || count.type === type),
    );
  }

  of(queue: string, type: string): Depth {
    const depth = { scheduled: 0, available: 0, pending: 0, active: 0, retryable: 0 };
    for (const count of this.counts) {
      if (queue !== ALL && count.queue !== queue) continue;
      if (type !== ALL && count.type !== type) continue;
      depth[count.state as keyof typeof depth] += count.count;
    }
    return depth;
  }
}
