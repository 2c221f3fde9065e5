import { readdir, readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { wordsOf } from "../../src/dashboard/pages/job/action-words.ts";
import { linesOf } from "../../src/dashboard/pages/queues/queue-lines.ts";
import { needOf, rulesOf, sortedQueues } from "../../src/dashboard/pages/queues/queue-words.ts";
import { findingsOf } from "../../src/dashboard/pages/system/findings.ts";
import { countByDay, countByHour, dayOf, weeksOf } from "../../src/dashboard/pages/timeouts/calendar.ts";
import { factsOf, holdingOf } from "../../src/dashboard/pages/workers/worker-facts.ts";
import { layoutOf } from "../../src/dashboard/pages/workflow/layers.ts";
import type { Queue, Timeout, WireEvent, Worker, WorkflowStep } from "../../src/ojs/replies/wire-replies.ts";

const COUNTS = {
  available: 0,
  scheduled: 0,
  pending: 0,
  active: 0,
  retryable: 0,
  completed: 0,
  discarded: 0,
  cancelled: 0,
};
const queue = (name: string, more: Partial<Queue> = {}): Queue => ({
  name,
  paused: false,
  depth: 0,
  counts: COUNTS,
  throughput: { processed_per_minute: 0, failed_per_minute: 0 },
  configuration: {},
  ...more,
});
const worker = (id: string, more: Partial<Worker> = {}): Worker => ({
  id,
  state: "running",
  remote: false,
  queues: [],
  active_jobs: 0,
  last_heartbeat_at: "2026-11-02T15:00:00Z",
  ...more,
});

describe("a queue", () => {
  it("needs a worker if jobs wait and nobody takes them", () => {
    const waiting = queue("a", { counts: { ...COUNTS, available: 3 } });
    expect(needOf(waiting, 0)).toBe("no worker");
    expect(needOf(waiting, 1)).toBeNull();
    expect(needOf({ ...waiting, paused: true }, 0)).toBe("paused");
  });

  it("that needs somebody stands first, then the one with most to do", () => {
    const quiet = queue("quiet");
    const busy = queue("busy", { depth: 9 });
    const lonely = queue("lonely", { depth: 1, counts: { ...COUNTS, available: 1 } });
    const workers = [worker("w", { queues: ["quiet", "busy"] })];
    expect(sortedQueues([quiet, busy, lonely], workers).map(({ name }) => name)).toEqual([
      "lonely",
      "busy",
      "quiet",
    ]);
  });

  it("says its rules as people do", () => {
    expect(rulesOf({ concurrency: 4, timeouts: { enqueue_ttl_ms: 300_000, timeout_ms: "none" } })).toEqual([
      "4 at once",
      "wait 5m",
      "attempt none",
    ]);
  });

  it("counts its jobs back from how many there are now", () => {
    const point = (enqueued: number, completed: number) => ({
      timestamp: "",
      span_ms: 60_000,
      processed: completed,
      completed,
      failed: 0,
      enqueued,
      discarded: 0,
      cancelled: 0,
      late: 0,
      near_misses: 0,
      timeouts: {},
    });
    const { jobs, waits } = linesOf(queue("a", { depth: 3, counts: { ...COUNTS, active: 1 } }), [
      point(5, 0),
      point(0, 3),
      { ...point(2, 0), wait_p99_ms: 40 },
    ]);
    expect(jobs).toEqual([5, 2, 4]);
    expect(waits).toEqual([null, null, 40]);
  });
});

describe("what workers run", () => {
  const started = (job: string, by: string): WireEvent => ({
    id: job,
    type: "job.started",
    time: "",
    subject: job,
    data: { worker_id: by },
  });
  const job = (id: string) => ({ id }) as never;

  it("is told by who started a job last; a job of a silent worker is an orphan", () => {
    const events = [started("1", "old"), started("1", "new"), started("2", "gone"), started("3", "silent")];
    const workers = [worker("new"), worker("silent", { state: "stale" })];
    const { jobs, orphans, unknown } = holdingOf([job("1"), job("2"), job("3"), job("4")], workers, events);
    expect(jobs.get("new")).toHaveLength(1);
    expect(orphans.map((one) => one.worker)).toEqual(["gone", "silent"]);
    expect(unknown).toHaveLength(1);
  });

  it("counts stops of the loop and handlers that were stuck", () => {
    const blocked = {
      id: "b",
      type: "worker.blocked",
      time: "",
      subject: "w",
      data: { worker_id: "w", gap_ms: 900 },
    };
    const stuck = { id: "s", type: "job.stuck", time: "", subject: "1", data: {} };
    expect(factsOf("w", [started("1", "w"), blocked, stuck])).toEqual({
      blocks: 1,
      longest: 900,
      kills: 0,
      stuck: 1,
    });
    expect(factsOf("other", [started("1", "w"), blocked, stuck]).stuck).toBe(0);
  });
});

describe("the graph of a workflow", () => {
  const step = (id: string, more: Partial<WorkflowStep> = {}): WorkflowStep => ({
    id,
    type: id,
    state: "pending",
    progress: null,
    ...more,
  });
  const ids = (steps: readonly WorkflowStep[], type: "chain" | "group" = "chain") =>
    layoutOf({ type, steps }).layers.map((layer) => layer.map(({ id }) => id));

  it("puts steps of a chain behind each other, and those that ran together above each other", () => {
    expect(ids([step("a"), step("b")])).toEqual([["a"], ["b"]]);
    expect(
      ids([
        step("a", { state: "completed" }),
        step("b", { state: "active" }),
        step("c", { state: "available" }),
        step("d"),
      ]),
    ).toEqual([["a"], ["b", "c"], ["d"]]);
    const ran = (from: number, to: number) => ({
      state: "completed" as const,
      started_at: `2026-11-02T15:00:0${from}Z`,
      completed_at: `2026-11-02T15:00:0${to}Z`,
    });
    expect(
      ids([step("a", ran(0, 1)), step("b", ran(1, 4)), step("c", ran(1, 3)), step("d", ran(4, 5))]),
    ).toEqual([["a"], ["b", "c"], ["d"]]);
  });

  it("puts the jobs of a group into one column", () => {
    expect(ids([step("a"), step("b")], "group")).toEqual([["a", "b"]]);
  });

  it("goes by the dependencies where the server says them, and survives a circle", () => {
    const said = layoutOf({
      type: "chain",
      steps: [
        step("a", { depends_on: [] }),
        step("b", { depends_on: ["a"] }),
        step("c", { depends_on: ["a"] }),
        step("d", { depends_on: ["b", "c"] }),
      ],
    });
    expect(said.layers.map((layer) => layer.map(({ id }) => id))).toEqual([["a"], ["b", "c"], ["d"]]);
    expect(said.edges).toEqual([
      ["a", "b"],
      ["a", "c"],
      ["b", "d"],
      ["c", "d"],
    ]);
    expect(
      ids([step("a", { depends_on: ["b"] }), step("b", { depends_on: ["a"] })])
        .flat()
        .sort(),
    ).toEqual(["a", "b"]);
  });
});

describe("findings", () => {
  const nothing = {
    session: undefined,
    doctor: undefined,
    config: undefined,
    health: undefined,
    maintenance: undefined,
    workers: [],
    queues: [],
    advice: [],
    offset: 0,
  };

  it("are none where nothing is wrong, and the worst stands first", () => {
    expect(findingsOf(nothing)).toEqual([]);
    const found = findingsOf({
      ...nothing,
      offset: 60_000,
      queues: [queue("a", { counts: { ...COUNTS, available: 1 } })],
      health: { status: "unhealthy", version: "", backend: { type: "x", status: "", latency_ms: 2_000 } },
    });
    expect(found.map(({ id }) => id)).toEqual(["store", "lonely", "clock"]);
  });

  it("are the doctor's where it may be asked, and those that only a browser can see", () => {
    const found = findingsOf({
      ...nothing,
      offset: 60_000,
      queues: [queue("a", { counts: { ...COUNTS, available: 1 } })],
      doctor: {
        checked_at: "",
        passed: [],
        findings: [
          { code: "store_slow", level: "warning", sentence: "The store is slow.", action: "Look at it." },
          { code: "queue_without_worker", level: "error", sentence: "Nobody takes a.", action: "Start one." },
        ],
      },
    });
    expect(found.map(({ id, to }) => [id, to])).toEqual([
      ["queue_without_worker", "queues"],
      ["store_slow", undefined],
      ["clock", undefined],
    ]);
  });
});

describe("advice on a job", () => {
  const words = (text: string) => wordsOf({ text });

  it("names the page Audit for the call that reads it", () => {
    expect(words("Somebody cancelled it; engine.audit says who, if they gave a name.")).toBe(
      "Somebody cancelled it; the page Audit says who, if they gave a name.",
    );
  });

  it("names buttons and pages where the server names calls of the library", () => {
    expect(words('Mend the cause, then call engine.retry("1").')).toBe("Mend the cause, then press Retry.");
    expect(words('Wait, call engine.extend("1", …) if it needs longer, or engine.cancel("1").')).toBe(
      "Wait, press Extend if it needs longer, or press Cancel.",
    );
    expect(words('Call engine.queues.resume("a").')).toBe("Resume the queue.");
    expect(words("Start a worker.")).toBe("Start a worker.");
  });

  it("of every kind is free of calls", async () => {
    const folder = new URL("../../src/core/job/why/", import.meta.url);
    const files = (await readdir(folder)).filter((name) => name.endsWith(".ts"));
    const texts = await Promise.all(files.map((name) => readFile(new URL(name, folder), "utf8")));
    const calls = texts.flatMap((text) => text.match(/[^"`]*engine\.[a-z.]+\([^`]*/g) ?? []);
    expect(calls.length).toBeGreaterThan(10);
    for (const call of calls) expect(words(call.replaceAll(/\$\{[^}]*\}/g, "x"))).not.toMatch(/engine\./);
  });
});

describe("the calendar", () => {
  const due = (at: number) => ({ due_at: new Date(at).toISOString() }) as Timeout;

  it("has whole weeks from Monday, and the days of its month", () => {
    const weeks = weeksOf(new Date(2026, 10, 16).getTime());
    expect(weeks).toHaveLength(6);
    expect(weeks.every((week) => week.length === 7 && new Date(week[0]?.from ?? 0).getDay() === 1)).toBe(
      true,
    );
    expect(weeks.flat().filter(({ isInMonth }) => isInMonth)).toHaveLength(30);
  });

  it("counts what is due by day and by hour", () => {
    const day = dayOf("2026-11-16");
    const at = (hour: number) => new Date(2026, 10, 16, hour, 30).getTime();
    const timeouts = [due(at(9)), due(at(9)), due(at(17)), due(new Date(2026, 10, 17).getTime())];
    expect(countByDay(timeouts)).toEqual(
      new Map([
        ["2026-11-16", 3],
        ["2026-11-17", 1],
      ]),
    );
    const hours = countByHour(timeouts, day ?? { from: 0, to: 0 });
    expect([hours.length, hours[9], hours[17]]).toEqual([24, 2, 1]);
    expect(dayOf("<b>")).toBeUndefined();
  });
});
