import { describe, expect, it } from "vitest";
import { enqueued, half, T0 } from "../../../../test/support/rows.ts";
import type { JobRow } from "../job.ts";
import { applied, decide } from "./decide.ts";
import { availableRow, claimedRow, countedDownRow } from "./store-formulas.ts";

const TERMS = { now: T0 + 50, lease: 10_000, salt: 7, worker: "w" };

describe("the formulas that stores repeat", () => {
  it("a claim is what decide makes of it, with its worker and its instant", () => {
    const rows: JobRow[] = [
      enqueued(),
      { ...enqueued(), heartbeat: 3_000 },
      { ...enqueued(), heartbeat: 60_000, waitAt: T0 + 1_000 },
      { ...enqueued(), waitAt: T0 + 9_000, totalAt: T0 + 2_000, fence: 2 ** 22 + 5 },
    ];
    for (const row of rows) {
      const { now, lease, salt, worker } = TERMS;
      const decision = decide(row, { type: "claim", lease, salt }, now, half);
      if (!decision.ok) throw new Error(decision.because);
      expect(claimedRow(row, TERMS)).toEqual({ ...applied(row, decision), claimedAt: now, worker });
    }
  });

  it("a claim ends with its lease, or with a shorter heartbeat", () => {
    expect(claimedRow(enqueued(), TERMS)).toMatchObject({
      state: "active",
      wake: "decide",
      stallAt: T0 + 10_050,
      wakeAt: T0 + 10_050,
      fence: 2 ** 21 + 7,
      rev: 1,
      claimedAt: T0 + 50,
      worker: "w",
    });
    const short = { ...enqueued(), heartbeat: 3_000, totalAt: T0 + 2_000 };
    expect(claimedRow(short, TERMS)).toMatchObject({ stallAt: T0 + 3_050, wakeAt: T0 + 2_000 });
    expect(claimedRow(short, { ...TERMS, shortest: 5_000 }).stallAt).toBe(T0 + 5_050);
    expect(claimedRow(short, { ...TERMS, shortest: 90_000 }).stallAt).toBe(T0 + 10_050);
  });

  it("a promoted job is available until its wait or total is over", () => {
    const row: JobRow = { ...enqueued(), state: "scheduled", wake: "ready", wakeAt: T0 };
    const promoted = { state: "available", wake: "decide", wakeAt: null, rev: row.rev + 1 };
    expect(availableRow(row)).toEqual({ ...row, ...promoted });
    const ending = { ...row, waitAt: T0 + 900, totalAt: T0 + 500 };
    expect(availableRow(ending)).toEqual({ ...ending, ...promoted, wakeAt: T0 + 500 });
  });

  it("a countdown wakes a job at its last need, and at the last but one if it has a limit", () => {
    const row: JobRow = { ...enqueued(), state: "pending", needs: 3 };
    const woken = { wake: "decide", wakeAt: T0, rev: row.rev + 1 };
    expect(countedDownRow(row, T0)).toEqual({ ...row, needs: 2 });
    expect(countedDownRow({ ...row, needs: 2 }, T0)).toEqual({ ...row, needs: 1 });
    expect(countedDownRow({ ...row, needs: 1 }, T0)).toEqual({ ...row, needs: 0, ...woken });
    const limited = { ...row, limitKey: "key" };
    expect(countedDownRow(limited, T0)).toEqual({ ...limited, needs: 2 });
    expect(countedDownRow({ ...limited, needs: 2 }, T0)).toEqual({ ...limited, needs: 1, ...woken });
  });
});
