import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../src/core/event/stored-event.ts";
import type { JobRow } from "../../src/core/job/job.ts";
import type { Json } from "../../src/core/schema.ts";
import { eventsAround } from "../../src/engine/events/events-around.ts";
import { rowOf as storedRow } from "../../src/testing/read-store.ts";
import { jobWith, openStage } from "./stage.ts";

/** The events of one job beside many of others. */

const EVERY = 10;
const MANY = 200_000;
const START = 1_000_000;

/** An event each 10 ms. That of the job comes at the places that are named. */
function journalOf(cursorOf: (nth: number) => readonly number[], own: readonly number[]) {
  const events = Array.from({ length: MANY }, (_, nth): StoredEvent => {
    const job = own.includes(nth) ? "own" : "other";
    return { name: "job.progress", at: START + nth * EVERY, job } as StoredEvent;
  });
  const cursors = events.map((_, nth) => cursorOf(nth));
  let calls = 0;
  const isAfter = (one: readonly number[], other: readonly number[]) => {
    const place = one.findIndex((part, index) => part !== other[index]);
    return place >= 0 && (one[place] as number) > (other[place] as number);
  };
  return {
    calls: () => calls,
    async events(after: string | null, limit: number) {
      calls += 1;
      const parts = after?.split(".").map(Number) ?? [];
      let low = 0;
      let high = MANY;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (parts.length > 0 && !isAfter(cursors[middle] as number[], parts)) low = middle + 1;
        else high = middle;
      }
      const page = events.slice(low, low + limit) as unknown as Json[];
      const texts = cursors.slice(low, low + limit).map((each) => each.join("."));
      return { events: page, cursors: texts, cursor: texts.at(-1) ?? after };
    },
  };
}

const rowOf = (created: number, failed: number, ended: number) =>
  ({
    id: "own",
    createdAt: START + created * EVERY,
    startedAt: null,
    finishedAt: START + ended * EVERY,
    errors: [{ at: START + failed * EVERY, elapsed: 30 }],
  }) as unknown as JobRow;

describe("older events of a job", () => {
  it.each([
    ["SQLite", (nth: number) => [7 + nth * 3]],
    ["PostgreSQL", (nth: number) => [900 + Math.floor(nth / 4), nth]],
    ["a restored PostgreSQL", (nth: number) => (nth < 1_000 ? [1, 5, nth] : [1, 5 + nth, nth])],
    ["Redis", (nth: number) => [START + nth * EVERY, 0]],
  ])("are found around the instants that it remembers, by cursors of %s", async (_store, cursorOf) => {
    const own = [40_000, 40_002, 110_000, 150_000, 150_001];
    const journal = journalOf(cursorOf, own);
    const begins = { cursor: cursorOf(MANY - 5_000).join("."), at: START + (MANY - 5_000) * EVERY };
    const { events, scanned } = await eventsAround(journal, rowOf(40_000, 110_000, 150_000), begins);
    expect(events.map(({ cursor }) => cursor)).toEqual(own.map((nth) => cursorOf(nth).join(".")));
    // 3 instants, of which each has 50 events before it and after it, in pages of 500.
    expect(scanned).toBeLessThan(3_000);
    expect(journal.calls()).toBeLessThan(150);
  });

  it("stops after 20,000 events, however many instants a job remembers", async () => {
    const journal = journalOf((nth) => [nth + 1], []);
    const row = {
      ...rowOf(10, 20, 30),
      errors: Array.from({ length: 100 }, (_, nth) => ({ at: START + nth * 1_000 * EVERY })),
    } as unknown as JobRow;
    const begins = { cursor: String(MANY), at: START + MANY * EVERY };
    const { scanned } = await eventsAround(journal, row, begins);
    expect(scanned).toBeGreaterThan(10_000);
    expect(scanned).toBeLessThanOrEqual(20_500);
  });

  it("come before the newest ones, and the page says whether everything was searched", async () => {
    const stage = await openStage({ events: "durable" });
    const { definition, processors } = jobWith(() => 1);
    stage.work(processors);
    const { id } = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    const rowOfJob = async () => (await storedRow(stage.engine.store, id)) as JobRow;
    const whole = await stage.engine.journal.ofJob(await rowOfJob());
    expect(whole.before).toBeNull();
    const names = whole.events.map(({ name }) => name);
    expect(names).toEqual(["job.enqueued", "job.started", "job.completed"]);
    for (let nth = 0; nth < 3; nth++) {
      await stage.engine.enqueueMany(
        definition,
        Array.from({ length: 1_000 }, () => null),
      );
      await stage.advance("10m");
    }
    const page = await stage.engine.journal.ofJob(await rowOfJob());
    expect(page.events.map(({ name }) => name)).toEqual(names);
    expect(page.before).not.toBeNull();
    expect((await stage.engine.journal.latest({ job: id })).events).toEqual([]);
  });
});
