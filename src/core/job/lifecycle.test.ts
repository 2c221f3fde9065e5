import { describe, expect, it } from "vitest";
import {
  accepted,
  at,
  claimed,
  discarded,
  enqueued,
  failEvent,
  half,
  pending,
  retryable,
  running,
  type Said,
  startEvent,
  step,
  T0,
} from "../../../test/support/rows.ts";
import type { JobLimit } from "../limit/limit.ts";
import type { Instant } from "../time.ts";
import { decide, MOST_RETURNS } from "./decide/decide.ts";
import type { EventOf, JobEvent } from "./decide/job-events.ts";
import { JOB_STATES, type JobRow, type JobState } from "./job.ts";
import { ALLOWED, isTerminal, JOB_EVENTS, type JobEventName, LIFECYCLE, targetsOf } from "./lifecycle.ts";

const EVENTS: { readonly [Name in JobEventName]: EventOf<Name> } = {
  activate: { type: "activate" },
  wake: { type: "wake", seenAt: null },
  claim: { type: "claim", lease: 10_000, salt: 1 },
  start: startEvent(),
  succeed: { type: "succeed", result: "1", signalled: false },
  fail: failEvent(),
  expire: { type: "expire" },
  stall: { type: "stall" },
  snooze: { type: "snooze", dueAt: at("30m") },
  release: { type: "release" },
  cancel: { type: "cancel" },
  drop: { type: "drop", message: "Dropped: the queue is full" },
  extend: { type: "extend", attempt: 5_000 },
  retry: { type: "retry" },
  unblock: { type: "unblock", results: "[]" },
  prioritise: { type: "prioritise", priority: 7 },
  run: { type: "run" },
  reschedule: { type: "reschedule", dueAt: at("5m") },
};

const FULL: Said = {
  settings: {
    timeouts: { wait: "10m", total: "1h", attempt: "5m", grace: "10s", heartbeat: "30s" },
    retry: { attempts: 2 },
  },
};
const LAST: Said = { settings: { ...FULL.settings, retry: { attempts: 1 } } };
const VISIBLE: Said = { worker: { hears: false, remote: true, visibility: 20_000 } };

const ROWS: { readonly [State in JobState]: () => JobRow } = {
  scheduled: () => enqueued({ ...FULL, enqueue: { delay: "1m" } }),
  available: () => enqueued(FULL),
  pending: () => pending(FULL),
  active: () => running(FULL),
  retryable: () => retryable(FULL),
  completed: () => step(running(FULL), EVENTS.succeed, at("1s")),
  cancelled: () => step(enqueued(FULL), EVENTS.cancel, at("1s")),
  discarded: () => discarded(FULL),
};

/** The same job under a limit with a rate. */
function limited(row: JobRow, limit: JobLimit = { rate: { limit: 1, per: 1_000 } }): JobRow {
  return { ...row, limitKey: "key", options: { ...row.options, limit } };
}

const STRICT: JobLimit = { concurrency: 1, strict: true };

/** One case per target of the table: the row, what happens to it, and when. */
type Case = readonly [from: JobState, event: JobEvent, to: JobState, row: JobRow, now: Instant];

function wakes(): Case[] {
  const { wake } = EVENTS;
  const later = { ...FULL, enqueue: { delay: "1m" as const } };
  return [
    ["pending", wake, "available", pending(FULL, { needs: 0 }), at("1s")],
    ["pending", wake, "scheduled", pending(later, { needs: 0 }), at("1s")],
    ["pending", wake, "pending", pending(FULL), at("1s")],
    ["pending", wake, "discarded", pending(FULL), at("10m")],
    ["scheduled", wake, "available", enqueued(later), at("1m")],
    ["scheduled", wake, "scheduled", enqueued(later), at("1s")],
    ["scheduled", wake, "pending", limited(enqueued(later)), at("1m")],
    ["scheduled", wake, "discarded", enqueued(later), at("10m")],
    ["retryable", wake, "available", retryable(FULL), at("3s")],
    ["retryable", wake, "retryable", retryable(FULL), at("1s")],
    ["retryable", wake, "pending", limited(retryable(FULL)), at("3s")],
    ["retryable", wake, "discarded", retryable(FULL), at("1h")],
    ["available", wake, "available", enqueued(FULL), at("1s")],
    ["available", wake, "discarded", enqueued(FULL), at("10m")],
    ["active", wake, "active", running(FULL), at("1s")],
    ["active", wake, "available", claimed(FULL), at("10s")],
    ["active", wake, "pending", limited(running(VISIBLE)), at("20s")],
    ["active", wake, "retryable", running(FULL), at("31s")],
    ["active", wake, "discarded", running(LAST), at("31s")],
  ];
}

function verdicts(): Case[] {
  const { start, succeed, fail, expire, stall, snooze, release } = EVENTS;
  const worn = { ...running(FULL), returns: MOST_RETURNS };
  return [
    ["active", start, "active", claimed(FULL), at("1s")],
    ["active", start, "discarded", claimed(FULL), at("10m")],
    ["active", succeed, "completed", running(FULL), at("1s")],
    ["active", succeed, "retryable", running(FULL), at("6m")],
    ["active", succeed, "discarded", running(LAST), at("6m")],
    ["active", fail, "retryable", running(FULL), at("1s")],
    ["active", fail, "discarded", running(LAST), at("1s")],
    ["active", expire, "retryable", running(FULL), at("6m")],
    ["active", expire, "discarded", running(LAST), at("6m")],
    ["active", stall, "retryable", running(FULL), at("30s")],
    ["active", stall, "discarded", running(LAST), at("30s")],
    ["active", stall, "available", running(VISIBLE), at("20s")],
    ["active", stall, "pending", limited(running(VISIBLE)), at("20s")],
    ["active", snooze, "scheduled", running(FULL), at("1s")],
    ["active", snooze, "retryable", running(FULL), at("6m")],
    ["active", { ...snooze, dueAt: at("2h") }, "discarded", running(FULL), at("1s")],
    ["active", release, "available", running(FULL), at("1s")],
    ["active", release, "pending", limited(running(FULL)), at("1s")],
    ["active", { ...release, delay: 5 }, "scheduled", running(FULL), at("1s")],
    ["active", release, "retryable", running(FULL), at("6m")],
    ["active", { ...release, delay: 5 }, "retryable", limited(claimed(FULL), STRICT), at("1s")],
    ["active", release, "discarded", worn, at("1s")],
  ];
}

function outsiders(): Case[] {
  const live = JOB_STATES.filter((state) => !isTerminal(state));
  return [
    ["pending", EVENTS.activate, "available", pending(FULL), at("1s")],
    ["pending", EVENTS.activate, "scheduled", pending({ ...FULL, enqueue: { delay: "1m" } }), at("1s")],
    ["pending", EVENTS.activate, "pending", limited(pending(FULL)), at("1s")],
    ["available", EVENTS.claim, "active", enqueued(FULL), at("1s")],
    ["scheduled", EVENTS.run, "available", ROWS.scheduled(), at("1s")],
    ["scheduled", EVENTS.run, "pending", limited(ROWS.scheduled()), at("1s")],
    ["scheduled", EVENTS.run, "discarded", ROWS.scheduled(), at("10m")],
    ["retryable", EVENTS.run, "available", ROWS.retryable(), at("1s")],
    ["retryable", EVENTS.run, "pending", limited(ROWS.retryable()), at("1s")],
    ["retryable", EVENTS.run, "discarded", ROWS.retryable(), at("1h")],
    ["scheduled", EVENTS.reschedule, "scheduled", ROWS.scheduled(), at("1s")],
    ["available", EVENTS.reschedule, "scheduled", ROWS.available(), at("1s")],
    ["retryable", EVENTS.reschedule, "retryable", ROWS.retryable(), at("1s")],
    ["scheduled", { type: "reschedule", dueAt: at("1s") }, "available", ROWS.scheduled(), at("1s")],
    ["scheduled", { type: "reschedule", dueAt: at("1s") }, "pending", limited(ROWS.scheduled()), at("1s")],
    ["available", { type: "reschedule", dueAt: at("1s") }, "available", ROWS.available(), at("1s")],
    ["retryable", { type: "reschedule", dueAt: at("1s") }, "available", ROWS.retryable(), at("1s")],
    ["retryable", { type: "reschedule", dueAt: at("1s") }, "pending", limited(ROWS.retryable()), at("1s")],
    ["discarded", EVENTS.retry, "available", ROWS.discarded(), at("1h")],
    ["discarded", EVENTS.retry, "pending", limited(ROWS.discarded()), at("1h")],
    ...live
      .filter((state) => state !== "active")
      .map((state): Case => [state, EVENTS.drop, "discarded", ROWS[state](), at("1s")]),
    ...live.map((state): Case => [state, EVENTS.cancel, "cancelled", ROWS[state](), at("1s")]),
    ...live.map((state): Case => [state, EVENTS.extend, state, ROWS[state](), T0 + 1]),
    ...live
      .filter((state) => state !== "active")
      .map((state): Case => [state, EVENTS.prioritise, state, ROWS[state](), T0 + 1]),
  ];
}

/** A step whose predecessors have ended. */
function readyStep(said: Said, changes: Partial<JobRow> = {}): JobRow {
  const row = pending(said, { needs: 0, workflow: "w", ...changes });
  return { ...row, options: { ...row.options, step: { wakes: [], waitsFor: { role: "step" } } } };
}

function unblocks(): Case[] {
  const { unblock } = EVENTS;
  const later = { ...FULL, enqueue: { delay: "1m" as const } };
  return [
    ["pending", unblock, "available", readyStep(FULL), at("1s")],
    ["pending", unblock, "scheduled", readyStep(later), at("1s")],
    ["pending", unblock, "pending", readyStep(FULL, { limitKey: "slow" }), at("1s")],
    ["pending", { ...unblock, limit: 1 }, "discarded", readyStep(FULL), at("1s")],
  ];
}

const CASES: readonly Case[] = [...wakes(), ...verdicts(), ...outsiders(), ...unblocks()];

describe("every state and event", () => {
  const pairs = JOB_STATES.flatMap((state) => JOB_EVENTS.map((event) => [state, event] as const));

  it("is 8 states times 18 events", () => {
    expect(new Set(JOB_STATES).size).toBe(8);
    expect(pairs).toHaveLength(8 * 18);
  });

  it.each(pairs)("%s + %s lands in the table or is rejected", (state, name) => {
    const row = ROWS[state]();
    expect(row.state).toBe(state);
    const before = structuredClone(row);
    const decision = decide(row, EVENTS[name], at("2s"), half);
    const targets = targetsOf(state, name);
    if (targets.length === 0) expect(decision).toEqual({ ok: false, because: "invalid_state" });
    else if (decision.ok) expect(targets).toContain(decision.image.state);
    expect(row).toEqual(before);
  });

  it.each(["completed", "cancelled"] as const)("%s is the end for every event", (state) => {
    for (const name of JOB_EVENTS) expect(decide(ROWS[state](), EVENTS[name], at("2s"), half).ok).toBe(false);
  });

  it("discarded leaves only by a manual retry", () => {
    const leaving = JOB_EVENTS.filter((name) => decide(ROWS.discarded(), EVENTS[name], at("2s"), half).ok);
    expect(leaving).toEqual(["retry"]);
  });

  it("a pending job waits for what it needs and for its limit", () => {
    const wake = (changes: Partial<JobRow>) =>
      accepted(decide(pending(FULL, changes), EVENTS.wake, at("1s"), half)).image.state;
    expect(wake({ needs: 1, limitKey: null })).toBe("pending");
    expect(wake({ needs: 0, limitKey: "slow" })).toBe("pending");
    expect(wake({ needs: 0, limitKey: null })).toBe("available");
  });

  it("a claim that was not entered knows no verdict of a handler", () => {
    for (const name of ["succeed", "fail", "expire", "stall", "snooze"] as const) {
      const decision = decide(claimed(FULL), EVENTS[name], at("1s"), half);
      expect(decision, name).toEqual({ ok: false, because: "invalid_state" });
    }
  });
});

describe("every target of the table", () => {
  it.each(CASES.map((each) => [`${each[0]} + ${each[1].type} -> ${each[2]}`, each] as const))(
    "%s",
    (_name, [from, event, to, row, now]) => {
      expect(row.state).toBe(from);
      const decision = decide(row, event, now, half);
      expect(accepted(decision).image.state).toBe(to);
    },
  );

  it("is reached by one of these cases, and nothing else is", () => {
    const reached = CASES.map(([from, event, to]) => `${from} ${event.type} ${to}`);
    const promised = LIFECYCLE.flatMap(({ from, event, to }) =>
      to.map((target) => `${from} ${event} ${target}`),
    );
    expect([...new Set(reached)].sort()).toEqual(promised.sort());
  });

  it("is the same in both ways to look it up", () => {
    for (const state of JOB_STATES) {
      for (const event of JOB_EVENTS) expect(ALLOWED[state][event]).toEqual(targetsOf(state, event));
    }
  });

  it("has one line for each state and event", () => {
    const lines = LIFECYCLE.map(({ from, event }) => `${from} ${event}`);
    expect(new Set(lines).size).toBe(lines.length);
  });
});
