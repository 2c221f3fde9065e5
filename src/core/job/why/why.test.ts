import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  at,
  claimed,
  DAY,
  discarded,
  enqueued,
  MINUTE,
  pending,
  retryable,
  running,
  SECOND,
  step,
  T0,
} from "../../../../test/support/rows.ts";
import type { WorkerReport } from "../../worker/worker-report.ts";
import type { WorkflowRecord } from "../../workflow/workflow-record.ts";
import type { JobRow } from "../job.ts";
import { WHY_CODES } from "./codes.ts";
import type { WhyFacts } from "./facts.ts";
import { roughly } from "./reason.ts";
import { whyDuplicate, whyJob } from "./why.ts";

const WORKER: WorkerReport = {
  id: "worker-1",
  isRemote: false,
  seenAt: T0,
  isStopping: false,
  running: 0,
  queues: ["default"],
  slots: { default: [0, 10] },
  processors: [{ type: "test.job", queue: "default", settings: {} }],
  problem: null,
  halted: null,
  blocked: null,
  stuck: [],
  sandboxes: {},
};

const NO_SLOTS = { available: 0, active: 0, unstarted: 0, retryable: 0, starts: 0, nextAt: null, jobs: [] };

function factsOf(row: JobRow, more: Partial<WhyFacts> = {}): WhyFacts {
  const now = more.now ?? T0;
  return {
    now,
    row,
    pausedAt: null,
    maintenance: null,
    workers: [{ ...WORKER, seenAt: now }],
    hasMoreWorkers: false,
    holder: row.state === "active" ? { ...WORKER, seenAt: now } : null,
    ahead: row.state === "available" ? 0 : null,
    pace: null,
    queueSlots: null,
    limit: null,
    workflow: null,
    ...more,
  };
}

function codes(row: JobRow, more: Partial<WhyFacts> = {}): string[] {
  return whyJob(factsOf(row, more)).reasons.map(({ code }) => code);
}

const RECORD: WorkflowRecord = {
  state: "running",
  phase: "running",
  kind: "chain",
  name: null,
  meta: null,
  startedAt: T0,
  endedAt: null,
  endsAt: null,
  end: "end",
  total: 2,
  counts: null,
  failure: null,
  isResultKept: false,
  retention: { completed: DAY, other: DAY },
};

/** A step that waits for one before it. */
function waitingStep(role: "step" | "end" = "step"): JobRow {
  const row = pending({}, { workflow: "flow-1" });
  return { ...row, options: { step: { wakes: [], waitsFor: { role } } } };
}

describe("the first reason", () => {
  it.each([
    ["a workflow that is being stored", { ...RECORD, phase: "starting" }, "workflow_starting"],
    ["a workflow that has failed", { ...RECORD, state: "failed", endedAt: T0 }, "workflow_ended"],
    ["a workflow that runs", RECORD, "workflow_step_before"],
  ] as const)("for a step of %s is its own", (_what, record, code) => {
    const workflow = { id: "flow-1", record, before: [] };
    expect(codes(waitingStep(), { workflow })[0]).toBe(code);
  });

  it("for a bookkeeping job of a workflow says so", () => {
    const workflow = { id: "flow-1", record: RECORD, before: [] };
    expect(codes(waitingStep("end"), { workflow })[0]).toBe("workflow_bookkeeping");
  });

  it("for a job at a limit with room says that it is admitted next", () => {
    const limit = { key: "k", concurrency: 2 };
    const row = enqueued({ settings: { limit } as never });
    const facts = {
      limit: { limit: { concurrency: 2 }, slots: NO_SLOTS, countedUpTo: 3, admitted: [], ahead: 0 },
    };
    expect(codes(row, facts)).toEqual(["limit_admitting"]);
  });

  it("for a job at a full limit names the jobs that hold it, also if they only wait", () => {
    const row = enqueued({ settings: { limit: { key: "k", concurrency: 1 } } as never });
    const holder = enqueued();
    const slots = { ...NO_SLOTS, available: 1 };
    const facts = {
      limit: { limit: { concurrency: 1 }, slots, countedUpTo: 2, admitted: [holder], ahead: 3 },
    };
    const [first, ...others] = whyJob(factsOf(row, facts)).reasons;
    expect(first).toMatchObject({ code: "limit_full", who: { kind: "job", id: holder.id } });
    expect(first?.sentence).toContain(`wait for a worker: job ${holder.id} (test.job).`);
    expect(others.map(({ code }) => code)).toEqual(["limit_ahead"]);
    expect(codes(row, { ...facts, workers: [] })).toEqual(["no_worker", "limit_full"]);
  });

  it.each([
    [{ actor: "mia", reason: "deploy", host: "web-1" }, /has been paused for .*, by mia \(deploy\)\.$/],
    [{ actor: "mia", reason: null, host: null }, /, by mia\.$/],
    [{ actor: null, reason: null, host: "web-1" }, /, by a program on host web-1 that named no operator\.$/],
    [{ actor: null, reason: null, host: null }, /, by a program that named no operator\.$/],
    [undefined, /has been paused for [^,]*\.$/],
  ])("says who paused the queue: %j", (pausedBy, says) => {
    const { reasons } = whyJob(factsOf(enqueued(), { pausedAt: T0, pausedBy }));
    expect(reasons[0]?.sentence).toMatch(says);
  });

  it("is alone while the queue is paused or has no worker: those before it do not matter then", () => {
    expect(codes(enqueued(), { ahead: 5, pausedAt: T0 })).toEqual(["queue_paused"]);
    expect(codes(enqueued(), { ahead: 5, workers: [] })).toEqual(["no_worker"]);
    expect(codes(enqueued(), { ahead: 5 })).toEqual(["jobs_ahead"]);
  });

  describe("for a job behind a rate", () => {
    const row = enqueued({ settings: { limit: { key: "k", rate: { limit: 2, per: "1m" } } } as never });
    const facts = (most: number, starts: number, countedUpTo: number) => ({
      now: T0,
      limit: {
        limit: { rate: { limit: most, per: 60_000 } },
        slots: { ...NO_SLOTS, starts, nextAt: T0 + 5_000 },
        countedUpTo,
        admitted: [],
        ahead: 0,
      },
    });
    const first = (...said: Parameters<typeof facts>) => whyJob(factsOf(row, facts(...said))).reasons[0];

    it("says when the next start is allowed", () => {
      expect(first(2, 2, 3)).toMatchObject({ code: "rate_full", until: T0 + 5_000 });
      expect(first(2, 1, 3)).toMatchObject({ code: "limit_admitting" });
    });

    it("names no time if more starts are used than a lowered rate allows", () => {
      expect(first(2, 3, 3)).toMatchObject({ code: "rate_full", until: null });
      expect(first(2, 3, 3)?.sentence).not.toContain("The next start");
    });

    it("says that it did not count all of a large rate", () => {
      expect(first(50_000, 10_000, 10_000)?.sentence).toContain("at least 10,000 starts are used");
    });
  });

  it("names a job that a worker gave back, if nothing else keeps it", () => {
    const row = step({ ...claimed(), claimedAt: T0 }, { type: "release", delay: 500 }, at("1s"));
    expect(codes(row, { now: at("1s") })).toEqual(["given_back"]);
    expect(codes(row, { now: at("1s"), workers: [] })).toEqual(["no_worker", "given_back"]);
  });

  it("does not blame workers that were not read", () => {
    expect(codes(enqueued(), { workers: [], hasMoreWorkers: true })).toEqual(["next_in_line"]);
    expect(codes(enqueued(), { workers: [] })).toEqual(["no_worker"]);
  });

  it("takes a worker that says nothing of its queues and types for one that takes all", () => {
    const foreign = { ...WORKER, isRemote: true, queues: null, processors: null, slots: null };
    expect(codes(enqueued(), { workers: [foreign] })).toEqual(["next_in_line"]);
  });

  it.each([
    ["too_many_returns", "too_many_returns"],
    ["parent_results_too_large", "parent_results_too_large"],
    ["killed", "sandbox_killed"],
  ])("for a job that ended with %s is %s", (type, code) => {
    const row = discarded();
    const error = { type, code: type, message: "It ended.", attempt: 1, at: T0 };
    expect(codes({ ...row, errors: [error] })[0]).toBe(code);
  });

  it("does not take an error of a handler that is named like ours for ours", () => {
    const error = { type: "timeout", code: "handler_error", message: "slow", attempt: 1, at: T0 };
    expect(codes({ ...discarded(), errors: [error] })[0]).toBe("handler_failed");
  });

  it("for somebody whose enqueue added nothing is the job that was there", () => {
    const why = whyDuplicate(whyJob(factsOf(enqueued())));
    expect(why.reasons.map(({ code }) => code)).toEqual(["unique_key_held", "next_in_line"]);
    expect(String(why)).toMatch(/^Job .+ is available\.\n1\. Nothing was enqueued: .+ \[unique_key_held\]/);
  });
});

describe("further reasons", () => {
  it("say until when a waiting job must have started or ended", () => {
    const row = enqueued({ settings: { timeouts: { wait: "5m", total: "1h" } } });
    const end = whyJob(factsOf(row)).reasons.at(-1);
    expect(end).toMatchObject({ code: "ends_at", until: at("5m") });
    expect(end?.sentence).toContain("has not started within 5m");
  });

  it("count no further than a thousand jobs before it", () => {
    const [first] = whyJob(factsOf(enqueued(), { ahead: 1_001, pace: 0.001 })).reasons;
    expect(first?.sentence).toMatch(/^More than 1,000 jobs .+ in about 16m 41s or later\.$/);
  });
});

/** Rows as every part of the lifecycle leaves them. */
const ROWS: readonly JobRow[] = [
  enqueued(),
  enqueued({ enqueue: { delay: "1h" } }),
  enqueued({ settings: { timeouts: { wait: "5m", total: "1h" } } }),
  enqueued({ settings: { limit: { key: "k", concurrency: 1 } } as never }),
  pending(),
  waitingStep(),
  claimed(),
  running(),
  running({ settings: { timeouts: { attempt: "1m", grace: "unbounded", heartbeat: "10s" } } }),
  retryable(),
  discarded(),
  step(running(), { type: "succeed", signalled: false }, at("1s")),
  step(enqueued(), { type: "cancel" }, at("1s")),
];

describe("there is always a reason", () => {
  it("for every row, at any time, with any workers", () => {
    const worker = fc.record({
      seenAt: fc.integer({ min: T0 - MINUTE, max: T0 + DAY }),
      isStopping: fc.boolean(),
      isRemote: fc.boolean(),
      queues: fc.constantFrom(null, ["default"], ["other"], []),
      processors: fc.constantFrom(null, WORKER.processors, [{ type: "test.jbo", queue: "x" }], []),
      slots: fc.constantFrom(null, { default: [1, 1] as const }, { default: [0, 1] as const }),
      halted: fc.constantFrom(null, "stuck" as const, "failing" as const),
    });
    const facts = fc.record({
      row: fc.constantFrom(...ROWS),
      now: fc.integer({ min: T0, max: T0 + DAY }),
      workers: fc.array(
        worker.map((said): WorkerReport => ({ ...WORKER, ...said })),
        { maxLength: 3 },
      ),
      hasMoreWorkers: fc.boolean(),
      pausedAt: fc.constantFrom(null, T0),
      ahead: fc.integer({ min: 0, max: 1_001 }),
      pace: fc.constantFrom(null, 0.01),
      isFull: fc.boolean(),
      hasRecord: fc.boolean(),
    });
    fc.assert(
      fc.property(facts, ({ row, isFull, hasRecord, ahead, ...said }) => {
        const slots = { ...NO_SLOTS, active: isFull ? 1 : 0 };
        const why = whyJob(
          factsOf(row, {
            ...said,
            ahead: row.state === "available" ? ahead : null,
            limit: row.options?.limit
              ? { limit: { concurrency: 1 }, slots, countedUpTo: 2, admitted: [], ahead: 0 }
              : null,
            workflow: row.workflow
              ? { id: row.workflow, record: hasRecord ? RECORD : null, before: [] }
              : null,
            holder: said.workers[0] ?? null,
          }),
        );
        expect(why.reasons.length).toBeGreaterThan(0);
        for (const { sentence, action } of why.reasons) {
          expect(sentence).toMatch(/^[A-Z0-9].*[.?]$/);
          expect(sentence).not.toMatch(/undefined|null|NaN/);
          expect(action.text).toMatch(/^[A-Z].*\.$/);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("roughly", () => {
  it.each([
    [0, "0ms"],
    [850, "850ms"],
    [12 * SECOND, "12s"],
    [200 * SECOND, "3m 20s"],
    [2 * 60 * MINUTE, "2h"],
    [3 * DAY + 4 * 60 * MINUTE + 5, "3d 4h"],
  ])("writes %d ms as %s", (span, text) => {
    expect(roughly(span)).toBe(text);
  });
});

describe("the guide", () => {
  it("has a section for every code, in the order of the table", () => {
    const guide = readFileSync(
      join(import.meta.dirname, "../../../../docs/guides/troubleshooting.md"),
      "utf8",
    );
    const sections = [...guide.matchAll(/^### ([a-z_]+)$/gm)].map(([, code]) => code);
    expect(sections).toEqual(Object.keys(WHY_CODES));
  });
});
