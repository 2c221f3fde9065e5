import { describe, expect, it } from "vitest";
import { type Run, runsOf } from "../../src/dashboard/pages/job/timeline/runs.ts";
import { stuckMarks, stuckSegments } from "../../src/dashboard/pages/job/timeline/stuck.ts";
import { closestLimit } from "../../src/dashboard/pages/jobs/closest-limit.ts";
import { concernsOf, type Seen } from "../../src/dashboard/pages/overview/attention.ts";
import { onTimeOf } from "../../src/dashboard/pages/overview/on-time.ts";
import { areSame } from "../../src/dashboard/ui/same-numbers.ts";
import type { HistoryPoint } from "../../src/ojs/replies/history-replies.ts";
import type { Doctor, Job, WireEvent } from "../../src/ojs/replies/wire-replies.ts";

const NOW = Date.parse("2026-11-18T12:00:00Z");
const instant = (ago: number) => new Date(NOW - ago).toISOString();

const calm: Seen = {
  now: NOW,
  queues: [],
  workers: [],
  active: undefined,
  waiting: undefined,
  deadLetters: undefined,
  history: [],
  stuck: [],
  doctor: undefined,
  pausedAll: undefined,
};

describe("what needs attention", () => {
  it("is nothing where nothing is wrong", () => {
    expect(concernsOf(calm)).toEqual([]);
  });

  it("says that clocks differ as the doctor says it, and nothing else of the doctor's", () => {
    const finding = (code: string) =>
      ({ code, level: "warning", sentence: `${code}: the clocks differ.`, action: "Sync them." }) as const;
    const doctor: Doctor = {
      checked_at: instant(0),
      findings: [finding("clock_offset"), finding("disk_low")],
      passed: [],
    };
    const concerns = concernsOf({ ...calm, doctor });
    expect(concerns.map(({ title, to }) => [title, to])).toEqual([
      ["clock_offset: the clocks differ", "system"],
    ]);
  });

  it("offers to retry all dead letters, and says whether more of them come", () => {
    const letters = (ago: number) => ({
      total: 3,
      total_is_exact: true,
      sampled: 3,
      by_type: { "card.charge": 3 },
      by_error_type: { Error: 3 },
      oldest_at: instant(7_200_000),
      newest_at: instant(ago),
    });
    const [growing] = concernsOf({ ...calm, deadLetters: letters(60_000) });
    expect(growing?.title).toBe("Dead letters grow: 3 wait for somebody");
    expect(growing?.to).toBe("dead-letters");
    expect(growing?.retry).toEqual({ target: { filter: { dead_letter: true } }, count: 3 });
    const [old] = concernsOf({ ...calm, deadLetters: letters(7_000_000) });
    expect(old?.title).toBe("Dead letters: 3 wait for somebody");
  });
});

describe("the share of jobs on time", () => {
  const point = (late: number, timeouts: HistoryPoint["timeouts"]): HistoryPoint => ({
    timestamp: instant(0),
    span_ms: 60_000,
    processed: 0,
    completed: 0,
    failed: 0,
    enqueued: 0,
    discarded: 0,
    cancelled: 0,
    late,
    near_misses: 0,
    timeouts,
  });
  const of = (attainment: number | null) =>
    onTimeOf({
      period: "1m",
      since: instant(0),
      until: instant(0),
      attainment,
      data: [point(2, { execution: 1, enqueue_ttl: 4, visibility: 9 }), point(0, {})],
    });

  it("is never rounded up to a hundred", () => {
    expect(of(1).value).toBe("100");
    expect(of(0.9999999).value).toBe("99.99");
    expect(of(0.9512).value).toBe("95.1");
    expect(of(null).value).toBe("–");
  });

  it("counts limits that fired, and not leases that ran out", () => {
    expect(of(1).below).toBe("2 late, 5 fired");
    expect(of(1).missed).toEqual([7]);
  });
});

describe("a job whose first events are no longer found", () => {
  it("has its earlier attempts as it remembers them itself", () => {
    const error = (attempt: number, ago: number) => ({
      attempt,
      occurred_at: instant(ago),
      code: "handler_error",
      message: "no route",
    });
    const job = {
      id: "1",
      state: "active",
      attempt: 3,
      started_at: instant(10_000),
      errors: [error(1, 90_000), error(2, 40_000)],
    } as unknown as Job;
    const started = (attempt: number, ago: number): WireEvent => ({
      id: String(attempt),
      type: "job.started",
      time: instant(ago),
      subject: "1",
      data: { attempt },
    });
    const attemptsOf = (runs: readonly Run[]) => runs.map(({ attempt, end }) => [attempt, end]);
    const all = [
      [1, "failed"],
      [2, "failed"],
      [3, "running"],
    ];
    expect(attemptsOf(runsOf(job, []))).toEqual(all);
    expect(attemptsOf(runsOf(job, [started(3, 10_000)]))).toEqual(all);
    expect(attemptsOf(runsOf(job, [started(2, 41_000), started(3, 10_000)]))).toEqual(all);
  });
});

describe("a handler that runs on past its verdict", () => {
  const event = (type: string, ago: number): WireEvent => ({
    id: `${type} ${ago}`,
    type,
    time: instant(ago),
    subject: "1",
    data: { attempt: 1, ...(type === "job.timeout" && { error: { forced: true, message: "Timed out" } }) },
  });
  const job = { id: "1", state: "discarded", attempt: 1, discarded_at: instant(80_000) } as Job;
  const events = [event("job.started", 100_000), event("job.timeout", 80_000), event("job.stuck", 79_900)];

  it("is drawn until it ended", () => {
    const runs = runsOf(job, [...events, event("job.unstuck", 75_000)]);
    expect(stuckSegments(runs, NOW - 100_000, NOW)).toEqual([
      { kind: "stuck", from: NOW - 80_000, to: NOW - 75_000, text: "runs on" },
    ]);
    expect(stuckMarks(runs, NOW - 100_000, NOW)).toEqual([
      { kind: "stuck", at: NOW - 75_000, text: "the handler of attempt 1 ended 5 s after the verdict" },
    ]);
  });

  it("is drawn for half of the job's life at most while nobody saw it end", () => {
    const runs = runsOf(job, events);
    const [segment] = stuckSegments(runs, NOW - 100_000, NOW);
    expect(segment?.to).toBe(NOW - 70_000);
  });

  it("is not drawn under the attempt that follows", () => {
    const [run] = runsOf(job, events);
    const next = { ...run, attempt: 2, from: NOW - 79_000, to: null, isStuck: false } as Run;
    expect(stuckSegments([run as Run, next], NOW - 100_000, NOW)).toEqual([]);
    expect(stuckMarks([run as Run, next], NOW - 100_000, NOW)).toEqual([]);
  });

  it("leaves no trace of a handler that ended in time", () => {
    const runs = runsOf(job, events.slice(0, 2));
    expect(runs).toHaveLength(1);
    expect(stuckSegments(runs, NOW - 100_000, NOW)).toEqual([]);
    expect(stuckMarks(runs, NOW - 100_000, NOW)).toEqual([]);
  });
});

describe("a plot", () => {
  it("is painted again only when its numbers are others", () => {
    const before = [
      [1, 2],
      [0, null],
    ];
    expect(areSame(before, [...before])).toBe(true);
    expect(areSame(before, structuredClone(before))).toBe(true);
    expect(
      areSame(before, [
        [1, 2],
        [0, 0],
      ]),
    ).toBe(false);
    expect(
      areSame(before, [
        [1, 2, 3],
        [0, null],
      ]),
    ).toBe(false);
    expect(areSame(before, [[1, 2]])).toBe(false);
  });
});

describe("the closest limit of a claimed job", () => {
  it("is its wait until its handler is entered", () => {
    const job = {
      state: "active",
      attempt: 0,
      created_at: instant(1_000),
      enqueue_ttl_ms: 10_000,
      timeout_ms: 2_000,
    } as Job;
    expect(closestLimit(job, NOW)).toMatchObject({ name: "wait", text: "9 s to begin" });
    const entered = { ...job, attempt: 1, started_at: instant(500) } as Job;
    expect(closestLimit(entered, NOW)).toMatchObject({ name: "attempt", text: "1.5 s left of 2s" });
  });
});
