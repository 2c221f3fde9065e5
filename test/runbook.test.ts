import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DOCTOR_RULES } from "../src/core/doctor/doctor-rules.ts";
import { EVENT_NAMES } from "../src/engine/events/event-bus.ts";

const page = readFileSync(join(import.meta.dirname, "../docs/guides/operations.md"), "utf8");

/** The sections of the runbook by their titles. */
const sections = new Map(
  page
    .slice(page.indexOf("## Runbook: events"))
    .split(/^### /m)
    .slice(1)
    .map((text): [string, string] => [text.slice(0, text.indexOf("\n")), text]),
);

/** Events that say what was done or that something is well again. Every other event is a warning. */
const ORDINARY = [
  "job.enqueued",
  "job.scheduled",
  "job.started",
  "job.completed",
  // A failed attempt is retried; job.discarded is the warning.
  "job.failed",
  "job.retrying",
  "job.cancelled",
  "job.released",
  "job.snoozed",
  "job.extended",
  "job.retried",
  "job.unstuck",
  "job.progress",
  "job.heartbeat",
  "worker.started",
  "worker.quiet",
  "worker.resumed",
  "worker.stopped",
  "worker.ready",
  "sandbox.mended",
  "cron.triggered",
  "limit.changed",
  "queue.paused",
  "queue.resumed",
  "queue.relieved",
  "scheduling.rebalanced",
  "saga.started",
  "saga.handled",
  "saga.completed",
  "timeout.sent",
  "workflow.started",
  "workflow.completed",
  "workflow.cancelled",
];

const warnings = [...EVENT_NAMES].filter((name) => !ORDINARY.includes(name));
const codes = [...warnings, ...Object.keys(DOCTOR_RULES)];

describe("the runbook", () => {
  it("has a section for every warning of the engine and every finding of the doctor, and no other", () => {
    expect([...sections.keys()].sort()).toEqual([...codes].sort());
  });

  it.each(codes)("says what %s means, what to look at and what to do", (code) => {
    const text = sections.get(code) as string;
    expect(text).toMatch(/^\S+\n\n[A-Z][^*]{10,}\.\s\*\*Look at:\*\* .{5,}\*\*Do:\*\* [\s\S]{5,}\.\n/);
  });

  it("counts as ordinary only events that exist", () => {
    expect(ORDINARY.filter((name) => !EVENT_NAMES.has(name))).toEqual([]);
  });
});
