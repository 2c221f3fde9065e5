import { describe, expect, it } from "vitest";
import { StopError, TimeoutError } from "../../src/index.ts";
import type { Hint, Store, Unit } from "../../src/ports/store.ts";
import { jobWith, openOver, openPair, type Stage } from "./stage.ts";

/** A store that cannot take a unit which writes this result: as a database with a value it has no room for. */
function refusing(store: Store, result: string): Store {
  const isBad = ({ job }: Unit) => job?.documents?.result === result;
  return {
    ...store,
    commit: async (units, options) => {
      if (units.some(isBad)) throw new Error("value out of range");
      return store.commit(units, options);
    },
  };
}

describe("a write that the store always refuses", () => {
  it("does not delay other writes, is given up in the end, and the sweep ends its job", async () => {
    const stage = await openOver((store) => refusing(store, '"bad"'));
    const { definition, processors } = jobWith(({ payload }) => payload, {
      timeouts: { attempt: "2m", grace: "0s" },
      retry: { attempts: 1 },
    });
    const payloads = Array.from({ length: 40 }, (_, index) => (index === 17 ? "bad" : `good ${index}`));
    const jobs = await stage.engine.enqueueMany(definition, payloads as never[]);
    stage.work(processors, { queues: { default: { concurrency: 40 } } });
    await stage.advance("5s");
    const states = await statesOf(stage, jobs);
    expect(states.filter((state) => state === "completed")).toHaveLength(39);
    expect(states[17]).toBe("active");
    await stage.advance("3m");
    expect(await stage.load(jobs[17] as { id: string })).toMatchObject({ state: "discarded" });
  });

  it("is not given up while the store fails every call", async () => {
    const stage = await openOutage();
    const job = await stage.engine.enqueue(stage.definition, null as never);
    await stage.advance("5m");
    stage.end();
    await stage.advance("10s");
    expect(await stage.load(job)).toMatchObject({ state: "completed", result: '"kept"' });
  });

  it("is repeated at once when the store says that it answers again", async () => {
    const stage = await openOutage();
    const job = await stage.engine.enqueue(stage.definition, null as never);
    // The pauses are 50, 100, 200, … ms: the last try was after 25.55 s, and the next one is after 27.55 s.
    await stage.advance("25600ms");
    stage.end();
    await stage.advance("10ms");
    expect(await stage.load(job)).toMatchObject({ state: "active" });
    stage.hint({ missed: true });
    await stage.settle();
    expect(await stage.load(job)).toMatchObject({ state: "completed", result: '"kept"' });
  });
});

/** A worker over a store that fails from the first run of a handler on, until the end of the outage. */
async function openOutage() {
  let isDown = false;
  let runs = 0;
  let hint: (hint: Hint) => void = () => {};
  const stage = await openOver((store) => {
    const failing =
      <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
      async (...args: Args) => {
        if (isDown) throw new Error("connection refused");
        return call(...args);
      };
    return {
      ...store,
      commit: failing(store.commit.bind(store)),
      clock: failing(store.clock.bind(store)),
      listen: (onHint) => {
        hint = onHint;
        return store.listen(onHint);
      },
    };
  });
  const { definition, processors } = jobWith(async () => {
    if (++runs === 1) isDown = true;
    return "kept";
  });
  stage.work(processors);
  const end = () => {
    isDown = false;
  };
  return { ...stage, definition, end, hint: (sent: Hint) => hint(sent) };
}

/** Throws for the first commits of a start. The last of them is written all the same: its reply is lost. */
function losingStarts(store: Store, failures: number, written: Unit[]): Store {
  let left = failures;
  return {
    ...store,
    commit: async (units, options) => {
      const isStart = units.some(({ job }) => job?.image?.state === "active" && job.image.startedAt !== null);
      const isLost = isStart && left-- > 0;
      if (isLost && left > 0) throw new Error("connection refused");
      const outcomes = await store.commit(units, options);
      written.push(...units.filter((_, index) => outcomes[index]?.ok));
      if (isLost) throw new Error("no answer");
      return outcomes;
    },
  };
}

describe("a start mark that is repeated alone", () => {
  it("is not overtaken by the verdict of its job, which would record the start a second time", async () => {
    const written: Unit[] = [];
    const stage = await openOver((store) => losingStarts(store, 3, written), { events: "durable" });
    const { definition, processors } = jobWith(() => stage.sleep(410));
    stage.work(processors);
    const job = await stage.engine.enqueue(definition, null as never);
    await stage.advance("30s");
    expect(await stage.load(job)).toMatchObject({ state: "completed" });
    const names = written
      .filter((unit) => unit.job?.id === job.id)
      .flatMap(({ effects }) => effects ?? [])
      .flatMap((effect) => ("event" in effect ? [(effect.event as { readonly name: string }).name] : []));
    expect(names).toEqual(["job.started", "job.completed"]);
  });
});

async function statesOf(stage: Stage, jobs: readonly { id: string }[]): Promise<string[]> {
  return Promise.all(jobs.map(async (job) => (await stage.load(job)).state));
}

describe("3.8 a report under a lost fence", () => {
  it("aborts the handler at once, before its next beat, and counts once", async () => {
    const pair = await openPair();
    const reasons: unknown[] = [];
    let report: () => void = () => {};
    const { definition, processors } = jobWith(
      ({ signal, log }) => {
        signal.addEventListener("abort", () => reasons.push(signal.reason));
        report = () => log("still here");
        return new Promise(() => {});
      },
      { timeouts: { grace: "1s" } },
    );
    pair.second.work(processors);
    const job = await pair.first.engine.enqueue(definition, null as never);
    await pair.advance(500);
    expect(await pair.first.load(job)).toMatchObject({ state: "active" });
    pair.crashSecond();
    await pair.first.engine.cancel(job.id);
    await pair.first.settle();
    report();
    await pair.second.settle();
    expect(reasons).toMatchObject([{ kind: "cancelled" }]);
    expect(reasons[0]).toBeInstanceOf(StopError);
    expect(reasons[0]).not.toBeInstanceOf(TimeoutError);
  });
});
