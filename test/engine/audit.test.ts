import { describe, expect, it } from "vitest";
import { chain, step } from "../../src/index.ts";
import { faultyStore } from "../../src/testing/index.ts";
import { errorOf, jobOf, jobWith, openOver, openStage } from "./stage.ts";

/** What operators did: who, what, when and why, in the commit of the action itself. */

const MIA = { actor: "mia", reason: "incident 42" };

describe("the audit", () => {
  it("keeps who did what to which job or queue, the newest first", async () => {
    const stage = await openStage();
    const { engine } = stage;
    const bad = jobWith(() => Promise.reject(new Error("no")), { retry: { attempts: 1 } });
    stage.work(bad.processors);
    const failed = await engine.enqueue(bad.definition, { card: "4111 1111 1111 1111" });
    const waiting = await engine.enqueue(jobOf(), null, { delay: "1h" });
    await stage.advance("1s");
    const mia = engine.as(MIA);
    await mia.extend(waiting.id, { total: "2h" });
    await mia.cancel(waiting.id);
    await engine.as({ actor: "ben" }).retry(failed.id, { keepDeadline: true });
    await mia.queues.pause("mail");
    await mia.queues.resume("mail");
    await mia.queues.configure("mail", { timeouts: { attempt: "5s" } });
    const { entries, hasMore } = await engine.audit.read();
    expect(entries.map(({ actor, action, job, queue }) => [actor, action, job ?? queue])).toEqual([
      ["mia", "queue.configure", "mail"],
      ["mia", "queue.resume", "mail"],
      ["mia", "queue.pause", "mail"],
      ["ben", "job.retry", failed.id],
      ["mia", "job.cancel", waiting.id],
      ["mia", "job.extend", waiting.id],
    ]);
    expect(hasMore).toBe(false);
    const [kept] = await engine.store.records.list("audit", null, 1);
    expect((kept?.wakeAt as number) - stage.now()).toBe(90 * 86_400_000);
    expect(entries.at(-1)).toMatchObject({
      at: stage.now(),
      reason: "incident 42",
      queue: "default",
      details: { total: 7_200_000 },
    });
    expect(entries[3]).toMatchObject({ reason: null, details: { keepDeadline: true } });
    expect(JSON.stringify(entries)).not.toContain("4111");
  });

  it("has no entry for an action without an operator, and none for a refused or failed one", async () => {
    const stage = await openOver((store) =>
      faultyStore(store, (call, nth) => (call === "commit" && nth === 2 ? "drop" : undefined)),
    );
    const { engine } = stage;
    const { id } = await engine.enqueue(jobOf());
    await engine.cancel(id);
    expect(await errorOf(engine.as(MIA).cancel(id))).toMatchObject({ code: "invalid_state" });
    expect(await errorOf(engine.as(MIA).queues.pause("mail"))).toMatchObject({ code: "store_failed" });
    expect(await errorOf(engine.as(MIA).cancel("0".repeat(8)))).toMatchObject({ code: "not_found" });
    expect((await engine.audit.read()).entries).toEqual([]);
    await engine.as(MIA).queues.pause("mail");
    expect((await engine.audit.read()).entries.length).toBe(1);
  });

  it("is read by cursor, actor, action, job and queue, and deleted after its retention", async () => {
    const stage = await openStage({ keepAudit: "1d" });
    const { engine } = stage;
    for (let n = 0; n < 30; n++) {
      await engine.as({ actor: n % 3 ? "mia" : "ben" }).queues.pause(`q${n % 5}`);
      if (n % 4 === 0) await stage.advance("1m");
    }
    const all = (await engine.audit.read()).entries;
    expect(all.map(({ queue }) => queue)).toEqual(Array.from({ length: 30 }, (_, n) => `q${(29 - n) % 5}`));
    const paged = [];
    let after: string | null = null;
    do {
      const page = await engine.audit.read({ after, limit: 4, actor: "ben" });
      paged.push(...page.entries);
      after = page.cursor;
      if (!page.hasMore) break;
    } while (after !== null);
    expect(paged).toEqual(all.filter(({ actor }) => actor === "ben"));
    expect((await engine.audit.read({ queue: "q1", action: "queue.*" })).entries.length).toBe(6);
    expect((await engine.audit.read({ action: "job.cancel" })).entries).toEqual([]);
    await stage.advance("1d");
    await engine.as(MIA).queues.pause("new");
    expect((await engine.audit.read()).entries.map(({ queue }) => queue)).toEqual(["new"]);
  });

  it("has entries for bulk actions, dead letters, crons and workflows", async () => {
    const stage = await openStage();
    const { engine } = stage;
    const dead = jobWith(() => Promise.reject(new Error("no")), {
      retry: { attempts: 1, onExhausted: "dead-letter" },
    });
    stage.work(dead.processors);
    const { id } = await engine.enqueue(dead.definition);
    await stage.advance("1s");
    await engine.deadLetters.retry(id, {}, MIA);
    await stage.advance("1s");
    await engine.deadLetters.delete(id, MIA);
    await engine.enqueueMany(jobOf({}, "many"), [1, 2, 3], { queue: "other" });
    await engine.bulk.cancel({ type: "many" }, { by: MIA });
    await engine.bulk.cancel({ type: "many" }, { by: MIA });
    await engine.crons.as(MIA).put("nightly", { cron: "@daily", job: jobOf() });
    await engine.crons.as(MIA).pause("nightly");
    await engine.crons.as(MIA).pause("nightly");
    await engine.crons.as(MIA).resume("nightly");
    await engine.crons.as(MIA).trigger("nightly");
    await engine.crons.as(MIA).delete("nightly");
    const workflow = await engine.workflows.start(chain([step(jobOf({}, "many"), null, { delay: "1h" })]));
    await workflow.cancel(MIA);
    const { entries } = await engine.audit.read();
    expect(entries.map(({ action }) => action).reverse()).toEqual([
      ...["job.retry", "job.delete", "bulk.cancel", "cron.put", "cron.pause", "cron.resume", "cron.trigger"],
      ...["cron.delete", "workflow.cancel"],
    ]);
    expect(entries.find(({ action }) => action === "bulk.cancel")?.details).toMatchObject({
      tried: 3,
      filter: { type: "many" },
    });
    expect(entries[0]?.details).toEqual({ workflow: workflow.id });
    const bad = engine.bulk.cancel({ type: "many" }, { by: { actor: "" } });
    await expect(bad).rejects.toThrow(/options.by.actor/);
  });

  it("names the jobs of a bulk action, and finds its entry by each of them", async () => {
    const { engine } = await openStage();
    const [first, second, third] = await engine.enqueueMany(jobOf(), [1, 2, 3]);
    const ids = [first, second, third].map((job) => job?.id as string);
    await engine.bulk.cancel({ all: true }, { by: MIA });
    await engine.bulk.delete({ ids: ids.slice(0, 1) }, { by: MIA });
    await engine.bulk.delete({ all: true }, { by: MIA });
    const actionsOn = async (job: string | undefined) =>
      (await engine.audit.read({ job: job as string })).entries.map(({ action, job: of }) => [action, of]);
    expect(await actionsOn(ids[0])).toEqual([
      ["bulk.delete", ids[0]],
      ["bulk.cancel", undefined],
    ]);
    expect(await actionsOn(ids[2])).toEqual([
      ["bulk.delete", undefined],
      ["bulk.cancel", undefined],
    ]);
    const [all] = (await engine.audit.read()).entries;
    expect(all?.details).toMatchObject({ tried: 2, jobs: expect.arrayContaining(ids.slice(1)) });
  });

  it("refuses bad options, with field, value and fix", async () => {
    const { engine } = await openStage();
    expect(() => engine.as({ actor: "" })).toThrow(/by.actor.*name the actor/);
    expect(() => engine.as("mia" as never)).toThrow(/by.*actor/);
    expect(() => engine.as({ actor: "mia", why: "x" } as never)).toThrow(/why/);
    expect(() => engine.as({ actor: "mia", reason: "x".repeat(501) })).toThrow(/by.reason.*500/);
    await expect(engine.queues.pause("mail", { actor: 7 as never })).rejects.toThrow(/by.actor/);
    await expect(engine.audit.read({ limit: 5_000 })).rejects.toThrow(/limit.*5000/);
    await expect(engine.audit.read({ after: "x" })).rejects.toThrow(/after.*"x"/);
    await expect(engine.audit.read({ actor: 1 as never })).rejects.toThrow(/actor/);
  });
});
