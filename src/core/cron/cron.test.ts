import { describe, expect, it } from "vitest";
import {
  type CronBody,
  type CronOptions,
  changedCron,
  fire,
  newCron,
  parseCron,
  resumedCron,
  withRuns,
} from "./cron.ts";

const START = Date.UTC(2030, 0, 1);
const HOUR = 3_600_000;
const JOB = { definition: { type: "a.b" }, options: {}, payload: "null" };

function cron(options: Partial<CronOptions> = {}, more: Partial<CronBody> = {}): CronBody {
  return { ...newCron(parseCron({ cron: "@hourly", ...options }, START, ""), JOB, START), ...more };
}
const at = (hours: number) => START + hours * HOUR;

describe("what is due", () => {
  it("is nothing before the instant, while it is paused, and after the last one", () => {
    const none = { instants: [], skipped: [], isPreviousCancelled: false };
    expect(fire(cron(), false, at(1) - 1)).toMatchObject({ ...none, nextAt: at(1), actedUpTo: null });
    expect(fire(cron({}, { pausedAt: START }), false, at(5))).toMatchObject({ ...none, nextAt: null });
    expect(fire(cron({}, { nextAt: null }), false, at(5))).toMatchObject({ ...none, nextAt: null });
  });

  it("is one instant at its time, and the next one follows from it and not from now", () => {
    expect(fire(cron(), false, at(1))).toMatchObject({ instants: [at(1)], nextAt: at(2), actedUpTo: at(1) });
    expect(fire(cron(), false, at(1) + 30_000)).toMatchObject({ instants: [at(1)], nextAt: at(2) });
  });

  it("follows newer zone data: an instant that is none any more waits for the new one", () => {
    expect(fire(cron({}, { nextAt: at(1.5) }), false, at(1.5))).toMatchObject({
      instants: [],
      nextAt: at(2),
    });
  });

  it("counts what it skips up to a hundred", () => {
    const long = fire(cron({ missed: "once" }), false, at(1_000));
    expect(long.instants).toEqual([at(1_000)]);
    expect(long.skipped).toEqual([{ for: at(999), at: at(1_000), skipped: "missed", count: 100 }]);
  });

  it("goes on in the next commit where there is more than one commit takes", () => {
    const body = cron({ cron: "* * * * *", missed: { all: "10h" } });
    const first = fire(body, false, at(3));
    expect(first.instants).toHaveLength(100);
    expect(first).toMatchObject({ nextAt: START + 101 * 60_000, actedUpTo: START + 100 * 60_000 });
    const second = fire({ ...body, nextAt: first.nextAt, actedUpTo: first.actedUpTo }, false, at(3));
    expect(second.instants).toHaveLength(80);
    expect(second).toMatchObject({ nextAt: at(3) + 60_000, actedUpTo: at(3), skipped: [] });
  });
});

describe("an instant that was acted on", () => {
  it("does not come back with a pause or another schedule, even if the engine's time lags", () => {
    const body = cron({}, { pausedAt: at(1), nextAt: null, actedUpTo: at(1) });
    expect(resumedCron(body, at(1) - 5)).toMatchObject({ pausedAt: null, nextAt: at(2) });
    const rule = parseCron({ cron: "*/30 * * * *" }, START, "");
    const changed = changedCron({ ...body, pausedAt: null, nextAt: at(2) }, rule, JOB, at(1) - 5);
    expect(changed?.nextAt).toBe(at(1.5));
  });
});

it("keeps fifty runs, newest first", () => {
  const runs = Array.from({ length: 60 }, (_, hour) => ({ for: at(hour), at: at(hour) }));
  const kept = withRuns(cron({}, { runs: runs.slice(0, 30).toReversed() }), runs.slice(30));
  expect(kept).toHaveLength(50);
  expect(kept[0]).toEqual(runs[59]);
});
