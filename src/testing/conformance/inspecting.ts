import assert from "node:assert/strict";
import type { JobId } from "../../core/job/job.ts";
import type { ScanFilter } from "../../ports/store.ts";
import { depthOf, jobsOf, logOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, idsOf, type TestBed, times } from "./test-bed.ts";

/** One job of each kind, by name. */
async function population(bed: TestBed): Promise<Record<string, JobId>> {
  const add = async (sketch: Parameters<TestBed["add"]>[0] = {}) => bed.add(sketch);
  const available = await add({ type: "special" });
  const scheduled = await add({ dueAt: bed.now + 1_000, queue: "other" });
  const pending = await add({ needs: 1 });
  const cancelled = await bed.write(await add({ queue: "other" }), { type: "cancel" }, { outsider: true });
  await add({ queue: "busy" });
  const active = await bed.claimOne({ queue: "busy" });
  const dead = await add({ totalAt: bed.now, options: { onExhausted: "dead-letter" } });
  await bed.write(dead, { type: "wake" }, { outsider: true });
  return {
    available: available.id,
    scheduled: scheduled.id,
    pending: pending.id,
    cancelled: cancelled.id,
    active: active.id,
    dead: dead.id,
  };
}

const listing: ConformanceCase[] = [
  {
    name: "jobs are filtered by queue, type, state and dead letter, live and finished alike",
    async run(bed) {
      const ids = await population(bed);
      const list = async (filter: ScanFilter) => idsOf(await jobsOf(bed.store, filter));
      const of = (...names: string[]) => names.map((name) => ids[name]).sort();
      assert.deepEqual(await list({}), Object.values(ids).sort());
      assert.deepEqual(await list({ queue: "other" }), of("scheduled", "cancelled"));
      assert.deepEqual(await list({ type: "special" }), of("available"));
      assert.deepEqual(await list({ state: "active" }), of("active"));
      assert.deepEqual(await list({ state: "cancelled" }), of("cancelled"));
      assert.deepEqual(await list({ deadLetter: true }), of("dead"));
      assert.deepEqual(await list({ deadLetter: false, queue: "default" }), of("available", "pending"));
      assert.deepEqual(await list({ queue: "other", state: "scheduled" }), of("scheduled"));
      assert.deepEqual(await list({ queue: "none" }), []);
    },
  },
  {
    name: "depths count every state, of each queue or of one",
    async run(bed) {
      await population(bed);
      const none = { scheduled: 0, available: 0, pending: 0, active: 0 };
      const ended = { retryable: 0, completed: 0, cancelled: 0, discarded: 0 };
      const all = { scheduled: 1, available: 1, pending: 1, active: 1, cancelled: 1, discarded: 1 };
      const other = { ...none, ...ended, scheduled: 1, cancelled: 1 };
      const { depths } = bed.store.inspect;
      assert.deepEqual(await depthOf(bed.store), { ...none, ...ended, ...all });
      assert.deepEqual([...(await depths()).keys()], ["busy", "default", "other"]);
      assert.deepEqual((await depths()).get("other"), other);
      assert.deepEqual([...(await depths("other"))], [["other", other]]);
      assert.deepEqual([...(await depths("unknown"))], []);
    },
  },
];

const history: ConformanceCase[] = [
  {
    name: "events come in the order of their commits, and a cursor continues where the page ended",
    async run(bed) {
      const empty = await bed.store.inspect.events(null, 10);
      assert.deepEqual(empty, { events: [], cursors: [], cursor: null });
      assert.deepEqual(await bed.store.inspect.latestEvents(10), empty);
      for (let event = 0; event < 10; event++) await bed.effect({ event }, { event: `${event}b` });
      const expected = times(10, (event) => [event, `${event}b`]).flat();
      const read: unknown[] = [];
      let cursor: string | null = null;
      for (;;) {
        const page = await bed.store.inspect.events(cursor, 3);
        if (page.events.length === 0) break;
        read.push(...page.events);
        cursor = page.cursor;
      }
      assert.deepEqual(read, expected);
      assert.deepEqual(await bed.store.inspect.events(cursor, 3), { events: [], cursors: [], cursor });
      assert.deepEqual((await bed.store.inspect.latestEvents(2)).events, read.slice(-2));
      assert.deepEqual((await bed.store.inspect.latestEvents(100)).events, read);
      await bed.effect({ event: "new" });
      assert.deepEqual((await bed.store.inspect.events(cursor, 3)).events, ["new"]);
    },
  },
  {
    name: "logs belong to their job, come in order and are deleted with it",
    async run(bed) {
      const [row, other] = [await bed.add(), await bed.add()];
      const lines = times(20, (line) => ({ line, text: "…" }));
      for (const log of lines) {
        await bed.effect({ log, job: row.id }, { log: "other", job: other.id });
      }
      assert.deepEqual(await logOf(bed.store, row.id), lines);
      assert.equal((await logOf(bed.store, other.id)).length, 20);
      assert.deepEqual(await logOf(bed.store, bed.nextId()), []);
      const { pruneAt } = await bed.write(row, { type: "cancel" }, { outsider: true });
      assert.deepEqual(await logOf(bed.store, row.id), lines);
      await bed.store.jobs.prune({ now: pruneAt ?? 0, eventsBefore: 0, limit: 10 });
      assert.deepEqual(await logOf(bed.store, row.id), []);
      const { job } = bed.unit(other, { type: "cancel" }, { outsider: true });
      assert.ok(job);
      assert.deepEqual(await bed.commit({ job: { ...job, drop: true } }), [{ ok: true }]);
      assert.deepEqual(await logOf(bed.store, other.id), []);
    },
  },
];

const pruning: ConformanceCase[] = [
  {
    name: "prune deletes finished jobs at their instant, at most its limit, and never a dead letter",
    async run(bed) {
      const ids = await population(bed);
      await bed.addMany(times(10, () => bed.job({ queue: "gone" })));
      const ended = await bed.claim({ queue: "gone" });
      for (const row of ended) await bed.write(row, { type: "cancel" }, { outsider: true });
      const pruneAt = found(await bed.load(ended[0]?.id as JobId)).pruneAt as number;
      const prune = (now: number, limit: number) => bed.store.jobs.prune({ now, eventsBefore: 0, limit });
      assert.equal(await prune(pruneAt - 1, 100), 0);
      assert.equal(await prune(pruneAt, 4), 4);
      assert.equal(await prune(pruneAt, 100), 7);
      assert.equal(await prune(pruneAt * 2, 100), 0);
      const left = idsOf(await jobsOf(bed.store));
      assert.deepEqual(
        left,
        Object.values(ids)
          .filter((id) => id !== ids.cancelled)
          .sort(),
      );
    },
  },
  {
    name: "prune deletes events that are older than an instant, by the time of their commits",
    async run(bed) {
      const { store, now } = bed;
      const event = (at: number) => store.commit([{ effects: [{ event: at - now }] }], { now: at });
      for (const at of [now, now + 1, now + 2, now + 3]) await event(at);
      await store.jobs.prune({ now, eventsBefore: now + 2, limit: 100 });
      assert.deepEqual((await store.inspect.events(null, 10)).events, [2, 3]);
    },
  },
];

export const inspecting: ConformanceSection = {
  name: "inspection and pruning",
  cases: [...listing, ...history, ...pruning],
};
