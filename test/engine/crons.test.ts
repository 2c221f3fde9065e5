import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { CronRun } from "../../src/core/cron/cron.ts";
import { Engine } from "../../src/engine/engine.ts";
import { defineJob, type EngineEvent, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { deaf, openStage, START, type Stage } from "./stage.ts";

const HOUR = 3_600_000;
const tick = defineJob({ type: "test.tick", payload: z.object({ n: z.number() }) });
const plain = defineJob({ type: "test.plain" });

/** The instants that the jobs of a stage were for, in the order of their ids. */
async function firedFor(stage: Stage, type = "test.tick"): Promise<string[]> {
  const rows = await jobsOf(stage.engine.store, { type });
  return rows.map(({ options }) => String(options?.meta?.scheduledFor).slice(0, 19));
}

function toldOf(stage: Stage): EngineEvent[] {
  return stage.events.filter(({ name }) => name.startsWith("cron."));
}

describe("a cron", () => {
  it("enqueues its job at each instant, with its options and the instant", async () => {
    const stage = await openStage();
    const view = await stage.engine.crons.put("hourly report", {
      cron: "0 * * * *",
      job: tick,
      payload: { n: 1 },
      options: { queue: "reports", priority: 5, meta: { tenant: "a" }, timeouts: { total: "30m" } },
    });
    expect(view).toMatchObject({ name: "hourly report", nextAt: START + HOUR, isPaused: false, zone: "UTC" });
    await stage.advance("150m");
    expect(await firedFor(stage)).toEqual(["2030-01-01T01:00:00", "2030-01-01T02:00:00"]);
    const [row] = await jobsOf(stage.engine.store, { queue: "reports" });
    expect(row).toMatchObject({
      payload: '{"n":1}',
      priority: 5,
      createdAt: START + HOUR,
      totalAt: START + 1.5 * HOUR,
      options: { meta: { tenant: "a", cron: "hourly report", scheduledFor: "2030-01-01T01:00:00.000Z" } },
    });
    expect(toldOf(stage)).toEqual(
      [1, 2].map((hours) =>
        expect.objectContaining({
          name: "cron.triggered",
          cron: "hourly report",
          type: "test.tick",
          at: START + hours * HOUR,
          scheduledFor: START + hours * HOUR,
        }),
      ),
    );
    const cron = await stage.engine.crons.get("hourly report");
    expect(cron).toMatchObject({ nextAt: START + 3 * HOUR, lastJob: cron?.runs[0]?.job });
    expect(cron?.runs.map((run) => run.for)).toEqual([START + 2 * HOUR, START + HOUR]);
  });

  it("hands the instant to the handler in its meta", async () => {
    const stage = await openStage();
    const seen: unknown[] = [];
    stage.work([processor(plain, ({ meta }) => void seen.push(meta))]);
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain });
    await stage.advance("61m");
    expect(seen).toEqual([{ cron: "c", scheduledFor: "2030-01-01T01:00:00.000Z" }]);
  });

  it("a cron with a field for seconds fires each second", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "* * * * * *", job: plain });
    await stage.advance({ milliseconds: 10_500 });
    expect(await firedFor(stage, "test.plain")).toHaveLength(10);
    expect(toldOf(stage).map((event) => event.at - START)).toEqual(
      Array.from({ length: 10 }, (_, n) => (n + 1) * 1_000),
    );
  });

  it("keeps to the clock of its zone", async () => {
    const stage = await openStage({ startAt: "2030-03-29T12:00:00Z" });
    await stage.engine.crons.put("c", { cron: "30 2 * * *", zone: "Europe/Berlin", job: plain });
    await stage.advance("3d");
    expect(await firedFor(stage, "test.plain")).toEqual([
      "2030-03-30T01:30:00",
      "2030-03-31T01:30:00",
      "2030-04-01T00:30:00",
    ]);
  });

  it("can be paused and resumed", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain, missed: { all: "1d" } });
    expect(await stage.engine.crons.pause("c")).toMatchObject({ isPaused: true, nextAt: null });
    await stage.advance("150m");
    expect(await stage.engine.crons.resume("c")).toMatchObject({ isPaused: false, nextAt: START + 3 * HOUR });
    await stage.advance("1h");
    expect(await firedFor(stage, "test.plain")).toEqual(["2030-01-01T03:00:00"]);
  });

  it("can be triggered by hand, paused or not", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "@daily", job: tick, payload: { n: 1 } });
    await stage.engine.crons.pause("c");
    await stage.advance("10m");
    const job = await stage.engine.crons.trigger("c");
    await stage.settle();
    expect(await stage.load(job)).toMatchObject({ state: "available", payload: '{"n":1}' });
    expect(toldOf(stage)).toMatchObject([{ name: "cron.triggered", job: job.id, manual: true }]);
    const cron = await stage.engine.crons.get("c");
    expect(cron).toMatchObject({ lastJob: job.id, runs: [{ job: job.id, manual: true }] });
  });

  it("can be deleted; its jobs stay", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain });
    await stage.advance("61m");
    expect(await stage.engine.crons.delete("c")).toBe(true);
    expect(await stage.engine.crons.delete("c")).toBe(false);
    await stage.advance("3h");
    expect(await firedFor(stage, "test.plain")).toHaveLength(1);
    expect(await stage.engine.crons.get("c")).toBeNull();
  });

  it("keeps the last 50 runs", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain });
    await stage.advance("60h");
    const cron = await stage.engine.crons.get("c");
    expect(cron?.runs).toHaveLength(50);
    expect(cron?.runs[0]).toMatchObject({ for: START + 60 * HOUR });
  });
});

describe("put", () => {
  it("changes the cron of the same name and keeps its history", async () => {
    const stage = await openStage();
    const { crons } = stage.engine;
    await crons.put("c", { cron: "@hourly", job: tick, payload: { n: 1 } });
    await stage.advance("61m");
    const changed = await crons.put("c", { cron: "@hourly", job: tick, payload: { n: 2 } });
    expect(changed).toMatchObject({ createdAt: START, updatedAt: START + 61 * 60_000, payload: { n: 2 } });
    expect(changed.runs).toHaveLength(1);
    expect(await crons.put("c", { cron: "30 * * * *", job: tick, payload: { n: 2 } })).toMatchObject({
      nextAt: START + 1.5 * HOUR,
    });
    expect(await crons.list()).toHaveLength(1);
  });

  it("writes nothing if nothing changes, so that every process may put its crons at its start", async () => {
    const { engine } = await openStage();
    const cron = {
      cron: "@hourly",
      job: tick,
      payload: { n: 1 },
      options: { timeouts: { attempt: "90s" } },
    } as const;
    await engine.crons.put("c", cron);
    const version = async () => (await engine.store.records.load([["cron", "c"]]))[0]?.version;
    const before = await version();
    await engine.crons.put("c", cron);
    expect(await version()).toBe(before);
  });

  it("keeps the existing cron with ifExists keep, and throws with refuse", async () => {
    const { engine } = await openStage();
    await engine.crons.put("c", { cron: "@hourly", job: plain });
    expect(await engine.crons.put("c", { cron: "@daily", job: plain, ifExists: "keep" })).toMatchObject({
      cron: "@hourly",
    });
    const refused = engine.crons.put("c", { cron: "@daily", job: plain, ifExists: "refuse" });
    await expect(refused).rejects.toMatchObject({ code: "known_cron" });
    expect(await engine.crons.update("c", { cron: "30 3 * * *", zone: "Asia/Tokyo" })).toMatchObject({
      cron: "30 3 * * *",
      zone: "Asia/Tokyo",
      clockChange: { gap: "later", overlap: "earlier" },
    });
  });

  it("does not lose an instant that is due while it is put again", async () => {
    const stage = await openStage();
    const { crons } = stage.engine;
    await crons.put("c", { cron: "@hourly", job: tick, payload: { n: 1 } });
    const [record] = await stage.engine.store.records.load([["cron", "c"]]);
    const body = { ...(record?.body as object), nextAt: START - HOUR };
    await stage.engine.store.commit([{ effects: [{ put: ["cron", "c"], body, wakeAt: null }] }], {
      now: START,
    });
    expect(await crons.put("c", { cron: "@hourly", job: tick, payload: { n: 2 } })).toMatchObject({
      nextAt: START - HOUR,
    });
  });

  it("refuses bad options and names the field", async () => {
    const { engine } = await openStage();
    const put = (more: object, name: unknown = "c") =>
      engine.crons.put(name as string, { cron: "@hourly", job: tick, payload: { n: 1 }, ...more } as never);
    const unique = defineJob({ type: "test.unique", unique: {} });
    const cases: [object, string, string?][] = [
      [{ cron: "@often" }, "cron"],
      [{ zone: "Mars" }, "zone"],
      [{ overlap: "never" }, "overlap"],
      [{ missed: "all" }, "missed"],
      [{ missed: { all: "0s" } }, "missed.all"],
      [{ cron: "* * * * * *", missed: { all: "1d" } }, "missed.all"],
      [{ payload: { n: "1" } }, "payload.n"],
      [{ job: {} }, "job"],
      [{ job: unique, payload: undefined }, "job.unique"],
      [{ options: { unique: { key: "a" } } }, "options.unique"],
      [{ options: { delay: "1m" } }, "options.delay"],
      [{ options: { queue: "No" } }, "options.queue"],
      [{ options: { meta: { cron: 1 } } }, "options.meta.cron"],
      [{ options: { timeouts: { attempt: 5 } } }, "options.timeouts.attempt"],
      [{ ifExists: "replace" }, "ifExists"],
      [{ every: "1h" }, "cron"],
      [{ evry: "1h" }, "evry"],
    ];
    for (const [more, field] of cases)
      await expect(put(more), JSON.stringify(more)).rejects.toMatchObject({ field });
    for (const name of ["", "a\nb", 7, "x".repeat(256)])
      await expect(put({}, name)).rejects.toMatchObject({ field: "name" });
    for (const call of ["pause", "resume", "trigger", "preview"] as const)
      await expect(engine.crons[call]("none")).rejects.toMatchObject({ code: "not_found" });
    await expect(engine.crons.list({ limit: 0 })).rejects.toMatchObject({ field: "page.limit" });
    await expect(engine.crons.preview("c", { count: 0 })).rejects.toMatchObject({ field: "options.count" });
    expect(await put({ job: unique, payload: undefined, options: { unique: false } })).toMatchObject({
      name: "c",
    });
  });
});

describe("preview", () => {
  it("says when a cron or a schedule fires, with the local time", async () => {
    const { engine } = await openStage();
    await engine.crons.put("c", { cron: "0 9 * * *", zone: "Asia/Tokyo", job: plain });
    expect(await engine.crons.preview("c", { count: 1 })).toEqual([
      { at: START + 24 * HOUR, local: "2030-01-02T09:00:00", offset: "+09:00" },
    ]);
    const schedule = { cron: "30 2 * * *", zone: "Europe/Berlin" };
    const [first] = await engine.crons.preview(schedule, { count: 1, from: "2030-03-31T00:00:00Z" });
    expect(first).toMatchObject({ local: "2030-03-31T03:30:00", offset: "+02:00" });
  });
});

describe("overlap", () => {
  async function overlapping(overlap: "allow" | "skip" | "cancel-previous") {
    const stage = await openStage();
    stage.work([processor(plain, deaf)], { queues: { default: { concurrency: 5 } } });
    const job = defineJob({ type: "test.plain", timeouts: { attempt: "none" } });
    await stage.engine.crons.put("c", {
      cron: "@hourly",
      job,
      overlap,
      options: { timeouts: { attempt: "none" } },
    });
    await stage.advance("181m");
    return stage;
  }

  it("is allowed by default", async () => {
    const stage = await overlapping("allow");
    expect((await stage.engine.queues.depth()).active).toBe(3);
  });

  it("skips while the last job has not ended", async () => {
    const stage = await overlapping("skip");
    expect(await firedFor(stage, "test.plain")).toEqual(["2030-01-01T01:00:00"]);
    expect(toldOf(stage).map(({ name }) => name)).toEqual(["cron.triggered", "cron.skipped", "cron.skipped"]);
    expect(toldOf(stage).at(-1)).toMatchObject({
      reason: "overlap",
      count: 1,
      scheduledFor: START + 3 * HOUR,
    });
    const [running] = await jobsOf(stage.engine.store, { state: "active" });
    await stage.engine.cancel(running?.id as string);
    await stage.advance("1h");
    expect(await firedFor(stage, "test.plain")).toEqual(["2030-01-01T01:00:00", "2030-01-01T04:00:00"]);
  });

  it("cancels the last job if set to cancel", async () => {
    const stage = await overlapping("cancel-previous");
    expect(await stage.engine.queues.depth()).toMatchObject({ active: 1, cancelled: 2 });
    expect(stage.names().filter((name) => name === "job.cancelled")).toHaveLength(2);
    const cron = await stage.engine.crons.get("c");
    expect(cron?.runs[0]?.cancelled).toBe(cron?.runs[1]?.job);
  });
});

describe("instants that were missed while no engine ran", () => {
  /** An hour's cron whose engines were away until 05:30. */
  async function away(missed: "skip" | "once" | { all: "150m" } | { all: "1d" }, minutes = 330) {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain, missed });
    await stage.system.settle();
    stage.system.pause(minutes * 60_000);
    await stage.advance("2m");
    return stage;
  }
  const skipped = (stage: Stage) =>
    toldOf(stage).flatMap((event) =>
      event.name === "cron.skipped" ? [`${event.reason} ${event.count}`] : [],
    );

  it("fire once for all of them", async () => {
    const stage = await away("once");
    expect(await firedFor(stage, "test.plain")).toEqual(["2030-01-01T05:00:00"]);
    expect(skipped(stage)).toEqual(["missed 4"]);
  });

  it("are skipped, except for one that has just passed", async () => {
    const stage = await away("skip");
    expect(await firedFor(stage, "test.plain")).toEqual([]);
    expect(skipped(stage)).toEqual(["missed 5"]);
    await stage.advance("30m");
    expect(await firedFor(stage, "test.plain")).toEqual(["2030-01-01T06:00:00"]);
    expect(await firedFor(await away("skip", 300), "test.plain")).toEqual(["2030-01-01T05:00:00"]);
  });

  it("all fire if they are within the window", async () => {
    const stage = await away({ all: "150m" });
    expect(await firedFor(stage, "test.plain")).toEqual([
      "2030-01-01T03:00:00",
      "2030-01-01T04:00:00",
      "2030-01-01T05:00:00",
    ]);
    expect(skipped(stage)).toEqual(["missed 2"]);
    expect(await firedFor(await away({ all: "1d" }), "test.plain")).toHaveLength(5);
  });

  it("fire in bounded batches, in their order", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", { cron: "*/15 * * * * *", job: plain, missed: { all: "2h" } });
    await stage.system.settle();
    stage.system.pause(HOUR);
    await stage.advance("1s");
    const instants = await firedFor(stage, "test.plain");
    expect(instants).toHaveLength(240);
    expect(instants).toEqual(instants.toSorted());
    const runs = (await stage.engine.crons.get("c"))?.runs as readonly CronRun[];
    expect(runs).toHaveLength(50);
  });

  it("fire once if runs must not overlap", async () => {
    const stage = await openStage();
    await stage.engine.crons.put("c", {
      cron: "@hourly",
      job: plain,
      overlap: "skip",
      missed: { all: "1d" },
    });
    stage.system.pause(5.5 * HOUR);
    await stage.advance("2m");
    expect(await firedFor(stage, "test.plain")).toEqual(["2030-01-01T05:00:00"]);
    expect(skipped(stage)).toEqual(["overlap 4"]);
  });
});

describe("remote producers", () => {
  it("put crons by the name of a type", async () => {
    const stage = await openStage();
    const definition = defineJob({ type: "cron.remote" });
    const view = await stage.engine.service.crons.putRemote(
      "c",
      { cron: "@hourly", overlap: "skip" },
      { definition, payload: "[1,2]", options: { queue: "q" }, visibility: 5_000, wire: { args: true } },
    );
    expect(view).toMatchObject({ type: "cron.remote", queue: "q", payload: [1, 2], wire: { args: true } });
    await stage.advance("61m");
    const [row] = await jobsOf(stage.engine.store, { queue: "q" });
    expect(row).toMatchObject({
      type: "cron.remote",
      payload: "[1,2]",
      options: { visibility: 5_000, wire: { args: true } },
    });
  });
});

describe("newer zone data", () => {
  it("moves the next instant when an engine is opened with it", async () => {
    const stage = await openStage();
    const { store } = stage.engine;
    const cron = await stage.engine.crons.put("c", { cron: "0 9 * * *", zone: "Asia/Tokyo", job: plain });
    const [record] = await store.records.load([["cron", "c"]]);
    const wrong = (cron.nextAt as number) + HOUR;
    const body = { ...(record?.body as object), nextAt: wrong };
    await store.commit([{ effects: [{ put: ["cron", "c"], body, wakeAt: wrong }] }], { now: START });
    const shared = { ...store, close: async () => {} };
    const other = await Engine.open({
      store: shared,
      system: stage.system,
      logger: silentLogger,
      zoneData: "2030a",
    });
    expect(await other.crons.get("c")).toMatchObject({ nextAt: cron.nextAt });
    const closed = other.close();
    await stage.advance("1s");
    await closed;
  });
});

describe("the stream of events", () => {
  const ON = { events: "durable" } as const;
  const kept = async (stage: Stage) => (await stage.engine.journal.read({ limit: 1_000 })).events;

  it("records a cron's run and the enqueue of its job in the commit that fires it", async () => {
    const stage = await openStage(ON);
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain, overlap: "cancel-previous" });
    await stage.advance("121m");
    const job = await stage.engine.crons.trigger("c");
    const events = await kept(stage);
    const [first, second] = await jobsOf(stage.engine.store, { type: "test.plain" });
    expect(events.map(({ name, job: id, subject }) => [name, id ?? subject])).toEqual([
      ["job.enqueued", first?.id],
      ["cron.triggered", "c"],
      ["job.cancelled", first?.id],
      ["job.enqueued", second?.id],
      ["cron.triggered", "c"],
      ["job.enqueued", job.id],
      ["cron.triggered", "c"],
    ]);
    expect(events[1]?.data).toEqual({
      type: "test.plain",
      scheduledFor: "2030-01-01T01:00:00.000Z",
      job: first?.id,
    });
    expect(events.at(-1)?.data).toMatchObject({ manual: true });
  });

  it("records skipped runs with the reason", async () => {
    const stage = await openStage(ON);
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain, overlap: "skip" });
    await stage.advance("121m");
    const [skipped] = (await kept(stage)).filter(({ name }) => name === "cron.skipped");
    expect(skipped).toMatchObject({ subject: "c", data: { reason: "overlap", count: 1 } });
  });

  it("records a replacement as a cancelled job and a scheduled one", async () => {
    const stage = await openStage(ON);
    for (const period of [{}, { period: "2h" }] as const) {
      const job = defineJob({
        type: "test.replaced",
        unique: { onConflict: "replace-except-schedule", ...period },
      });
      const first = await stage.engine.enqueue(job, 1, { delay: "1h" });
      const second = await stage.engine.enqueue(job, 1);
      const events = (await kept(stage)).filter(({ job: id }) => id === first.id || id === second.id);
      expect(events.map(({ name, job: id }) => [name, id])).toEqual([
        ["job.scheduled", first.id],
        ["job.cancelled", first.id],
        ["job.scheduled", second.id],
      ]);
      await second.cancel();
    }
  });
});

describe("the audit", () => {
  it("keeps who changed a cron, in the commit of the change", async () => {
    const stage = await openStage();
    const { crons } = stage.engine.as({ actor: "mia", reason: "incident 42" });
    await crons.put("c", { cron: "@hourly", job: plain });
    await crons.update("c", { overlap: "skip" });
    await crons.pause("c");
    await crons.pause("c");
    await crons.resume("c");
    await crons.trigger("c");
    await crons.delete("c");
    const { entries } = await stage.engine.audit.read();
    expect(entries.map(({ actor, action, details }) => [actor, action, details])).toEqual(
      ["delete", "trigger", "resume", "pause", "update", "put"].map((action) => [
        "mia",
        `cron.${action}`,
        { cron: "c" },
      ]),
    );
    await stage.engine.crons.put("c", { cron: "@hourly", job: plain });
    expect((await stage.engine.audit.read()).entries).toHaveLength(6);
  });
});
