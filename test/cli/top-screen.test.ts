import { describe, expect, it } from "vitest";
import type { TopData } from "../../src/cli/top/data.ts";
import { deadlineText, onceText, screenLines } from "../../src/cli/top/screen.ts";
import { press, rowsOf, START, type TopState } from "../../src/cli/top/state.ts";

const NOW = Date.parse("2030-01-01T00:00:00.000Z");
const at = (offset: number) => new Date(NOW + offset).toISOString();

const queue = (name: string, available: number, more: object = {}) => ({
  name,
  paused: false,
  counts: { available, scheduled: 0, retryable: 0, active: 1, completed: 0 },
  throughput: { processed_per_minute: 2 },
  unattended: false,
  oldest_wait_ms: null,
  ...more,
});
const running = (id: string, type: string, deadline: number | null) => ({
  id,
  type,
  queue: "mail",
  attempt: 1,
  max_attempts: 3,
  started_at: at(-10_000),
  deadline_at: deadline === null ? null : at(deadline),
});

const DATA: TopData = {
  at: NOW,
  queues: [queue("payments", 3), queue("mail", 9, { paused: true })],
  workers: [
    {
      id: "w-1",
      state: "running",
      active_jobs: 2,
      last_heartbeat_at: at(-1_000),
      queues: ["mail", "payments"],
    },
  ],
  running: [
    running("a", "mail.send", 5_000),
    running("b", "card.charge", -2_000),
    running("c", "tail.cut", null),
  ],
  failed: [
    {
      id: "d",
      type: "report.build",
      queue: "reports",
      attempt: 3,
      max_attempts: 3,
      discarded_at: at(-60_000),
      error: { code: "handler_error", message: "no \u001b[31mpaper" },
    },
  ],
  stats: {
    jobs: { available: 12, active: 3 },
    throughput: { processed_per_minute: 5, failed_per_minute: 1 },
    timeouts_per_minute: { execution: 0.4, total: 0.2 },
    deadline_lateness: { total: 4, sum_ms: 20 },
  },
};

const options = { columns: 80, rows: 24, now: NOW, problem: null, name: "sqlite:jobs.db" };

/** Presses keys one after the other, and gives the last answer. */
function pressAll(keys: readonly string[], from: TopState = START) {
  let last: ReturnType<typeof press> = { state: from };
  for (const key of keys) last = press(last.state, key, DATA);
  return last;
}

describe("the deadline of a running job", () => {
  it.each([
    [running("a", "x", 10_000), "████░░░░ 10s left"],
    [running("a", "x", 90_000), "░░░░░░░░ 1m 30s left"],
    [running("a", "x", 500), "███████░ 500ms left"],
    [running("a", "x", -2_000), "████████ 2s over"],
    [running("a", "x", null), "no timeout"],
  ])("%# counts down as %s", (job, text) => {
    expect(deadlineText(job, NOW)).toBe(text);
  });
});

describe("the screen of top", () => {
  it.each([
    [80, 24],
    [200, 60],
    [40, 12],
    [20, 6],
  ])("fills a terminal of %i columns and %i rows, and no more", (columns, rows) => {
    for (const pane of ["1", "2", "3", "4", "?", "/"]) {
      const lines = screenLines(DATA, pressAll([pane]).state, { ...options, columns, rows });
      expect(lines).toHaveLength(rows);
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
    }
  });

  it("shows queues, workers and running jobs, the next deadline first", () => {
    const text = screenLines(DATA, START, options).join("\n");
    expect(text).toContain("ready 12  running 3  overdue 1  done 5/m  failed 1/m");
    expect(text).toContain("timeouts 0.6/m  late 5ms");
    expect(text).toMatch(/mail +paused +9/);
    expect(text).toMatch(/w-1 +running +2 +1s ago +mail, payments/);
    expect(text).toMatch(
      /▸ ████████ 2s over +card\.charge[\s\S]*5s left +mail\.send[\s\S]*no timeout +tail\.cut/,
    );
  });

  it("keeps its last data when a read fails, and says since when", () => {
    const [head] = screenLines(DATA, START, { ...options, now: NOW + 9_000, problem: "server is down" });
    expect(head).toBe("curfew top  no answer for 9s: server is down");
  });

  it("printed once, fits a terminal of 60 columns", () => {
    const id = "0198f7e2-7b1c-7000-8000-000000000001";
    const wide = {
      ...DATA,
      queues: [queue("invoices-of-the-month", 12_345, { unattended: true })],
      workers: DATA.workers.map((worker) => ({ ...worker, id })),
      running: [running(id, "invoice.render.monthly", 5_000)],
      failed: DATA.failed.map((job) => ({ ...job, id, type: "invoice.render.monthly" })),
    };
    for (const line of onceText(wide, START, 60).split("\n")) expect(line.length).toBeLessThanOrEqual(60);
  });

  it("prints nothing from the outside that could control the terminal", () => {
    const text = screenLines(DATA, pressAll(["4"]).state, { ...options, columns: 160 }).join("\n");
    expect(text).toContain("no  [31mpaper");
    expect(onceText(DATA, START)).not.toContain("\u001b");
  });

  it("keeps the selected row in sight when there are more rows than room", () => {
    const many = {
      ...DATA,
      running: Array.from({ length: 100 }, (_, index) => running(`job-${index}`, "x", index)),
    };
    let state = START;
    for (let moves = 0; moves < 60; moves++) state = press(state, "down", many).state;
    expect(screenLines(many, state, options).join("\n")).toMatch(/▸ .*job-60/);
  });
});

describe("the keys of top", () => {
  it.each([
    ["q leaves", ["q"], { action: "quit" }],
    ["space reads again", ["space"], { action: "refresh" }],
    ["c asks before it cancels", ["c"], { state: { mode: "confirm", asked: { name: "cancel", id: "b" } } }],
    ["y confirms", ["c", "y"], { action: { name: "cancel", id: "b" }, state: { mode: "browse" } }],
    ["n changes nothing", ["c", "n"], { state: { mode: "browse", message: "Nothing was changed." } }],
    ["the selected job is meant", ["down", "c", "y"], { action: { name: "cancel", id: "a" } }],
    ["r retries a failed job", ["4", "r", "y"], { action: { name: "retry", id: "d" } }],
    ["p pauses a queue", ["1", "down", "p", "y"], { action: { name: "pause", queue: "payments" } }],
    ["p resumes a paused queue", ["1", "p", "y"], { action: { name: "resume", queue: "mail" } }],
    ["enter asks why", ["3", "return"], { action: { name: "why", id: "b" } }],
    ["tab goes to the next pane", ["tab", "tab"], { state: { pane: "queues" } }],
    ["a filter takes the letters of keys", ["/", "q", "c"], { state: { filter: "qc", mode: "filter" } }],
    ["escape clears the filter", ["/", "x", "return", "escape"], { state: { filter: "" } }],
  ])("%s", (_name, keys, expected) => {
    expect(pressAll(keys)).toMatchObject(expected);
  });

  it.each([
    ["cancel in the pane of failed jobs", ["4", "c"]],
    ["retry in the pane of running jobs", ["3", "r"]],
    ["pause in the pane of workers", ["2", "p"]],
    ["act on an empty list", ["/", "z", "z", "return", "c"]],
  ])("do not %s", (_name, keys) => {
    const { state, action } = pressAll(keys);
    expect(action).toBeUndefined();
    expect(state.mode).toBe("browse");
  });

  it("sort by the next column, reverse, and filter", () => {
    const ids = (keys: readonly string[]) =>
      rowsOf(DATA, pressAll(keys).state, "running").map(({ id }) => id);
    expect(ids([])).toEqual(["b", "a", "c"]);
    expect(ids(["s", "s"])).toEqual(["b", "a", "c"]);
    expect(ids(["s", "s", "S"])).toEqual(["c", "a", "b"]);
    expect(ids(["/", "m", "a", "i", "l", ".", "s"])).toEqual(["a"]);
  });

  it("keep a row selected when rows move", () => {
    const { state } = pressAll(["down"]);
    const later = { ...DATA, running: [running("z", "new", 1_000), ...DATA.running] };
    expect(press(state, "c", later).state.asked).toEqual({ name: "cancel", id: "a" });
  });
});
