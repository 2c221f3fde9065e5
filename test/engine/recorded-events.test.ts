import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../src/core/event/stored-event.ts";
import { EVENT_NAMES, EventBus } from "../../src/engine/events/event-bus.ts";
import { EventRecorder } from "../../src/engine/events/event-recorder.ts";
import { RECORDED, recordBusEvents } from "../../src/engine/events/recording-rules.ts";
import { chain, type EngineEvent, type EngineEventName, processor, snooze, step } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Unit } from "../../src/ports/store.ts";
import { createSimSystem } from "../../src/testing/index.ts";
import { openStage as openServer, type Stage as ServerStage } from "../server/stage.ts";
import { diary } from "./saga-stage.ts";
import { deaf, jobOf, jobWith, obedient, START } from "./stage.ts";

/** The stream holds all that an engine tells: what is told in a commit, what is noted, and why the rest is left out. */

const NAMES = Object.keys(RECORDED) as EngineEventName[];
const COMMITTED = NAMES.filter((name) => RECORDED[name] === "commit");
const NOTED = NAMES.filter((name) => typeof RECORDED[name] === "function");

it("every event of an engine is recorded, or left out for a reason", () => {
  expect(new Set(NAMES)).toEqual(EVENT_NAMES);
  const left = NAMES.filter((name) => !COMMITTED.includes(name) && !NOTED.includes(name));
  expect(left).toEqual(["store.error"]);
  for (const name of left) expect((RECORDED[name] as { not: string }).not).toMatch(/\w+ \w+/);
});

/** A recorder whose commits are kept. */
function openRecorder() {
  const system = createSimSystem({ seed: 1, startAt: START });
  const bus = new EventBus(silentLogger);
  const commits: StoredEvent[][] = [];
  const commit = async (units: readonly Unit[]) => {
    const effects = units.flatMap((unit) => unit.effects ?? []);
    commits.push(
      effects.map((effect) => ("event" in effect ? effect.event : null) as unknown as StoredEvent),
    );
    return units.map(() => ({ ok: true as const }));
  };
  const recorder = new EventRecorder({
    commit,
    system,
    storeFailed: () => {},
  });
  recordBusEvents({ bus, recorder });
  return { bus, recorder, commits, system };
}

/** An event of any name, with what any of them may carry. */
function eventOf(name: EngineEventName, more: object = {}): EngineEvent {
  const job = { id: "j", type: "t", queue: "q", attempt: 1, at: START };
  const saga = { saga: "s", event: { kind: "message", name: "m", id: "e" } };
  const timeout = { timeout: "t", destination: "mail", tries: 1, error: new Error("no") };
  const worker = { worker: "w", reason: "r", gap: 1, jobs: [{ id: "j", type: "t" }] };
  return { ...job, ...saga, ...timeout, ...worker, name, ...more } as unknown as EngineEvent;
}

describe("events without a commit", () => {
  it("are noted while recording is on, and have no listener while it is off", async () => {
    const { bus, recorder, commits, system } = openRecorder();
    expect(NAMES.filter((name) => bus.wants(name))).toEqual([]);
    recorder.setRecording(true);
    expect(NAMES.filter((name) => bus.wants(name))).toEqual(NOTED);
    for (const name of NOTED) bus.emit(eventOf(name));
    await system.advance(5_000);
    // Relief came within the second that pressure was told in, and follows with its count.
    expect(commits.flat().map(({ name }) => name)).toEqual([
      ...NOTED.filter((name) => name !== "queue.relieved"),
      "queue.relieved",
    ]);
    expect(commits.flat().at(-1)).toMatchObject({ queue: "q", data: { count: 1 } });
    recorder.setRecording(false);
    expect(NAMES.filter((name) => bus.wants(name))).toEqual([]);
  });

  it("are recorded once a second with a count if a full queue refuses many jobs", async () => {
    const { bus, recorder, commits, system } = openRecorder();
    recorder.setRecording(true);
    for (let second = 0; second < 3; second++) {
      for (let nth = 0; nth < 1_000; nth++) bus.emit(eventOf("queue.full", { waiting: 5, most: 5 }));
      bus.emit(eventOf("queue.full", { queue: "other" }));
      await system.advance(1_000);
    }
    await system.advance(10_000);
    const told = commits.flat().filter(({ queue }) => queue === "q");
    expect(told.map(({ data }) => data?.count)).toEqual([undefined, 999, 1_000, 1_000]);
    expect(told[1]).toMatchObject({ name: "queue.full", subject: "q", data: { waiting: 5, most: 5 } });
    // A quiet second ends it: the next one is told at once.
    bus.emit(eventOf("queue.full"));
    await system.advance(100);
    expect(commits.at(-1)?.[0]?.data?.count).toBeUndefined();
  });

  it("are written before a recorder closes, throttled ones included", async () => {
    const { bus, recorder, commits } = openRecorder();
    recorder.setRecording(true);
    for (let nth = 0; nth < 3; nth++) bus.emit(eventOf("queue.full"));
    await recorder.close();
    expect(commits.flat().map(({ data }) => data?.count)).toEqual([undefined, 2]);
    bus.emit(eventOf("queue.full"));
    await recorder.close();
    expect(commits.flat().length).toBe(2);
  });

  it("name a hundred of the jobs that ran while a loop was blocked", async () => {
    const { bus, recorder, commits } = openRecorder();
    recorder.setRecording(true);
    const jobs = Array.from({ length: 5_000 }, (_, nth) => ({ id: `${nth}`, type: "t" }));
    bus.emit(eventOf("worker.blocked", { jobs }));
    await recorder.close();
    expect(commits.flat()[0]).toMatchObject({ subject: "w", data: { worker: "w", gap: 1 } });
    expect(commits.flat()[0]?.data?.jobs).toHaveLength(100);
  });
});

/** Does everything that an engine records in a commit. */
async function liveThrough(stage: ServerStage): Promise<void> {
  const { engine } = stage;
  const { saga } = diary((context, text, state) => (text === "end" ? context.complete(state) : undefined));
  engine.host([saga]);
  await engine.send(saga, "begun", { id: "a" });
  await engine.send(saga, "told", { id: "nobody", text: "x" });
  await engine.send(saga, "told", { id: "a", text: "end" });
  const one = { retry: { attempts: 1 } };
  const beats = jobWith(
    async (context) => {
      for (let nth = 0; nth < 5; nth++) {
        await stage.test.sleep("1s");
        context.beat();
      }
      context.progress(0.5);
    },
    { timeouts: { heartbeat: "20s" } },
    "beats",
  );
  const jobs = [
    beats,
    jobWith(() => Promise.reject(new Error("no")), { retry: { attempts: 2 } }, "fails"),
    jobWith(obedient, { ...one, timeouts: { attempt: "1s" } }, "times.out"),
    jobWith(deaf, { ...one, timeouts: { heartbeat: "1s" } }, "stalls"),
    jobWith(deaf, { ...one, timeouts: { total: "3s" } }, "total"),
    jobWith(() => snooze({ after: "5s" }), { timeouts: { total: "20s" } }, "snoozes"),
  ];
  const slow = jobWith(() => stage.test.sleep("2h"), { timeouts: { attempt: "3h" } }, "slow");
  const worker = engine.work({
    processors: [...jobs, slow].flatMap(({ processors }) => processors),
    queues: { default: { concurrency: 50 } },
  });
  const handles = [];
  for (const { definition } of jobs) handles.push(await engine.enqueue(definition));
  const later = await engine.enqueue(jobOf({}, "later"), null, { delay: "1h", queue: "nobody" });
  await engine.extend(later.id, { total: "2d" });
  await later.cancel();
  await engine.enqueue(jobOf({}, "late"), null, { queue: "nobody", timeouts: { wait: "2s" } });
  await stage.advance("1m");
  await engine.retry(handles[1]?.id as string);
  await engine.workflows.start(chain([step(beats.definition)]));
  await engine.workflows.start(chain([step(jobs[1]?.definition as never)]));
  const cancelled = await engine.workflows.start(chain([step(slow.definition, null, { delay: "1h" })]));
  await cancelled.cancel();
  await engine.crons.put("hourly", { cron: "@hourly", job: slow.definition, overlap: "skip" });
  await engine.queues.pause("default");
  await engine.queues.resume("default");
  await engine.limits.put("key", { concurrency: 2 });
  await stage.advance("2h");
  const closing = worker.close({ drain: "0s" });
  await stage.advance("10s");
  await closing;
}

/** Does what only workers elsewhere, and those that vanish, make an engine tell. */
async function liveElsewhere(stage: ServerStage): Promise<void> {
  const { engine } = stage;
  await stage.enqueue({ queue: "far", visibility_timeout_ms: 3_000 });
  await stage.fetch({ queues: ["far"] });
  await stage.enqueue({ queue: "struck" });
  const now = engine.now();
  await engine.store.jobs.claim({
    queue: "struck",
    limit: 1,
    now,
    lease: 1,
    salt: 1,
    worker: "ghost",
    from: 0,
  });
  await stage.post("/workers/heartbeat", { worker_id: "far", state: "running", queues: ["far"] });
  await stage.advance("1h");
}

describe("events of a commit", () => {
  it("are recorded as often as listeners get them", async () => {
    await using stage = await openServer({ events: "durable" });
    const heard: EngineEventName[] = [];
    void (async () => {
      for await (const { name } of stage.engine.events()) heard.push(name);
    })();
    await liveThrough(stage);
    await liveElsewhere(stage);
    const told: string[] = [];
    for await (const { name } of follow(stage)) told.push(name);
    expect(COMMITTED.filter((name) => !told.includes(name))).toEqual([]);
    const counts = (list: readonly string[]) =>
      Object.fromEntries(
        [...COMMITTED, ...NOTED].map((name) => [name, list.filter((one) => one === name).length]),
      );
    // Timeouts that became messages to sagas are told by the steps that they brought about.
    expect({ ...counts(told), "timeout.sent": 0 }).toEqual({ ...counts(heard), "timeout.sent": 0 });
  });
});

/** All that is recorded. */
async function* follow({ engine }: ServerStage) {
  for (let after: string | null = null; ; ) {
    const page = await engine.journal.read({ after, limit: 1_000 });
    yield* page.events;
    after = page.cursor;
    if (!page.hasMore) return;
  }
}

it("sent timeouts are recorded, except those that became a job or the step of a saga", async () => {
  await using stage = await openServer({ events: "durable" });
  const { engine } = stage;
  const { saga } = diary();
  engine.host([saga]);
  await engine.send(saga, "begun", { id: "a" });
  engine.timeouts.serve("mail", () => {});
  engine.timeouts.serve("broken", () => Promise.reject(new Error("no")));
  await engine.timeouts.insert({ destination: "mail", dueAt: { after: "1s" }, payload: 1 });
  await engine.timeouts.insert({ destination: "broken", dueAt: { after: "1s" }, payload: 1 });
  await stage.advance("2s");
  const { events } = await engine.journal.read({ types: ["timeout.*"] });
  expect(events.map(({ name, data }) => [name, data?.destination, data?.error])).toEqual([
    ["timeout.sent", "mail", undefined],
    ["timeout.failed", "broken", "Error: no"],
  ]);
});

describe("the life of workers", () => {
  it("is recorded from start to end, in order", async () => {
    await using stage = await openServer({ events: "durable" });
    const worker = stage.engine.work({
      processors: [processor(jobOf(), () => {})],
      queues: { a: { concurrency: 1 } },
    });
    await worker.close();
    const { events } = await stage.engine.journal.read();
    expect(events.map(({ name, subject, data }) => [name, subject, data?.queues])).toEqual(
      ["worker.started", "worker.quiet", "worker.stopped"].map((name) => [name, worker.id, ["a"]]),
    );
  });

  it("a remote worker's first contact, quiet, resume and loss are recorded", async () => {
    await using stage = await openServer({ events: "durable" });
    const beat = (worker_id: string, state: string) => stage.post("/workers/heartbeat", { worker_id, state });
    for (const state of ["running", "running", "quiet", "quiet", "running"]) await beat("a", state);
    await beat("b", "running");
    const by = { actor: "mia" };
    await stage.engine.service.workers.direct("b", "quiet", by);
    await beat("b", "quiet");
    await stage.advance("5m");
    const { events } = await stage.engine.journal.read({ types: ["worker.*"] });
    const ofWorker = (id: string) => events.filter(({ subject }) => subject === id).map(({ name }) => name);
    expect(ofWorker("a")).toEqual(["worker.started", "worker.quiet", "worker.resumed", "worker.lost"]);
    expect(ofWorker("b")).toEqual(["worker.started", "worker.quiet", "worker.stopped"]);
    expect(events.at(-1)?.data).toMatchObject({ remote: true, seenAt: expect.any(Number) });
  });
});

describe("recorded heartbeats", () => {
  it("only jobs that beat for themselves record job.heartbeat, in the write that moves their deadline", async () => {
    await using stage = await openServer({ events: "durable" });
    const beating = jobWith(
      async (context) => {
        for (let nth = 0; nth < 3; nth++) {
          await stage.test.sleep("2s");
          context.beat();
        }
        await stage.test.sleep("2s");
      },
      { timeouts: { heartbeat: "10s" } },
      "beating",
    );
    const silent = jobWith(() => stage.test.sleep("8s"), {}, "silent");
    stage.engine.work({ processors: [...beating.processors, ...silent.processors] });
    const { id } = await stage.engine.enqueue(beating.definition);
    await stage.engine.enqueue(silent.definition);
    await stage.advance("10s");
    const { events } = await stage.engine.journal.read({ types: ["job.heartbeat"] });
    expect(events.map(({ job, attempt }) => [job, attempt])).toEqual([1, 2, 3].map(() => [id, 1]));
    for (const { at, visibleUntil = 0 } of events) {
      expect(visibleUntil - at).toBeGreaterThan(8_000);
      expect(visibleUntil - at).toBeLessThanOrEqual(10_000);
    }
  });

  it("beats of remote jobs carry visible_until on the wire, and beats with a lost fence record nothing", async () => {
    await using stage = await openServer({ events: "durable" });
    const { id } = await stage.enqueue({ heartbeat_timeout: 30 });
    const { fence } = await stage.fetch();
    const beat = { worker_id: "w-1", state: "running", active_jobs: [id] };
    await stage.post("/workers/heartbeat", beat);
    await stage.post("/workers/ack", { job_id: id, fence });
    await stage.post("/workers/heartbeat", beat);
    const { body } = await stage.get("/events?types=job.heartbeat");
    expect(body.events).toHaveLength(1);
    expect(body.events[0]).toMatchObject({ subject: id, data: { job_id: id, attempt: 1 } });
    const { time, data } = body.events[0];
    expect(Date.parse(data.visible_until) - Date.parse(time)).toBe(30_000);
  });
});
