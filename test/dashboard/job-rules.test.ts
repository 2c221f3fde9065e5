import { describe, expect, it } from "vitest";
import { toneOf } from "../../src/dashboard/pages/events/event-tone.ts";
import { wordOf } from "../../src/dashboard/pages/events/event-word.ts";
import { copyOf } from "../../src/dashboard/pages/job/copy-body.ts";
import { headlineOf } from "../../src/dashboard/pages/job/timeline/headline.ts";
import { extended, lengthText, limitsOf } from "../../src/dashboard/pages/job/timeline/limits.ts";
import { timelineOf } from "../../src/dashboard/pages/job/timeline/model.ts";
import { countsOf } from "../../src/dashboard/pages/workflow/step-counts.ts";
import { attemptText, isLastAttempt, withAttempts } from "../../src/dashboard/ui/attempts.ts";
import type { Explanation, Job, Workflow } from "../../src/ojs/replies/wire-replies.ts";

const NOW = Date.parse("2026-11-02T15:00:00Z");
const instant = (ago: number) => new Date(NOW - ago).toISOString();

const explanation = (attempts: string, source: string): Explanation =>
  ({
    fields: [
      { field: "attempts", value: attempts, source, lost: [] },
      { field: "attempt", value: "2m", source: "definition", lost: [] },
      { field: "grace", value: "3s", source: "definition", lost: [] },
      { field: "total", value: "5m", source: "definition", lost: [] },
    ],
    instants: {
      soft: NOW + 110_000,
      hard: NOW + 113_000,
      total: NOW + 280_000,
      wait: null,
      stall: null,
      due: NOW - 20_000,
    },
    fixed: false,
    warnings: [],
  }) as unknown as Explanation;

const job = (more: Partial<Job> = {}): Job => ({
  id: "1",
  type: "search.index",
  queue: "search",
  state: "completed",
  priority: 0,
  attempt: 1,
  max_attempts: 3,
  created_at: instant(20_000),
  args: [],
  meta: {},
  ...more,
});

describe("the attempts of a job", () => {
  const assumed = job({ max_attempts_assumed: true });

  it("are said only where something says them", () => {
    expect(attemptText(job())).toBe("1 of 3");
    expect(attemptText(job({ attempt: 2 }), " / ")).toBe("2 / 3");
    expect(attemptText(assumed)).toBe("1");
    expect(isLastAttempt(job({ attempt: 3 }))).toBe(true);
    expect(isLastAttempt({ ...assumed, attempt: 3 })).toBe(false);
  });

  it("are those of its definition where the server knows it", () => {
    expect(attemptText(withAttempts(assumed, explanation("7", "definition")))).toBe("1 of 7");
    expect(attemptText(withAttempts(assumed, explanation("3", "built-in")))).toBe("1");
    expect(attemptText(withAttempts(assumed, undefined))).toBe("1");
    expect(attemptText(withAttempts(job(), explanation("7", "definition")))).toBe("1 of 3");
  });

  it("are not written into a copy if they were only assumed", () => {
    expect(copyOf(job())).toMatchObject({ options: { retry: { max_attempts: 3 } } });
    expect(copyOf(assumed).options as object).not.toHaveProperty("retry");
  });
});

describe("what the head of the timeline says of a running job", () => {
  const running = job({
    state: "active",
    started_at: instant(10_000),
    timeout_ms: 120_000,
    grace_period_ms: 3_000,
    total_timeout_ms: 300_000,
  });
  const titlesOf = (attempt?: number) => {
    const said = explanation("1", "definition");
    const limits = extended(limitsOf(running, said), running, { attempt });
    const model = timelineOf({
      job: { ...running, max_attempts: 1 },
      limits,
      explanation: said,
      events: [],
      now: NOW,
      isPreview: attempt !== undefined,
    });
    return headlineOf(model).chain.map(({ title }) => title.split(" ")[0]);
  };

  it("is in the order of time", () => {
    expect(titlesOf()).toEqual(["Attempt", "Signal", "Kill", "Over"]);
  });

  it("has the end of total once, where total cuts the attempt", () => {
    expect(titlesOf(3_600_000)).toEqual(["Attempt", "Signal", "Kill"]);
  });
});

describe("the length of a limit", () => {
  it("is said as it was written, and in whole seconds where it was computed", () => {
    expect(["2m", "500ms", "none", "1500ms (worker)"].map(lengthText)).toEqual([
      "2m",
      "500ms",
      "none",
      "1500ms",
    ]);
    expect(["300002ms", "90400ms"].map(lengthText)).toEqual(["~5m", "~1m30s"]);
  });
});

describe("events", () => {
  it("of messages that were asked for are no failures", () => {
    for (const type of ["job.timeout", "job.total_timeout", "job.visibility_timeout", "job.stalled"])
      expect(toneOf(type), type).toBe("force");
    for (const type of ["timeout.sent", "timeout.requested", "timeout.revoked"])
      expect(toneOf(type), type).not.toBe("force");
  });

  it("of deliveries look like what came of them", () => {
    expect(["webhook.delivered", "webhook.failed", "webhook.dead"].map(toneOf)).toEqual([
      "done",
      "force",
      "force",
    ]);
  });

  it("say how far a job is, and why one ended", () => {
    const event = (data: Record<string, unknown>) => ({ id: "1", type: "job.progress", time: "", data });
    const job = { job_type: "report.render", attempt: 1 };
    expect(wordOf(event({ ...job, progress: 0.034, message: "page 1 of 29" }))).toBe(
      "report.render, attempt 1, 3.4 %, page 1 of 29",
    );
    expect(wordOf(event({ ...job, last_error: { message: "Timed out after 6s" } }))).toBe(
      "report.render, attempt 1, Timed out after 6s",
    );
  });
});

describe("the steps of a workflow", () => {
  const workflow = {
    steps_total: 2,
    steps_completed: 0,
    jobs_failed: 0,
    jobs_cancelled: 0,
    steps: [{ state: "completed" }, { state: "active" }],
  } as unknown as Workflow;

  it("are counted as they are shown", () => {
    expect(countsOf(workflow)).toEqual({ completed: 1, failed: 0, cancelled: 0 });
  });

  it("are counted by the server where not all are shown", () => {
    const many = { ...workflow, steps_total: 2_000, steps_completed: 1_200, jobs_failed: 3 };
    expect(countsOf(many)).toEqual({ completed: 1_200, failed: 3, cancelled: 0 });
  });
});
