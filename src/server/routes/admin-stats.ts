import { startOf } from "../../core/stats/grains.ts";
import type { Instant } from "../../core/time.ts";
import { RemoteWorkers } from "../../engine/remote/remote-workers.ts";
import type { Stats, StatsPoint } from "../../engine/statistics/statistics.ts";
import { readInstant } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { json, type Route, routesOf } from "../route.ts";
import { adviseReply, auditReply, historyReply, statsReply } from "../wire/admin-replies.ts";
import { adviseQuery, auditQuery, historyQuery, statsQuery } from "../wire/admin-schemas.ts";
import { adviceFields, readRule } from "../wire/advice.ts";
import * as counts from "../wire/counts.ts";

const route = routesOf({ tag: "admin", scope: "tenant" });
const PATH = "/ojs/v1/admin";

const stats = route("GET", `${PATH}/stats`, "read", {
  summary: "Counts of waiting, running and ended jobs, and the throughput",
  isShared: true,
  reply: statsReply,
  replies: {
    200: "Jobs that wait or run now, those that ended in the last 24 hours, and the pace of the last 5 minutes",
  },
  query: statsQuery,
  async run({ query: { queue } }, { engine, service, uptime }) {
    const now = engine.now();
    const of = queue === undefined ? {} : { queue };
    const [day, recent, workers, oldest] = await Promise.all([
      engine.stats({ since: counts.LATELY, by: "queue", ...of }),
      engine.stats({ since: counts.RECENTLY, ...of }),
      service.workers.list(),
      engine.queues.oldestWaits(),
    ]);
    return json(200, {
      queues: day.groups.length,
      workers: workers.filter((worker) => !RemoteWorkers.isStale(worker, now)).length,
      jobs: counts.countsOf(day.total),
      throughput: counts.throughputOf(recent.total),
      timeouts_per_minute: counts.timeoutsPerMinute(recent.total),
      deadline_lateness: counts.latenessFields(engine.counters().lateness),
      ...counts.oldestWaitFields(oldest, now, queue),
      uptime_seconds: uptime(),
      since: instantText(day.since),
      until: instantText(day.until),
    });
  },
});

const PERIODS = { "1m": 1, "5m": 5, "15m": 15, "1h": 60, "6h": 360, "1d": 1_440 } as const;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const POINTS = 24;

/** Every step of the range has a point, even without events. Old stats are stored in wider steps. */
function seriesOf({ since, until, step, points }: Stats): object[] {
  const byStart = new Map(points.map((point) => [point.at, point]));
  const data: object[] = [];
  let coveredUntil = startOf(since, step);
  for (const { at, span } of points) if (at < coveredUntil && span > step) coveredUntil = at;
  for (let at = coveredUntil; at < until; at += step) {
    const point = byStart.get(at);
    if (point) coveredUntil = at + point.span;
    else if (at < coveredUntil) continue;
    data.push(pointOf(at, point?.span ?? step, point));
  }
  return data;
}

function pointOf(at: Instant, span: number, point: StatsPoint | undefined) {
  const { completed = 0, failed = 0, enqueued = 0, discarded = 0, cancelled = 0, late = 0 } = point ?? {};
  const run = point?.run;
  const wait = point?.wait;
  return {
    timestamp: instantText(at),
    span_ms: span,
    processed: completed + failed,
    completed,
    failed,
    enqueued,
    discarded,
    cancelled,
    late,
    near_misses: point?.nearMisses ?? 0,
    timeouts: point?.timeouts ?? counts.NO_TIMEOUTS,
    ...(run && { latency_p50_ms: run.p50, latency_p95_ms: run.p95, latency_p99_ms: run.p99 }),
    ...(run && { avg_latency_ms: run.mean }),
    ...(point?.waiting !== undefined && { waiting: point.waiting, oldest_wait_ms: point.oldestWait }),
    ...(wait && { wait_p50_ms: wait.p50, wait_p95_ms: wait.p95, wait_p99_ms: wait.p99 }),
  };
}

const history = route("GET", `${PATH}/stats/history`, "read", {
  summary: "Counts of jobs over time, for plots",
  isShared: true,
  reply: historyReply,
  query: historyQuery,
  replies: { 200: "Points in the order of time" },
  async run({ query }, { engine }) {
    const now = engine.now();
    const { period = "5m", queue, type } = query;
    const step = PERIODS[period] * MINUTE;
    const until = query.until === undefined ? now + 1 : readInstant(query.until, now, "until");
    const usual = until - (step < HOUR ? HOUR : POINTS * step);
    const since = query.since === undefined ? usual : readInstant(query.since, now, "since");
    const stats = await engine.stats({
      since: { epochMilliseconds: Math.max(0, since) },
      until: { epochMilliseconds: until },
      step: { milliseconds: step },
      ...(queue && { queue }),
      ...(type && { type }),
    });
    const range = { since: instantText(stats.since), until: instantText(stats.until) };
    const data = seriesOf(stats);
    const { attainment } = stats.total;
    return json(200, { period, ...range, attainment, data, data_points: data });
  },
});

const advise = route("GET", `${PATH}/advise`, "read", {
  summary: "Advice on attempt timeouts, from past runs",
  reply: adviseReply,
  query: adviseQuery,
  replies: { 200: "A piece of advice per job type" },
  async run({ query }, { engine }) {
    const { type, queue, since, timeout_ms } = query;
    const rule = readRule(query);
    const items = await engine.advise({
      ...(type && { type }),
      ...(queue && { queue }),
      ...(since && { since: { epochMilliseconds: readInstant(since, engine.now(), "since") } }),
      ...(timeout_ms !== undefined && { attempt: { milliseconds: timeout_ms } }),
      ...(rule && { adaptive: rule }),
    });
    return json(200, { items: items.map(adviceFields) });
  },
});

const audit = route("GET", `${PATH}/audit`, "read", {
  summary: "The audit: actions of operators, the newest first",
  reply: auditReply,
  query: auditQuery,
  replies: { 200: "A page of entries" },
  async run({ query }, { engine }) {
    const { actor, action, job_id, queue, cursor } = query;
    const limit = query.per_page ?? query.limit ?? 50;
    const page = await engine.audit.read({
      limit,
      ...(cursor && { after: cursor }),
      ...(actor && { actor }),
      ...(action && { action }),
      ...(job_id && { job: job_id }),
      ...(queue && { queue }),
    });
    return json(200, {
      items: page.entries.map(({ at, job, ...entry }) => ({
        ...entry,
        at: instantText(at),
        ...(job !== undefined && { job_id: job }),
      })),
      pagination: {
        per_page: limit,
        has_more: page.hasMore,
        next_cursor: page.hasMore ? page.cursor : null,
      },
    });
  },
});

export const adminStatsRoutes: readonly Route[] = [stats, history, advise, audit];
