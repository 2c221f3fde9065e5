import { describe, expect, it } from "vitest";
import { chain, step } from "../../src/index.ts";
import type { Store, Unit } from "../../src/ports/store.ts";
import type { TracedVerdict, Tracing } from "../../src/ports/trace.ts";
import { errorOf, jobOf, jobWith, obedient, openOver, openStage } from "./stage.ts";

/** A store that refuses the first units that match, as if another process had been faster. */
function outrun(store: Store, isMatch: (unit: Unit) => boolean, times: number): Store {
  let left = times;
  return {
    ...store,
    commit: async (units, options) => {
      if (left === 0 || !units.some(isMatch)) return store.commit(units, options);
      left -= 1;
      return units.map(() => ({ ok: false, because: "stale", at: null }));
    },
  };
}

const writesJob = ({ job }: Unit) => job !== undefined;
const putsCron = ({ effects = [] }: Unit) =>
  effects.some((effect) => "put" in effect && effect.put[0] === "cron");

describe("a decision on a row that changed meanwhile", () => {
  it("is made again on the new row, up to 20 times", async () => {
    const stage = await openOver((store) => outrun(store, writesJob, 19));
    const job = await stage.engine.enqueue(jobOf(), null as never);
    expect(await job.cancel()).toMatchObject({ state: "cancelled" });
    expect(await stage.load(job)).toMatchObject({ state: "cancelled" });
  });

  it("ends with an error that says what to do after 20 changes", async () => {
    const stage = await openOver((store) => outrun(store, writesJob, Number.POSITIVE_INFINITY));
    const job = await stage.engine.enqueue(jobOf(), null as never);
    expect(await errorOf(job.cancel())).toMatchObject({
      code: "invalid_state",
      message: `cancel: job ${job.id} changed 20 times during this call; try again`,
    });
    expect(await stage.load(job)).toMatchObject({ state: "available" });
  });
});

describe("a record that changed meanwhile", () => {
  const nightly = { cron: "0 3 * * *", job: jobOf(), payload: null as never };

  it("is read and changed again", async () => {
    const stage = await openOver((store) => outrun(store, putsCron, 3));
    expect(await stage.engine.crons.put("nightly", nightly)).toMatchObject({ name: "nightly" });
    expect(await stage.engine.crons.get("nightly")).toMatchObject({ cron: "0 3 * * *" });
  });

  it("ends with an error after 20 changes, and stays as it was", async () => {
    const stage = await openOver((store) => outrun(store, putsCron, Number.POSITIVE_INFINITY));
    expect(await errorOf(stage.engine.crons.put("nightly", nightly))).toMatchObject({
      code: "invalid_state",
      message: 'put: cron "nightly" changed 20 times during this call; try again',
    });
    expect(await stage.engine.crons.get("nightly")).toBeNull();
  });
});

/** Collects the states in which attempts and jobs are traced as ended. */
function tracingTo(ended: TracedVerdict["state"][]): Tracing {
  return {
    enqueue: () => ({ meta: {}, ended: () => {} }),
    enter: () => ({ run: (call) => call(), aborted: () => {}, settled: ({ state }) => ended.push(state) }),
    ended: (_row, { state }) => ended.push(state),
  };
}

describe("one way to announce", () => {
  it("traces a job that an operator cancels while it waits, one by one, in bulk and by a purge", async () => {
    const ended: TracedVerdict["state"][] = [];
    const stage = await openStage({ tracing: tracingTo(ended) });
    const jobs = await stage.engine.enqueueMany(jobOf(), [1, 2, 3] as never[]);
    await stage.engine.cancel(jobs[0]?.id as string);
    await stage.engine.bulk.cancel({ ids: [jobs[1]?.id as string] });
    await stage.engine.queues.purge("default");
    expect(ended).toEqual(["cancelled", "cancelled", "cancelled"]);
  });

  it("adds no span for an extension, a new priority, or a claim that is released before its start", async () => {
    const ended: TracedVerdict["state"][] = [];
    const stage = await openStage({ tracing: tracingTo(ended) });
    const { processors } = jobWith(obedient, {}, "another.job");
    const job = await stage.engine.enqueue(jobOf({ timeouts: { total: "1h" } }), null as never);
    await job.extend({ total: "2h" });
    await job.prioritise(5);
    stage.work(processors);
    await stage.advance("1s");
    expect(stage.engine.counters().released).toBeGreaterThan(0);
    expect(ended).toEqual([]);
  });

  it("counts a step of a workflow as enqueued when it becomes ready", async () => {
    const { definition, processors } = jobWith(() => null);
    const stage = await openStage();
    stage.work(processors);
    await stage.engine.workflows.start(
      chain([step(definition, null as never), step(definition, null as never)]),
    );
    await stage.advance("10s");
    const { enqueued, completed, tallies } = stage.engine.counters();
    expect({ enqueued, completed }).toEqual({ enqueued: 2, completed: 2 });
    expect(tallies.map(({ type, enqueued }) => ({ type, enqueued }))).toEqual([
      { type: "test.job", enqueued: 2 },
    ]);
  });
});
