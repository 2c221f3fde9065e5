import { describe, expect, it } from "vitest";
import { SLOWLY_CONFIRMED_WITHIN } from "../../src/core/job/policy/deadlines.ts";
import { claimed, enqueued, T0 } from "../support/rows.ts";
import { Checker } from "./checker.ts";
import { type JobLedger, newJobLedger } from "./ledger.ts";
import type { Machine } from "./machine.ts";
import { planOf } from "./plan.ts";
import { Trace } from "./trace.ts";

const RULE = "after a gap nothing is entered before a beat";
const GAP = { from: T0 + 100, to: T0 + 800 };
const SENT = T0 + 90;

/** A process that stands still from 100 to 800 ms. It has claimed a job, and asked for its claim 10 ms before the gap. */
function world(homes = 4) {
  let now: number = T0;
  const checker = new Checker({
    now: () => now,
    plan: planOf(1),
    homes,
    trace: new Trace({ isKept: false, now: () => now }),
    troubledAt: () => 0,
  });
  const machine = { name: "p0", pauses: [GAP], clockDoubt: 0 } as unknown as Machine;
  const row = { ...claimed(), payload: "{}" };
  const { id, fence, rev } = row;
  const expected = { attempts: 3, onStall: "retry" } as unknown as JobLedger["expected"];
  const ledger = newJobLedger({ ...enqueued(), payload: "{}" }, expected);
  checker.jobs.set(id, ledger);
  checker.claimed(machine, {} as Parameters<Checker["claimed"]>[1], [row]);
  ledger.row = row;
  checker.heard(machine, "jobs.claim", {}, [row], { sentAt: T0, doneAt: T0, heardAt: T0 });
  const beat = { now: T0, worker: { id: "w", body: {}, wakeAt: T0 }, jobs: [{ id, fence, rev }] };
  return {
    /** The home of the job answers. */
    answer: (heardAt: number) =>
      checker.heard(machine, "jobs.beat", beat, ["ok"], { sentAt: SENT, doneAt: SENT + 1, heardAt }),
    /** The last of all homes answers. */
    answerAll: (heardAt: number, sentAt = SENT) =>
      checker.heardFromAll(machine, beat, ["ok"], { sentAt, heardAt }),
    enter(at: number) {
      now = at;
      checker.entered(machine, { id, attempt: 1, deadline: null, isListening: false });
      return checker.violations.map(({ rule }) => rule);
    },
  };
}

describe("the rule of entries after a gap", () => {
  it("lets an answer that comes after the gap be used at once", () => {
    const { answer, enter } = world(1);
    answer(GAP.to + 50);
    expect(enter(GAP.to + 50)).toEqual([]);
  });

  it("names an entry after a beat that the home of the job has answered and another home has not", () => {
    const { answer, enter } = world();
    answer(GAP.to + 50);
    expect(enter(GAP.to + 50)).toEqual([RULE]);
  });

  it("takes a beat to several homes for heard when the last of them has answered", () => {
    const { answer, answerAll, enter } = world();
    answer(SENT + 2);
    answerAll(GAP.to + 50);
    expect(enter(GAP.to + 50)).toEqual([]);
  });

  it("names an entry after an answer that was heard before the gap", () => {
    const { answer, answerAll, enter } = world();
    answer(SENT + 2);
    answerAll(SENT + 3);
    expect(enter(GAP.to + 50)).toEqual([RULE]);
  });

  it("names an entry for which only other homes were asked", () => {
    const { answerAll, enter } = world();
    answerAll(GAP.to + 50);
    expect(enter(GAP.to + 50)).toEqual([RULE]);
  });

  it("names an entry for which the home of the job has only answered an older beat", () => {
    const { answer, answerAll, enter } = world();
    answer(SENT + 2);
    answerAll(GAP.to + 50, SENT + 5);
    expect(enter(GAP.to + 50)).toEqual([RULE]);
  });

  it("names an entry that does not follow at once, or is too late", () => {
    for (const [heardAt, enteredAt] of [
      [GAP.to + 50, GAP.to + 51],
      [SENT + SLOWLY_CONFIRMED_WITHIN + 1, SENT + SLOWLY_CONFIRMED_WITHIN + 1],
    ] as const) {
      const { answer, answerAll, enter } = world();
      answer(SENT + 2);
      answerAll(heardAt);
      expect(enter(enteredAt)).toEqual([RULE]);
    }
  });
});
