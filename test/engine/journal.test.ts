import { describe, expect, it } from "vitest";
import { type JournalEvent, type LatestPage, snooze, toCloudEvent } from "../../src/index.ts";
import type { EventPage, Store } from "../../src/ports/store.ts";
import { failFirst, faultyStore } from "../../src/testing/index.ts";
import { expectTheSame, readAll } from "./journal-stage.ts";
import { deaf, errorOf, jobOf, jobWith, obedient, openOver, openPair, openStage } from "./stage.ts";

/** The recorded stream: what is in it, when it is written, and how it is read. */

const ON = { events: "durable" } as const;
describe("what is recorded", () => {
  it("nothing is recorded while events are off, which is the default", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => 1);
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("1s");
    expect(stage.counters().completed).toBe(1);
    expect(await readAll(stage)).toEqual([]);
    expect(stage.engine.journal.isOn).toBe(false);
  });

  it("every event that listeners get is recorded: successes, failures, timeouts, stalls, snoozes, cancels, expiries", async () => {
    const stage = await openStage(ON);
    let runs = 0;
    const jobs = [
      jobWith(() => ({ answer: 42 }), {}, "returns"),
      jobWith(() => (runs++ === 0 ? Promise.reject(new Error("no")) : 1), {}, "retried"),
      jobWith(() => Promise.reject(new Error("no")), { retry: { attempts: 2 } }, "discarded"),
      jobWith(obedient, { timeouts: { attempt: "1s" }, retry: { attempts: 1 } }, "timed.out"),
      jobWith(deaf, { timeouts: { attempt: "1s", grace: "1s" }, retry: { attempts: 1 } }, "forced"),
      jobWith(deaf, { timeouts: { heartbeat: "1s" }, retry: { attempts: 1 } }, "stalled"),
      jobWith(() => snooze({ after: "5s" }), { timeouts: { total: "20s" } }, "snoozed"),
      jobWith(deaf, { timeouts: { total: "3s" } }, "total"),
      jobWith(() => undefined, { retention: "0s" }, "dropped"),
    ];
    stage.work(
      jobs.flatMap(({ processors }) => processors),
      { queues: { default: { concurrency: 50 } } },
    );
    for (const { definition } of jobs) await stage.engine.enqueue(definition);
    await stage.engine.enqueueMany(jobOf({}, "returns"), [1, 2, 3]);
    const { id } = await stage.engine.enqueue(jobOf({}, "returns"), null, { delay: "1h" });
    await stage.engine.extend(id, { total: "2d" });
    await stage.engine.cancel(id);
    await stage.engine.enqueue(jobOf({}, "late"), null, { queue: "nobody", timeouts: { wait: "2s" } });
    await stage.advance("10m");
    await expectTheSame(stage);
    const names = new Set((await readAll(stage)).map(({ name }) => name));
    for (const name of ["job.started", "job.completed", "job.retrying", "job.discarded", "job.timeout"])
      expect(names).toContain(name);
    // What only the process of a worker can tell is noted as well.
    expect(names).toContain("job.stuck");
    for (const name of ["job.stalled", "job.snoozed", "job.total_timeout", "job.expired", "job.extended"])
      expect(names).toContain(name);
  });

  it("a recorded event has its details and no stack", async () => {
    const stage = await openStage(ON);
    const good = jobWith(() => ({ answer: 42 }), {}, "good");
    const long = jobWith(() => "x".repeat(3_000), {}, "long");
    const bad = jobWith(() => Promise.reject(new Error("no")), { retry: { attempts: 2 } }, "bad");
    stage.work([...good.processors, ...long.processors, ...bad.processors]);
    for (const { definition } of [good, long, bad]) await stage.engine.enqueue(definition);
    await stage.advance("1m");
    const events = await readAll(stage);
    const find = (name: string, type: string) =>
      events.find((event) => event.name === name && event.type === type) as JournalEvent;
    expect(find("job.completed", "good")).toMatchObject({ result: '{"answer":42}', queue: "default" });
    expect(find("job.completed", "long").result).toBeUndefined();
    expect(find("job.started", "good").worker).toBeTypeOf("string");
    expect(find("job.retrying", "bad")).toMatchObject({ maxAttempts: 2, dueAt: expect.any(Number) });
    const { error } = find("job.failed", "bad");
    expect(error).toMatchObject({ message: "no" });
    expect(error).not.toHaveProperty("stack");
    const cloud = toCloudEvent(find("job.completed", "good"), "https://example.test/jobs");
    expect(cloud).toMatchObject({
      specversion: "1.0",
      type: "job.completed",
      source: "https://example.test/jobs",
      data: { job_type: "good", queue: "default", attempt: 1, result: { answer: 42 } },
    });
    expect(cloud.id).toMatch(/^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  });

  it("records that queues were paused, resumed and configured, and progress", async () => {
    const stage = await openStage(ON);
    const { definition, processors } = jobWith(async (context) => context.progress(0.5, "half"));
    await stage.engine.queues.configure("default", { timeouts: { attempt: "5s" } });
    await stage.engine.queues.pause("default");
    await stage.engine.queues.resume("default");
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("1s");
    const events = (await readAll(stage)).map((event) => toCloudEvent(event));
    expect(events.slice(0, 3).map(({ type, subject }) => [type, subject])).toEqual([
      ["queue.configured", "default"],
      ["queue.paused", "default"],
      ["queue.resumed", "default"],
    ]);
    expect(events.find(({ type }) => type === "job.progress")?.data).toMatchObject({
      progress: 0.5,
      message: "half",
    });
  });

  it("an event is recorded once, even if replies are lost and calls fail", async () => {
    for (const fault of ["lose-reply", "drop"] as const) {
      for (let nth = 2; nth <= 12; nth++) {
        const stage = await openOver(
          (store) => faultyStore(store, (call, at) => (call === "commit" && at === nth ? fault : undefined)),
          ON,
        );
        const slow = jobWith(async () => stage.sleep(1_000), {}, "slow");
        const fails = jobWith(() => Promise.reject(new Error("no")), { retry: { attempts: 2 } }, "fails");
        stage.work([...slow.processors, ...fails.processors]);
        const { id } = await stage.engine.enqueue(slow.definition);
        await stage.engine.enqueue(fails.definition);
        await stage.advance("1m");
        const events = await readAll(stage);
        const names = events.filter(({ job }) => job === id).map(({ name }) => name);
        expect(names, `${fault} of commit ${nth}`).toEqual(["job.enqueued", "job.started", "job.completed"]);
        expect(events.filter(({ type }) => type === "fails").map(({ name }) => name)).toEqual([
          ...["job.enqueued", "job.started", "job.failed", "job.retrying"],
          ...["job.started", "job.failed", "job.discarded"],
        ]);
      }
    }
  });

  it("records an enqueue once if its reply was lost", async () => {
    const stage = await openOver((store) => faultyStore(store, failFirst("jobs.enqueue", "lose-reply")), ON);
    const enqueued = stage.engine.enqueue(jobOf());
    await stage.advance("1s");
    const { id } = await enqueued;
    expect((await readAll(stage)).map(({ name, job }) => [name, job])).toEqual([["job.enqueued", id]]);
  });
});

describe("who records", () => {
  it("all engines on a store record once one turns it on, unless they are set to off", async () => {
    const { first, second, advance } = await openPair();
    await second.engine.enqueue(jobOf());
    await first.engine.journal.turnOn();
    await advance(6_000);
    expect(second.engine.journal.isOn).toBe(true);
    await second.engine.enqueue(jobOf());
    expect((await readAll(first)).length).toBe(1);
    await first.engine.journal.turnOff();
    await advance(6_000);
    await second.engine.enqueue(jobOf());
    expect((await readAll(first)).length).toBe(1);
    const silent = await openStage({ events: "off" });
    expect(await errorOf(silent.engine.journal.turnOn())).toMatchObject({ code: "invalid_option" });
    await expect(openStage({ events: "yes" as never })).rejects.toThrow(/events.*"durable" or "off"/);
  });
});

/** A store whose events after a cursor cannot be read for a while, as PostgreSQL's behind a transaction that runs. */
function withheld() {
  let end: string | null | undefined;
  const cut = (page: EventPage): EventPage => {
    if (end === undefined) return page;
    const count = end === null ? 0 : page.cursors.indexOf(end) + 1;
    const cursors = page.cursors.slice(0, count);
    return { events: page.events.slice(0, count), cursors, cursor: end, isIncomplete: true };
  };
  return {
    withhold: (after: string | null) => {
      end = after;
    },
    release: () => {
      end = undefined;
    },
    wrap: (store: Store): Store => ({
      ...store,
      inspect: {
        ...store.inspect,
        events: async (after, limit) => cut(await store.inspect.events(after, limit)),
        latestEvents: async (limit) => cut(await store.inspect.latestEvents(limit)),
      },
    }),
  };
}

describe("reading", () => {
  it("reads pages by cursor, with filters, and reports whether there is more", async () => {
    const stage = await openStage(ON);
    const { definition, processors } = jobWith(() => 1);
    stage.work(processors, { queues: { a: { concurrency: 1 }, b: { concurrency: 1 } } });
    const handles = [];
    for (let n = 0; n < 6; n++)
      handles.push(await stage.engine.enqueue(definition, null, { queue: n % 2 ? "a" : "b" }));
    await stage.advance("1s");
    const all = (await readAll(stage)).filter(({ job }) => job !== undefined);
    expect(all.length).toBe(18);
    const { journal } = stage.engine;
    const paged: JournalEvent[] = [];
    let cursor: string | null = null;
    for (;;) {
      const page = await journal.read({ after: cursor, limit: 3, queues: ["a"], types: ["job.*"] });
      paged.push(...page.events);
      cursor = page.cursor;
      if (!page.hasMore) break;
    }
    expect(paged).toEqual(all.filter(({ queue }) => queue === "a"));
    const id = handles[2]?.id as string;
    expect((await journal.read({ job: id })).events.map(({ name }) => name)).toEqual([
      "job.enqueued",
      "job.started",
      "job.completed",
    ]);
    const latest = await journal.latest({ limit: 4, types: ["job.completed"] });
    expect(latest.events).toEqual(all.filter(({ name }) => name === "job.completed").slice(-4));
    expect((await journal.read({ after: latest.cursor })).events).toEqual([]);
  });

  it("latest goes further back from where it ended, until there are no older events", async () => {
    const { engine } = await openStage(ON);
    const { journal } = engine;
    for (const queue of ["a", "b", "c"]) await engine.enqueueMany(jobOf({}, "x"), [1, 2, 3], { queue });
    const { events: all } = await journal.read();
    expect(all).toHaveLength(9);
    for (const limit of [1, 2, 4, 20]) {
      const found: JournalEvent[] = [];
      let before: string | null = null;
      do {
        const page: LatestPage = await journal.latest({ limit, before });
        found.unshift(...page.events);
        expect(page.from).toBe(page.events[0]?.at ?? null);
        before = page.before;
      } while (before !== null);
      expect(found).toEqual(all);
    }
    const inB = await journal.latest({ limit: 2, queues: ["b"] });
    const rest = await journal.latest({ limit: 2, queues: ["b"], before: inB.before });
    expect([...rest.events, ...inB.events]).toEqual(all.filter(({ queue }) => queue === "b"));
    expect(rest.before).toBeNull();
  });

  it("read and latest wait for committed events that cannot be read yet", async () => {
    const { late, stage, first } = await openWithLateEvent();
    for (const call of ["read", "latest"] as const) {
      late.withhold(first.cursor);
      const reading = stage.engine.journal[call]();
      await stage.system.advance(500);
      late.release();
      await stage.system.advance(500);
      const { events, isIncomplete } = await reading;
      expect(events.map(({ queue }) => queue)).toEqual(["a", "b"]);
      expect(isIncomplete).toBe(false);
    }
  });

  it("read and latest give up after a second, and say from which cursor to read on", async () => {
    const { late, stage, first } = await openWithLateEvent();
    const { before: _before, from: _from, ...forward } = first;
    for (const call of ["read", "latest"] as const) {
      const reading = stage.engine.journal[call]();
      await stage.system.advance(1_100);
      expect(await reading).toMatchObject({ ...forward, isIncomplete: true });
    }
    late.release();
    const { events } = await stage.engine.journal.read({ after: first.cursor });
    expect(events.map(({ queue }) => queue)).toEqual(["b"]);
  });

  it("refuses bad options, with field, value and fix", async () => {
    const { journal } = (await openStage(ON)).engine;
    const cases: [() => unknown, RegExp][] = [
      [() => journal.read({ after: "nonsense" }), /after.*nonsense.*cursor of an event/],
      [() => journal.read({ limit: 0 }), /limit.*0.*from 1 to 1000/],
      [() => journal.read({ types: "job.started" as never }), /types.*list of names/],
      [() => journal.read({ queue: "a" } as never), /queue/],
      [() => journal.latest({ job: 7 as never }), /job.*7/],
      [() => journal.latest({ before: "nonsense" }), /before.*nonsense/],
      [() => journal.latest({ saga: { type: "order" } as never }), /saga.*type, id/],
      [async () => journal.follow({ after: "1;2" }), /after/],
      [async () => journal.follow({ queues: [""] }), /queues/],
    ];
    for (const [call, message] of cases) await expect(call()).rejects.toThrow(message);
  });
});

describe("following", () => {
  it("yields the matching events of all processes from the call on, in order", async () => {
    const { first, second, advance } = await openPair();
    await first.engine.journal.turnOn();
    await second.engine.journal.turnOn();
    await first.engine.enqueue(jobOf(), null, { queue: "before" });
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const event of second.engine.journal.follow({
        signal: stop.signal,
        types: ["job.enqueued"],
      }))
        seen.push(event.queue as string);
    })();
    await advance(500);
    for (const queue of ["a", "b"]) await first.engine.enqueue(jobOf(), null, { queue });
    await second.engine.enqueue(jobOf(), null, { queue: "c" });
    await first.engine.queues.pause("d");
    await advance(500);
    expect(seen).toEqual(["a", "b", "c"]);
    stop.abort();
    await following;
  });

  it("begins after a cursor, and with null at the oldest stored event", async () => {
    const stage = await openStage(ON);
    const queues = Array.from({ length: 450 }, (_, n) => `q${n}`);
    for (const queue of queues) await stage.engine.enqueue(jobOf(), null, { queue });
    const { events } = await stage.engine.journal.read({ limit: 1_000 });
    for (const [after, from] of [
      [null, 0],
      [events[99]?.cursor as string, 100],
    ] as const) {
      const seen: string[] = [];
      for await (const event of stage.engine.journal.follow({ after })) {
        seen.push(event.queue as string);
        if (event.queue === "q449") break;
      }
      expect(seen).toEqual(queues.slice(from));
    }
  });

  it("continues after a store failure, and ends when the engine is closed", async () => {
    const stage = await openOver((store) => faultyStore(store, failFirst("inspect.events", "drop", 3)), ON);
    const seen: string[] = [];
    const following = (async () => {
      for await (const event of stage.engine.journal.follow({ after: null })) seen.push(event.name);
    })();
    await stage.engine.enqueue(jobOf());
    await stage.advance("2s");
    expect(seen).toEqual(["job.enqueued"]);
    await stage.close();
    await following;
  });
});

describe("retention", () => {
  it("prunes events by their age", async () => {
    const stage = await openStage(ON);
    await stage.engine.enqueue(jobOf());
    await stage.advance("20h");
    await stage.engine.enqueue(jobOf(), null, { queue: "later" });
    await stage.advance("5h");
    await stage.engine.pruneOnce();
    expect((await readAll(stage)).map(({ queue }) => queue)).toEqual(["later"]);
  });
});

/** Two events, of which the second is committed and cannot be read yet. */
async function openWithLateEvent() {
  const late = withheld();
  const stage = await openOver(late.wrap, ON);
  await stage.engine.enqueue(jobOf(), null, { queue: "a" });
  const first = await stage.engine.journal.latest();
  late.withhold(first.cursor);
  await stage.engine.enqueue(jobOf(), null, { queue: "b" });
  return { late, stage, first };
}
