import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Accepted } from "../../../../test/support/rows.ts";
import { enqueued, failEvent, type Said, startEvent, T0 } from "../../../../test/support/rows.ts";
import { seededRandom } from "../../random.ts";
import { earlier, type Instant } from "../../time.ts";
import { dueAtOf, type JobRow } from "../job.ts";
import { isTerminal, JOB_EVENTS, type JobEventName, LIFECYCLE, targetsOf } from "../lifecycle.ts";
import { SWEEP_MARGIN, stallAtOf, stallMargin } from "../policy/deadlines.ts";
import { applied, decide, MOST_RETURNS } from "./decide.ts";
import { waitsForLimit } from "./decision.ts";
import type { JobEvent } from "./job-events.ts";

/** Settings that differ in every field which changes a decision. */
const SETTINGS: readonly Said[] = [
  {},
  { settings: { timeouts: { wait: "10m", attempt: "30s", total: "2h", grace: "5s", heartbeat: "20s" } } },
  {
    settings: {
      timeouts: { attempt: "30s", total: "40s", grace: "20s" },
      retry: { retryFit: "any", attempts: 9 },
    },
  },
  {
    settings: {
      timeouts: { attempt: "1m", grace: "0s", mode: "discard" },
      retry: { onExhausted: "dead-letter" },
    },
  },
  {
    settings: {
      timeouts: { attempt: "none", heartbeat: "none", grace: "unbounded" },
      retry: { attempts: 1_000 },
    },
  },
  {
    settings: {
      timeouts: { attempt: "1m", grace: "unbounded" },
      retry: { onStall: "discard" },
      retention: "0s",
    },
  },
  { enqueue: { delay: "1m", priority: -100 }, settings: { timeouts: { wait: "2m" } } },
  { enqueue: { priority: 100 }, context: { parent: { id: "p", totalAt: T0 + 60_000 } } },
  { worker: { hears: false, remote: true, visibility: 20_000 }, settings: { retry: { attempts: 5 } } },
  { worker: { hears: false, remote: true }, settings: { timeouts: { attempt: "30s", heartbeat: "30s" } } },
  {
    enqueue: { delay: "1m", limit: { key: "a", rate: { limit: 1, per: "1s" }, onLimit: "drop" } },
    worker: { hears: false, remote: true, visibility: 20_000 },
    settings: { retry: { attempts: 5 } },
  },
  { enqueue: { limit: { key: "a", concurrency: 2, onLimit: { reschedule: "30s" } } } },
  { enqueue: { limit: { key: "a", concurrency: 1, strict: true } }, settings: { timeouts: { total: "2h" } } },
];

interface Choice {
  readonly nth: number;
  /** Whether to take an event that the state allows, or any at all. */
  readonly isLikely: boolean;
  readonly pause: number;
  readonly flag: boolean;
  readonly amount: number;
}

const choice: fc.Arbitrary<Choice> = fc.record({
  nth: fc.nat(1_000),
  isLikely: fc.boolean(),
  pause: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(0, 0, 1, 999, 1_000) },
    { weight: 2, arbitrary: fc.constantFrom(10_000, 20_000, 35_000, 61_000) },
    { weight: 1, arbitrary: fc.nat(4_000_000) },
  ),
  flag: fc.boolean(),
  amount: fc.integer({ min: 1, max: 4_000_000 }),
});

/** What the state allows, and mostly what takes the job further: else few walks would get beyond a cancel. */
function likely(row: JobRow): readonly JobEventName[] {
  const allowed = JOB_EVENTS.filter((name) => targetsOf(row.state, name).length > 0);
  if (row.state === "available") return ["claim", "claim", "claim", "claim", ...allowed];
  if (row.state === "active" && row.startedAt === null)
    return [...Array<"start">(20).fill("start"), ...allowed];
  return allowed.length > 0 ? allowed : JOB_EVENTS;
}

function eventOf(row: JobRow, said: Said, now: Instant, { nth, isLikely, flag, amount }: Choice): JobEvent {
  const names = isLikely ? likely(row) : JOB_EVENTS;
  const limit = flag ? amount : null;
  const name = names[nth % names.length] as JobEventName;
  switch (name) {
    case "wake":
      return { type: name, seenAt: flag ? Math.max(T0, now - amount) : null };
    case "claim":
      return { type: name, lease: 10_000, salt: amount % 2 ** 21 };
    case "start":
      return { ...startEvent(said), upper: now + (nth % 3) };
    case "succeed":
      return { type: name, signalled: row.softAt !== null && now >= row.softAt, result: "1" };
    case "fail":
      return failEvent({
        signalled: row.softAt !== null && now >= row.softAt && flag,
        discard: nth % 7 === 0,
        final: nth % 5 === 0,
      });
    case "snooze":
      return { type: name, dueAt: nth % 2 === 0 ? now : now + amount };
    case "release":
      return flag ? { type: name, delay: amount } : { type: name };
    case "extend":
      return { type: name, ...[{ attempt: limit }, { total: limit }, { heartbeat: limit }][nth % 3] };
    case "drop":
      return { type: name, message: "Dropped" };
    case "retry":
      return { type: name, keepDeadline: flag };
    case "unblock":
      return { type: name, results: "[]" };
    case "prioritise":
      return { type: name, priority: (nth % 201) - 100 };
    case "reschedule":
      return { type: name, dueAt: nth % 2 === 0 ? now : now + amount };
    default:
      return { type: name };
  }
}

function check(condition: boolean, words: string): void {
  if (!condition) throw new Error(words);
}

/** The next instant at which something is true of this row that was not before; null for never. */
function nextInstant(row: JobRow, seenAt: Instant | null): Instant | null {
  const endsAt = earlier(row.waitAt, row.totalAt);
  if (isTerminal(row.state)) return null;
  if (row.state === "scheduled" || row.state === "retryable") return earlier(dueAtOf(row.rank), endsAt);
  if (row.state !== "active") return endsAt;
  if (row.startedAt === null) return earlier(row.stallAt, endsAt === null ? null : endsAt + SWEEP_MARGIN);
  const hears = row.policy?.hears === true;
  const stallAt = stallAtOf(row, seenAt);
  return earlier(
    row.hardAt === null ? null : row.hardAt + (hears ? SWEEP_MARGIN : 0),
    stallAt === null ? null : stallAt + stallMargin(row.stallAt, hears),
  );
}

function checkRow(row: JobRow, seenAt: Instant | null): void {
  const { attempt, returns, expiredClaims, policy, startedAt, softAt, hardAt, totalAt } = row;
  check(attempt >= 0 && attempt <= (policy?.retry.attempts ?? 0), `attempt ${attempt}`);
  check(returns >= 0 && returns <= MOST_RETURNS, `returns ${returns}`);
  check(expiredClaims >= 0, `expiredClaims ${expiredClaims}`);
  check((row.errors?.length ?? 0) <= 20, "the history is bounded");
  check(startedAt === null || row.state === "active" || isTerminal(row.state), "only an attempt has started");
  check(startedAt === null || row.waitAt === null, "wait is over with the first start");
  check(hardAt === null || (softAt !== null && softAt <= hardAt), "softAt <= hardAt");
  check(softAt === null || totalAt === null || softAt <= totalAt, "softAt <= totalAt");
  check(isTerminal(row.state) === (row.finishedAt !== null), "an end has its time");
  check(!row.deadLetter || (row.state === "discarded" && row.pruneAt === null), "a dead letter is discarded");
  const nextAt = nextInstant(row, seenAt);
  // A job at its limit may be looked at again at any time.
  const isWoken =
    nextAt === null ? row.wakeAt === null || waitsForLimit(row) : row.wakeAt !== null && row.wakeAt <= nextAt;
  check(isWoken, `wakeAt ${row.wakeAt} is later than ${nextAt}`);
}

/** JSON would make null of NaN and Infinity, and lose undefined: what survives unchanged has none of them. */
function checkJson(decision: Accepted): void {
  const { image, documents = {}, events } = decision;
  for (const value of [image, documents, events]) {
    expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value);
  }
  for (const value of Object.values(image)) {
    check(typeof value !== "number" || (Number.isInteger(value) && value >= 0), "whole and not negative");
  }
  check(decision.fence === undefined || Number.isSafeInteger(decision.fence), "the fence is exact");
}

function checkStep(before: JobRow, event: JobEvent, after: JobRow, now: Instant): void {
  check(after.fence >= before.fence, "the fence never decreases");
  check(!isTerminal(before.state) || event.type === "retry", "an end is left only by a retry");
  check(event.type !== "claim" || after.fence > before.fence, "each claim has a new fence");
  if (event.type !== "wake" || after.state === before.state) return;
  const seenAt = event.seenAt ?? null;
  const nextAt = nextInstant(before, seenAt);
  const isReleased = before.state === "pending" && (!isTerminal(after.state) || waitsForLimit(before));
  check(isReleased || (nextAt !== null && now >= nextAt), `woken early: ${before.state} to ${after.state}`);
}

/** What a store makes of a job that its limit lets through. */
function admitted(row: JobRow): JobRow {
  return { ...row, state: "available", wake: "decide", wakeAt: earlier(row.waitAt, row.totalAt) };
}

/** Walks from a fresh job and gives the transitions it went through. */
function walk(said: Said, choices: readonly Choice[], seed: number): string[] {
  const random = seededRandom(seed);
  let row = enqueued(said);
  let now = T0;
  const seen: string[] = [];
  for (const each of choices) {
    now += each.pause;
    if (waitsForLimit(row) && each.nth % 3 > 0) row = admitted(row);
    const event = eventOf(row, said, now, each);
    const decision = decide(row, event, now, random);
    if (!decision.ok) continue;
    checkJson(decision);
    const after = applied(row, decision);
    checkStep(row, event, after, now);
    checkRow(after, event.type === "wake" ? (event.seenAt ?? null) : null);
    seen.push(`${row.state} ${event.type} ${after.state}`);
    row = after;
  }
  return seen;
}

/** `npm run test:long -- walks` makes more. */
const WALKS = Number(process.env.CURFEW_WALKS ?? 1_500);

describe("random walks", () => {
  it("keep every invariant from any reachable row, whatever happens next", () => {
    const setting = fc.constantFrom(...SETTINGS);
    const steps = fc.array(choice, { minLength: 20, maxLength: 60 });
    const seen = new Set<string>();
    fc.assert(
      fc.property(setting, steps, fc.integer(), (said, choices, seed) => {
        for (const transition of walk(said, choices, seed)) seen.add(transition);
      }),
      { numRuns: WALKS },
    );
    // Walks that get nowhere would prove nothing. Only workflows make pending jobs, and 1,000 returns take too long.
    const missed = LIFECYCLE.flatMap(({ from, event, to }) => to.map((state) => `${from} ${event} ${state}`))
      .filter((transition) => !seen.has(transition))
      .filter(
        (transition) => !transition.startsWith("pending ") && transition !== "active release discarded",
      );
    expect(missed.length, missed.join(", ")).toBeLessThan(4);
  }, 600_000);

  it("are the same for the same seed", () => {
    const row = enqueued(SETTINGS[1]);
    const claimedOnce = () => decide(row, { type: "cancel" }, T0, seededRandom(5));
    expect(claimedOnce()).toEqual(claimedOnce());
    expect(claimedOnce()).not.toEqual(decide(row, { type: "cancel" }, T0, seededRandom(6)));
  });
});
