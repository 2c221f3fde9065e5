import { describe, expect, it } from "vitest";
import type { JobRow } from "../../src/core/job/job.ts";
import { parseLimit } from "../../src/core/limit/limit.ts";
import { at, enqueued, pending, running } from "../support/rows.ts";
import { type Claim, type JobLedger, newJobLedger } from "./ledger.ts";
import type { Machine } from "./machine.ts";
import { unsettledJobs } from "./settle-rule.ts";

const LIMITS = {
  limits: [
    { key: "places", concurrency: 1 },
    { key: "pace", rate: { limit: 1, per: "2s" } },
  ],
  settings: { alpha: { concurrency: 1 }, beta: { concurrency: 2 } },
} as const;
const NO_END = { settings: { timeouts: { attempt: "none", heartbeat: "none" } } } as const;

function ledger(row: JobRow, changes: Partial<JobRow>): JobLedger {
  return newJobLedger({ ...row, payload: "{}", ...changes }, {} as JobLedger["expected"]);
}

const waiting = (queue: string, changes: Partial<JobRow> = {}) => ledger(enqueued(), { queue, ...changes });

const atLimit = (key: "places" | "pace", queue: string, changes: Partial<JobRow> = {}) => {
  const limit = LIMITS.limits.find((one) => one.key === key) as (typeof LIMITS.limits)[number];
  const options = { limit: parseLimit(limit, "limit").limit };
  return ledger(pending(), { queue, limitKey: key, options, needs: 0, ...changes });
};

/** A job that nothing ends, whose process lives or is dead. */
function endless(queue: string, { isDead = true, ...changes }: Partial<JobRow> & { isDead?: boolean } = {}) {
  const job = ledger(running(NO_END), { queue, limitKey: `queue ${queue}`, ...changes });
  job.claims.set(job.row.fence, { by: { isDead } as Machine } as Claim);
  return job;
}

const unsettled = (...jobs: JobLedger[]) => unsettledJobs(jobs, LIMITS);

describe("the rule that everything settles", () => {
  it("excuses what waits in a queue all of whose slots orphans keep", () => {
    expect(unsettled(endless("alpha"), waiting("alpha"))).toEqual([]);
    expect(unsettled(endless("beta"), endless("beta"), waiting("beta"))).toEqual([]);
  });

  it("excuses what waits for a limit whose slots are kept by jobs that wait in such a queue", () => {
    const admitted = waiting("alpha", { limitKey: "places" });
    expect(unsettled(endless("alpha"), admitted, atLimit("places", "gamma"))).toEqual([]);
    const next = waiting("alpha", { limitKey: "pace" });
    expect(unsettled(endless("alpha"), next, atLimit("pace", "gamma"))).toEqual([]);
  });

  it("excuses a job that its full limit reschedules again and again", () => {
    const limit = { concurrency: 1, onLimit: { after: 100 } };
    const again = atLimit("places", "gamma", { state: "scheduled", options: { limit } });
    expect(unsettled(endless("gamma", { limitKey: "places" }), again)).toEqual([]);
    expect(unsettled(again)).toEqual([again]);
  });

  it("names what waits where a slot is free", () => {
    const [one, two] = [waiting("alpha"), waiting("beta")];
    expect(unsettled(one)).toEqual([one]);
    expect(unsettled(endless("beta"), two)).toEqual([two]);
    expect(unsettled(endless("beta"), endless("alpha"), one, two)).toEqual([two]);
    const gated = atLimit("places", "alpha");
    expect(unsettled(endless("alpha"), gated)).toEqual([gated]);
    const started = endless("gamma", { limitKey: "pace" });
    const next = atLimit("pace", "gamma");
    expect(unsettled(started, next)).toEqual([next]);
  });

  it("names what waits behind a job whose process lives", () => {
    const jobs = [endless("alpha", { isDead: false }), waiting("alpha")];
    expect(unsettled(...jobs)).toEqual(jobs);
  });

  it("names a job that a deadline of its own should have ended", () => {
    const late = [waiting("alpha", { totalAt: at("1s") }), waiting("alpha", { waitAt: at("1s") })];
    expect(unsettled(endless("alpha"), ...late)).toEqual(late);
  });
});
