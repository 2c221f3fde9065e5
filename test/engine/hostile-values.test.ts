import { describe, expect, it } from "vitest";
import { consoleLogger } from "../../src/engine/runtime/console-logger.ts";
import { defineJob, type Logger, type Middleware, processor, type Schema } from "../../src/index.ts";
import type { Tracing } from "../../src/ports/trace.ts";
import { HOSTILE_RETURNS, HOSTILE_THROWS } from "../hostile-values.ts";
import { diary } from "./saga-stage.ts";
import { deaf, jobWith, obedient, openStage, type Stage } from "./stage.ts";

const ONCE = { retry: { attempts: 1 } };
const healthy = defineJob({ type: "healthy" });
const HEALTHY = processor(healthy, () => "well");

function throws(make: () => unknown): () => never {
  return () => {
    throw make();
  };
}

/** A logger of which every call fails, as one does whose serialiser cannot read its fields. */
function failingLogger(make: () => unknown): Logger {
  return { debug: throws(make), info: throws(make), warn: throws(make), error: throws(make) };
}

/** The worker that had the hostile value still runs jobs, and says that it is ready. */
async function expectAlive(stage: Stage): Promise<void> {
  const next = await stage.engine.enqueue(healthy);
  await stage.advance("10s");
  expect((await stage.load(next)).state).toBe("completed");
}

describe("3.5 thrown values that cannot be read", () => {
  it.each(HOSTILE_THROWS)("a handler that throws %s at once fails its attempt", async (_name, make) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(throws(make), ONCE);
    const worker = stage.work([...processors, HEALTHY]);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    const row = await stage.load(job);
    expect([row.state, row.errors?.length, typeof row.errors?.[0]?.message]).toEqual([
      "discarded",
      1,
      "string",
    ]);
    expect(worker.status().ready).toBe(true);
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("a handler that rejects with %s fails its attempt", async (_name, make) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(async () => throws(make)(), ONCE);
    stage.work([...processors, HEALTHY]);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    expect((await stage.load(job)).state).toBe("discarded");
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("a handler that throws %s after the signal has timed out", async (_name, make) => {
    const stage = await openStage();
    const run = async (context: never) => {
      await obedient(context).catch(() => {});
      throw make();
    };
    const { definition, processors } = jobWith(run as never, { ...ONCE, timeouts: { attempt: "5s" } });
    const passOn: Middleware = async (_context, next) => next();
    stage.work([...processors, HEALTHY], { middleware: [passOn] });
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["discarded", "timeout"]);
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("middleware that throws %s fails the attempt", async (_name, make) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => 1, ONCE);
    const bad: Middleware = (context, next) => (context.type === "healthy" ? next() : throws(make)());
    stage.work([...processors, HEALTHY], { middleware: [bad] });
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    expect((await stage.load(job)).state).toBe("discarded");
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("a schema that throws %s fails the attempt", async (_name, make) => {
    for (const isAsync of [false, true]) {
      const stage = await openStage();
      let calls = 0;
      // The first call is the enqueue's own.
      const validate = (value: unknown) => {
        if (calls++ === 0) return { value };
        return isAsync ? Promise.reject(make()) : throws(make)();
      };
      const payload: Schema = { "~standard": { version: 1, vendor: "test", validate } };
      const definition = defineJob({ type: "test.job", payload, ...ONCE });
      stage.work([processor(definition, () => {}), HEALTHY]);
      const job = await stage.engine.enqueue(definition, null);
      await stage.advance("10s");
      expect((await stage.load(job)).state).toBe("discarded");
      await expectAlive(stage);
    }
  });
});

describe("3.5 returned values that cannot be read", () => {
  it.each(HOSTILE_RETURNS)("a handler that returns %s fails its attempt", async (_name, make) => {
    for (const run of [() => make(), async () => make()]) {
      const stage = await openStage();
      const { definition, processors } = jobWith(run, ONCE);
      stage.work([...processors, HEALTHY]);
      const job = await stage.engine.enqueue(definition);
      await stage.advance("10s");
      const row = await stage.load(job);
      expect([row.state, row.errors?.length]).toEqual(["discarded", 1]);
      await expectAlive(stage);
    }
  });

  it.each(HOSTILE_RETURNS)("an enqueue of %s rejects, and the next one works", async (_name, make) => {
    const stage = await openStage();
    const { definition } = jobWith(() => 1);
    stage.work([HEALTHY]);
    await expect(
      stage.engine.enqueue(definition, make() as never).then(
        () => "stored",
        () => "rejected",
      ),
    ).resolves.toBe("rejected");
    await expectAlive(stage);
  });
});

describe("callbacks that throw values that cannot be read", () => {
  it.each(HOSTILE_THROWS)("a listener that throws %s stops nothing", async (_name, make) => {
    const stage = await openStage({ logger: consoleLogger(() => {}) });
    stage.engine.on("job.completed", throws(make));
    stage.engine.on("job.completed", (async () => throws(make)()) as never);
    const heard: string[] = [];
    stage.engine.on("job.completed", ({ id }) => void heard.push(id));
    stage.work([HEALTHY]);
    await expectAlive(stage);
    await expectAlive(stage);
    expect(heard.length).toBe(2);
  });

  it.each(HOSTILE_THROWS)("a cleanup hook that throws %s stops nothing", async (_name, make) => {
    const stage = await openStage({ logger: consoleLogger(() => {}) });
    const { definition, processors } = jobWith(
      ({ onCleanup }) => {
        onCleanup(throws(make));
        onCleanup(async () => throws(make)());
        return deaf();
      },
      { ...ONCE, timeouts: { attempt: "1s", grace: "1s" } },
    );
    stage.work([...processors, HEALTHY]);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    expect((await stage.load(job)).errors?.[0]?.type).toBe("timeout");
    expect(stage.names(job.id).filter((name) => name === "job.cleanup_failed").length).toBe(2);
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("a logger that throws %s stops nothing", async (_name, make) => {
    const stage = await openStage({ logger: failingLogger(make) });
    stage.engine.on("job.completed", throws(make));
    stage.work([HEALTHY]);
    await stage.engine.enqueue(defineJob({ type: "unknown" }));
    await expectAlive(stage);
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("a tracer that throws %s stops nothing", async (_name, make) => {
    const fail = throws(make);
    const half: Tracing = {
      enqueue: () => ({ meta: {}, ended: fail }),
      enter: () => ({ run: fail, aborted: fail, settled: fail }),
      ended: fail,
    };
    for (const tracing of [half, { enqueue: fail, enter: fail, ended: fail }]) {
      const stage = await openStage({ tracing });
      const { definition, processors } = jobWith(deaf, { ...ONCE, timeouts: { attempt: "1s", grace: "1s" } });
      stage.work([...processors, HEALTHY]);
      const job = await stage.engine.enqueue(definition);
      await expectAlive(stage);
      expect((await stage.load(job)).errors?.[0]?.type).toBe("timeout");
    }
  });

  it.each(HOSTILE_THROWS)("a timeout handler that throws %s is tried again", async (_name, make) => {
    const stage = await openStage({ logger: consoleLogger(() => {}), events: "durable" });
    let calls = 0;
    stage.engine.timeouts.serve("mail", () => {
      if (++calls < 3) throw make();
    });
    stage.engine.on("timeout.failed", throws(make));
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: new Date(stage.now()) });
    await stage.advance("1m");
    expect(calls).toBe(3);
  });

  it.each(HOSTILE_THROWS)("result() rejects with the abort reason, also with %s", async (_name, make) => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(healthy);
    const stop = new AbortController();
    const reason = make();
    const waiting = job.result({ signal: stop.signal }).then(
      () => "result",
      (error) => (error === stop.signal.reason ? "its reason" : "another error"),
    );
    stop.abort(reason);
    expect(await waiting).toBe("its reason");
    stage.work([HEALTHY]);
    await expectAlive(stage);
  });

  it.each(HOSTILE_THROWS)("a saga handler that throws %s is tried again", async (_name, make) => {
    const stage = await openStage({ logger: consoleLogger(() => {}), events: "durable" });
    let calls = 0;
    const { saga, texts } = diary(() => {
      if (++calls < 3) throw make();
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "1", text: "hello" });
    await stage.advance("1m");
    expect(texts()).toEqual(["hello", "hello", "hello"]);
    expect((await stage.engine.saga(saga, "1").load())?.state.texts).toEqual(["hello"]);
  });

  it.each(HOSTILE_THROWS)("onProgress of a bulk action that throws %s stops nothing", async (_name, make) => {
    const stage = await openStage({ logger: consoleLogger(() => {}) });
    await stage.engine.enqueueMany(healthy, [null, null]);
    const onProgress = (async () => throws(make)()) as never;
    await expect(stage.engine.bulk.cancel({ type: "healthy" }, { onProgress })).resolves.toMatchObject({
      done: 2,
    });
    stage.work([HEALTHY]);
    await expectAlive(stage);
  });
});

describe("an entry that throws", () => {
  it("releases its job, and the queue goes on", async () => {
    const stage = await openStage();
    let isBroken = true;
    const handler = () => "well";
    // A processor whose definition cannot be read stands for any error of the worker itself.
    const { settings } = healthy;
    const definition = Object.create(healthy, {
      settings: {
        get: () => {
          if (isBroken) throw new Error("the entry failed");
          return settings;
        },
      },
    });
    const other = jobWith(() => 1, {}, "other");
    const worker = stage.work([...other.processors]);
    worker.processors.set("healthy", { definition, handler });
    const job = await stage.engine.enqueue(defineJob({ type: "healthy" }));
    await stage.settle();
    expect((await stage.load(job)).state).toBe("scheduled");
    const next = await stage.engine.enqueue(other.definition);
    await stage.advance("1s");
    expect((await stage.load(next)).state).toBe("completed");
    expect(worker.status()).toMatchObject({ ready: true, running: 0 });
    isBroken = false;
    await stage.advance("10s");
    expect((await stage.load(job)).state).toBe("completed");
  });
});
