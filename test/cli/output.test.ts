import { describe, expect, it } from "vitest";
import { adviceText } from "../../src/cli/commands/advise.ts";
import { targetOf } from "../../src/cli/commands/audit.ts";
import { eventText } from "../../src/cli/commands/follow.ts";
import { queueTable } from "../../src/cli/commands/queues.ts";
import { jobTable } from "../../src/cli/output/job-table.ts";
import { printable } from "../../src/cli/output/paint.ts";
import { Progress } from "../../src/cli/output/progress.ts";
import { tableText } from "../../src/cli/output/table.ts";
import { relativeTime, spanText } from "../../src/cli/output/times.ts";
import { instantOption } from "../../src/cli/target/filter-options.ts";
import { readEventStream } from "../../src/cli/target/read-event-stream.ts";

describe("relative times", () => {
  it.each([
    [250, "250ms"],
    [9_000, "9s"],
    [61_000, "1m 1s"],
    [3_600_000, "1h"],
    [7_500_000, "2h 5m"],
    [36_900_000, "10h"],
    [183_600_000, "2d 3h"],
  ])("%i ms is %s", (span, text) => {
    expect(spanText(span)).toBe(text);
  });

  it("say on which side of now an instant lies", () => {
    expect([relativeTime(0, 90_000), relativeTime(90_000, 0), relativeTime(5, 0)]).toEqual([
      "1m 30s ago",
      "in 1m 30s",
      "now",
    ]);
  });
});

describe("a time on the command line", () => {
  it("is a duration or an instant, and anything else is refused in the words of the command line", () => {
    expect(instantOption("1h", 7_200_000, "--since")).toBe("1970-01-01T01:00:00.000Z");
    expect(() => instantOption("bogus", 0, "--since")).toThrow(
      '--since: "bogus" is not a time; write 15m, 2h, 1d or 2026-01-31T10:00:00Z',
    );
  });
});

describe("a table", () => {
  const rows = [{ id: "a", text: "a sentence that is much too long for this terminal" }];
  const columns = [
    { title: "ID", show: (row: (typeof rows)[number]) => row.id },
    { title: "TEXT", show: (row: (typeof rows)[number]) => row.text, shrinkTo: 8 },
  ];

  it("fits the width of the terminal by cutting the columns that may be cut", () => {
    const lines = tableText(columns, rows, 20).split("\n");
    expect(lines).toEqual(["ID  TEXT", "a   a sentence that…"]);
  });

  it.each([60, 80, 120])("of jobs or queues fits %i columns: the least important are left out", (width) => {
    const job = {
      id: "0198f7e2-7b1c-7000-8000-000000000001",
      state: "discarded",
      type: "invoice.render.monthly",
      queue: "invoices-of-the-month",
      attempt: 3,
      max_attempts: 3,
      created_at: "1970-01-01T00:00:00.000Z",
      discarded_at: "1970-01-01T00:01:00.000Z",
      error: { code: "handler_error", message: "the printer is out of paper" },
    };
    const counts = { available: 12_345, scheduled: 12, retryable: 3, pending: 4, active: 5, completed: 99 };
    const queue = {
      name: "invoices-of-the-month",
      paused: false,
      counts,
      dead_letters: 7,
      latency_ms: { p95: 1_500 },
      unattended: true,
    };
    const [jobs, queues] = [jobTable([job], 3_600_000, width), queueTable([queue], width)];
    for (const line of `${jobs}\n${queues}`.split("\n")) expect(line.length).toBeLessThanOrEqual(width);
    expect(jobs).toContain(job.id);
    expect(jobs).toMatch(/^ID +STATE +TYPE/);
    expect(queues).toMatch(/^QUEUE +STATE +READY/);
    expect(queues).toContain("no worker takes it");
  });

  it("is not cut where there is no terminal", () => {
    expect(tableText(columns, rows, Number.POSITIVE_INFINITY)).toContain("for this terminal");
  });
});

describe("advice", () => {
  it("that is the same for several types is said once", () => {
    const text = "Not enough runs: 3 of 20.";
    const row = { verdict: "unknown", timeout_ms: null, suggested_timeout_ms: null, run: null };
    const more = { ...row, near_misses: 0, timeouts: { execution: 0 }, text };
    const said = adviceText([
      { ...more, type: "a" },
      { ...more, type: "b" },
    ]);
    expect(said.split("\n\n")[1]).toBe(`a, b: ${text}`);
  });
});

describe("text from others", () => {
  it("cannot steer the terminal", () => {
    expect(printable("a\u001b[2Jb\r\nc\u009b1m")).toBe("a [2Jb  c 1m");
  });
});

/** A terminal that keeps what is written, and time that the test moves. */
function stage(isTTY: boolean) {
  let now = 0;
  let timers: { at: number; fire: () => void }[] = [];
  const written: string[] = [];
  const stream = { isTTY, columns: 80, write: (text: string) => written.push(text) > 0 };
  const system = {
    monotonic: () => now,
    after: (delay: number, fire: () => void) => {
      const timer = { at: now + delay, fire };
      timers.push(timer);
      return {
        cancel: () => {
          timers = timers.filter((each) => each !== timer);
        },
      };
    },
  };
  const pass = (to: number) => {
    now = to;
    const due = timers.filter(({ at }) => at <= now);
    timers = timers.filter(({ at }) => at > now);
    for (const { fire } of due) fire();
  };
  return { written, pass, progress: new Progress("cancel", system, stream as unknown as NodeJS.WriteStream) };
}

describe("progress", () => {
  it("appears after a second, moves, and is taken away at the end", () => {
    const { written, pass, progress } = stage(true);
    pass(999);
    expect(written).toEqual([]);
    progress.update(50, 200);
    pass(1_000);
    expect(written.at(-1)).toContain("cancel ██████░░░░░░░░░░░░░░░░░░ 50 of 200 (25 %) 1s");
    progress.end();
    expect(written.at(-1)).toBe("\r\u001b[K");
  });

  it("stays away where there is no terminal", () => {
    const { written, pass, progress } = stage(false);
    pass(5_000);
    progress.end();
    expect(written).toEqual([]);
  });
});

describe("a stream of events", () => {
  it("is read frame by frame, however it is cut", async () => {
    const text = 'id: 1\nevent: job.started\ndata: {"a":1}\n\n: comment\n\nid: 2\ndata: x\ndata: y\n\n';
    const bytes = new TextEncoder().encode(text);
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7));
        controller.close();
      },
    });
    const events = [];
    for await (const event of readEventStream(body, new AbortController().signal)) events.push(event);
    expect(events).toEqual([
      { id: "1", name: "job.started", data: '{"a":1}' },
      { id: "2", name: "message", data: "x\ny" },
    ]);
  });
});

describe("a line of tail", () => {
  const time = "2030-01-31T12:00:00.000Z";

  it("names what an event without a job is about, and its error", () => {
    const error = "Error: getaddrinfo ENOTFOUND partner.invalid";
    const data = { subscription: "sub_1", attempt: 2, error };
    expect(eventText({ time, type: "webhook.failed", subject: "sub_1", data })).toBe(
      `${time} webhook.failed sub_1 attempt 2 ${error}`,
    );
    const dead = { timeout: "t1", destination: "mail", tries: 5, error: "no" };
    expect(eventText({ time, type: "timeout.dead", subject: "t1", data: dead })).toBe(
      `${time} timeout.dead t1 attempt 5 no`,
    );
  });

  it("says why a job ended, and how far one is", () => {
    const job = { time, subject: "j1", job_id: "j1", queue: "mail" };
    const last_error = { code: "timeout", message: "Timed out after 6s" };
    expect(eventText({ ...job, type: "job.discarded", data: { attempt: 2, last_error } })).toBe(
      `${time} job.discarded j1 mail attempt 2 timeout: Timed out after 6s`,
    );
    const data = { attempt: 1, progress: 0.034, message: "page 1 of 29", data: null };
    expect(eventText({ ...job, type: "job.progress", data })).toBe(
      `${time} job.progress j1 mail attempt 1 3 % page 1 of 29`,
    );
  });

  it("names a queue once", () => {
    const event = { time, type: "queue.paused", subject: "mail", queue: "mail", data: {} };
    expect(eventText(event)).toBe(`${time} queue.paused mail`);
  });
});

describe("what an audit entry is on", () => {
  it.each([
    ["job.extend", { job_id: "j1", queue: "mail", details: { attempt: 5 } }, "j1"],
    ["queue.configure", { queue: "mail", details: { fair: {} } }, "mail"],
    ["limit.put", { details: { key: "bank", concurrency: 1 } }, "bank"],
    ["tenant.put", { details: { tenant: "acme", limits: {} } }, "acme"],
    ["webhook.create", { details: { subscription: "sub_1", host: "a.example" } }, "sub_1"],
    ["schema.put", { details: { type: "card.charge", version: "2" } }, "card.charge 2"],
    ["calendar.put", { details: { calendar: "frankfurt", days: 3 } }, "frankfurt"],
    ["cron.pause", { details: { cron: "nightly" } }, "nightly"],
    ["timeout.revoke", { details: { timeout: "t1", destination: "mail" } }, "t1"],
    ["worker.quiet", { details: { worker: "w1" } }, "w1"],
    ["workflow.cancel", { details: { workflow: "f1" } }, "f1"],
    ["pool.put", { details: { pool: "p1" } }, "p1"],
    ["saga.end", { details: { type: "order", saga: "42" } }, "order 42"],
    ["saga.compensate", { details: { saga: "order", id: "42", answer: "begun" } }, "order 42"],
    ["bulk.cancel", { details: { tried: 3, filter: { type: "a" } } }, ""],
    ["bulk.cancel", { details: { tried: 2, jobs: ["j1", "j2"] } }, "2 jobs"],
  ])("of %s", (action, entry, target) => {
    expect(targetOf({ action, ...entry })).toBe(target);
  });
});
