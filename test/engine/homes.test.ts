import { describe, expect, it } from "vitest";
import { z } from "zod";
import { cellOfId, homeOf } from "../../src/core/home/cell.ts";
import { chain, defineJob, processor, step } from "../../src/index.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openStage } from "./stage.ts";

const HOMES = 4;
const open = () => openStage({ store: (clock) => createMemoryStore({ clock, homes: HOMES }) });
const homeOfJob = (id: string) => homeOf(cellOfId(id), HOMES);
const order = z.object({ customer: z.string(), nth: z.number() });

describe("an engine on a store with four homes (ADR 33)", () => {
  it("spreads plain jobs, keeps limits and unique keys, and runs each job once", async () => {
    const stage = await open();
    const plain = defineJob({ type: "plain", payload: order });
    const limited = defineJob({
      type: "limited",
      payload: order,
      limit: { key: ({ customer }: { customer: string }) => customer, concurrency: 1 },
    });
    const unique = defineJob({ type: "unique", payload: order, unique: { payload: ["customer"] } });
    const ran: string[] = [];
    const running = new Map<string, number>();
    let most = 0;
    stage.work(
      [
        processor(plain, ({ id }) => void ran.push(id)),
        processor(unique, ({ id }) => void ran.push(id)),
        processor(limited, async ({ id, payload: { customer } }) => {
          running.set(customer, (running.get(customer) ?? 0) + 1);
          most = Math.max(most, running.get(customer) ?? 0);
          await new Promise<void>((resolve) => stage.system.after(50, resolve));
          running.set(customer, (running.get(customer) ?? 0) - 1);
          ran.push(id);
        }),
      ],
      { queues: { default: { concurrency: 20 } } },
    );
    const ids: string[] = [];
    for (let nth = 0; nth < 40; nth++) {
      const payload = { customer: `c${nth % 5}`, nth };
      ids.push((await stage.engine.enqueue(plain, payload)).id);
      ids.push((await stage.engine.enqueue(limited, payload)).id);
      await stage.advance("2ms");
    }
    const held = await Promise.all(
      Array.from({ length: 10 }, () =>
        stage.engine.enqueue(unique, { customer: "same", nth: 1 }, { delay: "1s" }),
      ),
    );
    expect(new Set(held.map(({ id }) => id)).size).toBe(1);
    ids.push((held[0] as { id: string }).id);
    await stage.advance("30s");
    expect(ran.toSorted()).toEqual(ids.toSorted());
    expect(most).toBe(1);
    expect(new Set(ids.map(homeOfJob)).size).toBe(HOMES);
  });

  it("enqueues what a due timeout carries, in the home of its unique key", async () => {
    const stage = await open();
    const unique = defineJob({ type: "unique", payload: order, unique: { payload: ["customer"] } });
    const ran: number[] = [];
    stage.work([processor(unique, ({ payload: { nth } }) => void ran.push(nth))]);
    for (let nth = 0; nth < 12; nth++)
      await stage.engine.timeouts.enqueue(
        unique,
        { customer: `c${nth}`, nth },
        { dueAt: { after: "1s" }, key: `k${nth}` },
      );
    await stage.advance("20s");
    expect(ran.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, nth) => nth));
  });

  it("wakes for what is due in any home at its instant: a job, a retry, a timeout", async () => {
    const stage = await open();
    const due = new Map<string, number>();
    const late: number[] = [];
    const plain = defineJob({ type: "plain", payload: order, retry: { attempts: 2 } });
    stage.work(
      [
        processor(plain, ({ id, attempt }) => {
          if (attempt === 1) late.push(stage.now() - (due.get(id) as number));
          else due.delete(id);
          if (attempt === 1) throw new Error("once more");
        }),
      ],
      { queues: { default: { concurrency: 20 } } },
    );
    const told: number[] = [];
    stage.engine.timeouts.serve("told", ({ dueAt }) => void told.push(stage.now() - dueAt));
    // Gaps that no interval of polling divides, so that only a wake-up of its home finds each in time.
    for (let nth = 1; nth <= 24; nth++) {
      const delay = nth * 1_237;
      const { id } = await stage.engine.enqueue(plain, { customer: "c", nth }, { delay: `${delay}ms` });
      due.set(id, stage.now() + delay);
      await stage.engine.timeouts.insert({
        destination: "told",
        dueAt: { after: `${delay + 411}ms` },
        key: `k${nth}`,
      });
      await stage.advance("2ms");
    }
    expect(new Set([...due.keys()].map(homeOfJob)).size).toBe(HOMES);
    await stage.advance("60s");
    expect(Math.max(...late)).toBeLessThan(10);
    expect(Math.max(...told)).toBeLessThan(10);
    expect([late.length, told.length, due.size]).toEqual([24, 24, 0]);
  });

  it("keeps the order of a strict queue, and a workflow in one home", async () => {
    const stage = await open();
    const plain = defineJob({ type: "plain", payload: order });
    const ran: number[] = [];
    await stage.engine.queues.configure("strict", { order: "strict" });
    stage.work([processor(plain, ({ payload: { nth } }) => void ran.push(nth))], {
      queues: { strict: { concurrency: 1 }, default: { concurrency: 2 } },
    });
    for (let nth = 0; nth < 20; nth++)
      await stage.engine.enqueue(plain, { customer: "c", nth }, { queue: "strict", delay: "1s" });
    await stage.advance("10s");
    expect(ran).toEqual(Array.from({ length: 20 }, (_, nth) => nth));
    const workflow = await stage.engine.workflows.start(
      chain([step(plain, { customer: "c", nth: 100 }), step(plain, { customer: "c", nth: 101 })]),
    );
    await stage.advance("60s");
    expect((await workflow.view())?.state).toBe("completed");
    expect(ran.slice(20)).toEqual([100, 101]);
  });

  it("refuses what would put a job into two homes, and names the reason", async () => {
    const stage = await open();
    const payload = { customer: "c", nth: 1 };
    const plain = defineJob({ type: "plain", payload: order });
    const limited = defineJob({ type: "limited", payload: order, limit: { key: "k", concurrency: 1 } });
    await stage.engine.queues.configure("counted", { concurrency: 2 });
    const refused = { code: "two_homes" };
    await expect(stage.engine.enqueue(limited, payload, { queue: "counted" })).rejects.toMatchObject(refused);
    await expect(stage.engine.workflows.start(chain([step(limited, payload)]))).rejects.toMatchObject(
      refused,
    );
    const unique = { key: "mine" };
    await expect(stage.engine.enqueue(plain, payload, { queue: "counted", unique })).rejects.toMatchObject(
      refused,
    );
    await expect(
      stage.engine.enqueue(plain, payload, { unique, limit: { key: "other", concurrency: 1 } }),
    ).rejects.toMatchObject(refused);
    const id = "01900000-0000-7000-8000-000000000000";
    await expect(stage.engine.enqueue(plain, payload, { id, unique })).rejects.toThrow(/options\.id/);
    expect((await stage.engine.enqueue(plain, payload, { id })).id).toBe(id);
  });
});
