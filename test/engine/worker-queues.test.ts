import { describe, expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { deaf, openStage } from "./stage.ts";

/** A logger that keeps its warnings. */
function warnings() {
  const said: { fields: Record<string, unknown>; text: string }[] = [];
  const logger = {
    ...silentLogger,
    warn: (fields: object, text: string) => void said.push({ fields: { ...fields }, text }),
  };
  const about = (word: string) => said.filter(({ text }) => text.includes(word)).map(({ fields }) => fields);
  return { logger, about };
}

const mail = defineJob({ type: "mail.send", queue: "mail" });
const card = defineJob({ type: "card.charge", queue: "payments" });

describe("the name of a worker", () => {
  it("begins its id, and two workers of one name have two ids", async () => {
    const { engine, work, advance } = await openStage();
    const processors = [processor(mail, () => {})];
    const ids = [work(processors, { name: "shop" }).id, work(processors, { name: "shop" }).id];
    for (const id of ids) expect(id).toMatch(/^shop-[0-9a-f]{12}$/);
    expect(new Set(ids).size).toBe(2);
    const { id } = await engine.enqueue(mail);
    await advance("11s");
    expect((await engine.load(id))?.state).toBe("completed");
    const listed = (await engine.service.workers.list()).map((worker) => worker.id);
    expect(listed.sort()).toEqual(ids.sort());
  });

  it("has 1 to 32 plain characters", async () => {
    const { work } = await openStage();
    for (const name of ["", "remote:x", "a b", "x".repeat(33), 7 as never])
      expect(() => work([processor(mail, () => {})], { name })).toThrow(/work\.name/);
  });
});

describe("the queues of a worker", () => {
  it("are those of its processors' definitions, if none is named", async () => {
    const { engine, work, settle } = await openStage();
    const worker = work([processor(mail, () => {}), processor(card, () => {})]);
    expect(worker.queues).toEqual(["mail", "payments"]);
    const handle = await engine.enqueue(card);
    await settle();
    expect((await engine.load(handle.id))?.state).toBe("completed");
  });

  it("are those that are named, and no others", async () => {
    const { work } = await openStage();
    const worker = work([processor(mail, () => {})], { queues: { other: { concurrency: 1 } } });
    expect(worker.queues).toEqual(["other"]);
  });

  it("cause one warning if no definition names them, with a name that may be meant", async () => {
    const { logger, about } = warnings();
    const { work, settle } = await openStage({ logger });
    const queues = { mail: { concurrency: 1 }, payment: { concurrency: 1 } };
    const processors = [processor(mail, () => {}), processor(card, () => {})];
    work(processors, { queues });
    work(processors, { queues });
    await settle();
    work(processors, { queues });
    await settle();
    expect(about("no definition of its processors names it")).toEqual([
      { queue: "payment", didYouMean: "payments" },
    ]);
    expect(about("no worker of this process takes the queue of this definition")).toEqual([
      { type: "card.charge", queue: "payments", didYouMean: "payment" },
    ]);
  });

  it("are checked together if their workers start together", async () => {
    const { logger, about } = warnings();
    const { work, settle } = await openStage({ logger });
    const processors = [processor(mail, () => {}), processor(card, () => {})];
    work(processors, { queues: { mail: { concurrency: 1 } } });
    work(processors, { queues: { payments: { concurrency: 1 } } });
    await settle();
    expect(about("queue")).toEqual([]);
  });
});

describe("a queue that no live worker takes", () => {
  it("is listed while it has available jobs", async () => {
    const { engine, work, settle } = await openStage();
    expect(await engine.queues.unattended()).toEqual([]);
    await engine.enqueueMany(mail, [null, null], { queue: "mials" });
    await engine.enqueue(card, null, { delay: "1h" });
    const listed = { queue: "mials", waiting: 2, hasMore: false };
    expect(await engine.queues.unattended()).toEqual([{ ...listed, didYouMean: null }]);
    work([processor(mail, () => {})]);
    await settle();
    expect(await engine.queues.unattended()).toEqual([{ ...listed, didYouMean: "mail" }]);
    work([processor(mail, () => {})], { queues: { mials: { concurrency: 1 } } });
    await settle();
    expect(await engine.queues.unattended()).toEqual([]);
  });

  it("has its enqueues counted and causes one warning", async () => {
    const { logger, about } = warnings();
    const { engine, work, advance } = await openStage({ logger });
    work([processor(mail, deaf)]);
    await engine.enqueue(mail);
    await engine.enqueueMany(card, [null, null]);
    await advance("6m");
    await engine.enqueue(card);
    await advance("6m");
    expect(engine.counters().unattended).toEqual([{ queue: "payments", count: 3 }]);
    expect(about("no live worker takes")).toEqual([{ queue: "payments", count: 2 }]);
    await advance("30m");
    expect(engine.counters().unattended).toEqual([{ queue: "payments", count: 3 }]);
  });
});

describe("explain", () => {
  it("warns if no live worker takes the queue", async () => {
    const { engine, work, settle } = await openStage();
    const handle = await engine.enqueue(mail, null, { delay: "1h" });
    const unattended = 'no live worker takes queue "mail": the job waits until one does';
    expect((await engine.explain(handle.id)).warnings).toContain(unattended);
    work([processor(mail, () => {})]);
    await settle();
    expect((await engine.explain(handle.id)).warnings).not.toContain(unattended);
  });

  it("warns about each field in which the worker's definition differs", async () => {
    const { engine, work, settle } = await openStage();
    const timeouts = { attempt: "1m", total: "1h" } as const;
    const ours = defineJob({ type: "mail.send", queue: "mail", timeouts });
    const theirs = defineJob({
      type: "mail.send",
      queue: "post",
      timeouts: { attempt: "5m", total: "1h" },
      retry: { attempts: 7 },
    });
    const queues = { mail: { concurrency: 1 } };
    const first = work([processor(theirs, () => {})], { queues });
    work([processor(theirs, () => {})], { queues });
    const handle = await engine.enqueue(ours, null, { delay: "30m" });
    await settle();
    const { warnings: said } = await engine.explain(handle.id, ours);
    const worker = `that of worker ${first.id} says`;
    expect(said.filter((text) => text.includes("definition says"))).toEqual([
      `queue: the producer's definition says mail, ${worker} post; the producer's holds`,
      `attempt: the producer's definition says 60s, ${worker} 5m; the worker's holds`,
      `attempts: the producer's definition says nothing, ${worker} 7; the worker's holds`,
    ]);
    expect((await engine.explain(handle.id, theirs)).warnings).toEqual([]);
  });

  it("knows without a definition what the producer fixed at enqueue", async () => {
    const { engine, work, settle } = await openStage();
    const ours = defineJob({ type: "mail.send", timeouts: { total: "1h" } });
    const theirs = defineJob({ type: "mail.send", timeouts: { total: "2h" } });
    const worker = work([processor(theirs, () => {})]);
    const handle = await engine.enqueue(ours, null, { delay: "30m" });
    await settle();
    expect((await engine.explain(handle.id)).warnings).toEqual([
      `total: the producer's definition says 1h, that of worker ${worker.id} says 2h; the producer's holds`,
    ]);
  });
});

describe("what a worker writes with its beat", () => {
  it("leaves out processors if there are too many, and sources if they are too long", async () => {
    const { engine, work, settle } = await openStage();
    const many = (count: number, settings: object) =>
      Array.from({ length: count }, (_, index) =>
        processor(defineJob({ type: `job.a${index}`, ...settings }), () => {}),
      );
    const bodyOf = async (count: number, settings: object = {}) => {
      const worker = work(many(count, settings));
      await settle();
      const [record] = await engine.store.records.load([["worker", worker.id]]);
      return record?.body as { processors?: unknown[] };
    };
    expect((await bodyOf(201)).processors).toBeUndefined();
    expect((await bodyOf(2)).processors).toEqual([
      ["job.a0", "default"],
      ["job.a1", "default"],
    ]);
    const settings = { timeouts: { attempt: "1m", total: "1h", wait: "1m" } };
    expect((await bodyOf(1, settings)).processors).toEqual([
      ["job.a0", "default", { timeouts: { attempt: 60_000, total: 3_600_000, wait: 60_000 } }],
    ]);
    const long = await bodyOf(200, settings);
    expect(long.processors?.[0]).toEqual(["job.a0", "default", null]);
    expect(JSON.stringify(long).length).toBeLessThan(8_000);
  });
});
