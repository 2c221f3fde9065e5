import assert from "node:assert/strict";
import { type FairWeights, NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import {
  fairKeyOf,
  hasTurn,
  type LastTurns,
  NO_TURNS,
  type Turn,
  type Turns,
  turnAfter,
  turnsAfter,
} from "../../core/fair/turns.ts";
import { type JobRow, priorityRank, rankOf } from "../../core/job/job.ts";
import { claimedRow } from "../../core/job/store-formulas.ts";
import { seededRandom } from "../../core/random.ts";
import { pauseKey } from "../../ports/store.ts";
import { type ConformanceCase, type ConformanceSection, inOneHome } from "./kit.ts";
import { claimRequest, found, idsOf, QUEUE_HOME, type TestBed, times } from "./test-bed.ts";

const QUEUE = "default";
const EQUAL: FairWeights = { weights: new Map(), defaultWeight: 1 };

/** This turn was the last one in every priority. */
function lastTurn(turn: Turn): LastTurns {
  return new Map(times(201, (nth) => [rankOf(100 - nth, 0), turn]));
}

/** A claim goes on after this key. */
function after(key: string, weights: FairWeights = EQUAL): Turns {
  return { ...weights, last: lastTurn({ key, taken: 1_000 }) };
}

/** Adds jobs of fair keys, one for each character. */
async function add(bed: TestBed, keys: string): Promise<void> {
  await bed.addMany([...keys].map((fairKey) => bed.job({ fairKey })));
}

function keysOf(rows: readonly JobRow[]): string {
  return rows.map((row) => fairKeyOf(row) || "-").join("");
}

const turns: ConformanceCase[] = [
  {
    name: "a claim takes one job of each fair key in turn, however many one key has",
    async run(bed) {
      await add(bed, "aaaaaaaaaaaabbc");
      assert.equal(keysOf(await bed.claim({ limit: 7, turns: after("") })), "abcabaa");
      assert.equal(keysOf(await bed.claim({ limit: 100, turns: after("a") })), "aaaaaaaa");
      assert.deepEqual(await bed.claim({ limit: 100, turns: after("a") }), []);
    },
  },
  {
    name: "a key gives as many jobs in its turn as its weight, also over several claims",
    async run(bed) {
      await add(bed, `${"a".repeat(20)}${"b".repeat(20)}`);
      const weights = { weights: new Map([["a", 3]]), defaultWeight: 1 };
      assert.equal(keysOf(await bed.claim({ limit: 8, turns: after("b", weights) })), "aaabaaab");
      let last = lastTurn({ key: "b", taken: 1 });
      let claimed = "";
      for (let nth = 0; nth < 8; nth++) {
        const rows = await bed.claim({ limit: 1, turns: { ...weights, last } });
        claimed += keysOf(rows);
        last = turnsAfter(last, rows, weights);
      }
      assert.equal(claimed, "aaabaaab");
    },
  },
  {
    name: "keys with fewer jobs than their weight leave the rest to the keys after them",
    async run(bed) {
      await add(bed, `${"a".repeat(20)}bcdefgh`);
      const weights = { weights: new Map(), defaultWeight: 4, least: 4 };
      assert.equal(keysOf(await bed.claim({ limit: 12, turns: after("", weights) })), "aaaabcdefgha");
    },
  },
  {
    name: "the jobs of a key come in the order (rank, id), and those of a better priority before all others",
    async run(bed) {
      const low = bed.job({ fairKey: "a", priority: -1 });
      const [first, second] = [bed.job({ fairKey: "a" }), bed.job({ fairKey: "a" })];
      const other = bed.job({ fairKey: "b" });
      const urgent = bed.job({ fairKey: "b", priority: 7 });
      await bed.addMany([low, second, first, other, urgent]);
      const rows = await bed.claim({ limit: 10, turns: after("b") });
      assert.deepEqual(idsOf(rows), idsOf([urgent, first, other, second, low]));
    },
  },
  {
    name: "each priority has turns of its own: claims of a better one do not move on those of a worse one",
    async run(bed) {
      await add(bed, "aaaabbbb");
      let last = lastTurn({ key: "b", taken: 1 });
      let claimed = "";
      for (let nth = 0; nth < 4; nth++) {
        await bed.add({ fairKey: "c", priority: 5 });
        for (const limit of [1, 1]) {
          const rows = await bed.claim({ limit, turns: { ...EQUAL, last } });
          claimed += keysOf(rows);
          last = turnsAfter(last, rows, EQUAL);
        }
      }
      assert.equal(claimed, "cacbcacb");
      // In one claim, too.
      await bed.add({ fairKey: "c", priority: 5 });
      assert.equal(keysOf(await bed.claim({ limit: 3, turns: { ...EQUAL, last } })), "cab");
    },
  },
  {
    name: "a fair claim writes what a claim writes",
    async run(bed) {
      const job = await bed.add({ fairKey: "a", heartbeat: 500, totalAt: bed.now + 9_000 });
      assert.equal(job.fairKey, "a");
      const request = claimRequest(bed, { turns: after("") });
      const [row] = await bed.store.jobs.claim(request);
      assert.deepEqual(row, claimedRow(job, request));
      assert.deepEqual(await bed.load(job.id), row);
    },
  },
  {
    name: "a claim that had no turn yet begins anywhere",
    async run(bed) {
      await add(bed, "abcdefgh".repeat(20));
      const firsts = new Set<string>();
      for (let nth = 0; nth < 60; nth++)
        firsts.add(keysOf(await bed.claim({ limit: 1, turns: { ...EQUAL, last: NO_TURNS } })));
      assert.ok(firsts.size > 3, `60 new claimers began with ${[...firsts].join(", ")}`);
    },
  },
  {
    name: "without turns a claim takes jobs in the order (rank, id), with and without fair keys",
    async run(bed) {
      const jobs = ["a", undefined, "", "b", "a"].map((fairKey) =>
        bed.job(fairKey === undefined ? {} : { fairKey }),
      );
      await bed.addMany(jobs);
      assert.deepEqual(idsOf(await bed.claim({ limit: 10 })), idsOf(jobs));
      assert.deepEqual(await bed.claim({ limit: 10, turns: after("") }), []);
    },
  },
  {
    name: "jobs that were stored before their queue was fair have their turn as one key",
    async run(bed) {
      const old = times(3, () => bed.job());
      await bed.addMany(old);
      await add(bed, "aab");
      await bed.add({ fairKey: NO_FAIR_KEY });
      const rows = await bed.claim({ limit: 5, turns: after(NO_FAIR_KEY) });
      assert.equal(keysOf(rows), "ab-a-");
      const rest = await bed.claim({ limit: 10, turns: after("a") });
      assert.equal(rest.length, 2);
      assert.deepEqual(
        [...rows, ...rest].flatMap(({ fairKey, id }) => (fairKey === null ? [id] : [])),
        idsOf(old),
      );
    },
  },
];

const combined: ConformanceCase[] = [
  {
    name: "a paused queue gives none, and a concurrency limit of the queue holds",
    async run(bed) {
      await add(bed, "aaab");
      await bed.effect({ put: pauseKey(QUEUE), body: {}, wakeAt: null });
      assert.deepEqual(await bed.claim({ turns: after("") }), []);
      await bed.effect({ delete: pauseKey(QUEUE) });
      assert.equal(keysOf(await bed.claim({ most: 2, turns: after("") })), "ab");
      assert.deepEqual(await bed.claim({ most: 2, turns: after("") }), []);
      assert.equal(keysOf(await bed.claim({ most: 3, turns: after("") })), "a");
    },
  },
  {
    name: "a job keeps its fair key when it is released, delayed, ends and is revived",
    async run(bed) {
      await add(bed, "b");
      const delayed = await bed.add({ fairKey: "a", dueAt: bed.now + 1_000 });
      assert.equal(keysOf(await bed.claim({ turns: after("") })), "b");
      await bed.sweep(bed.now + 1_000);
      const [row] = await bed.claim({ turns: after("") });
      assert.equal(found(row).id, delayed.id);
      const released = await bed.write(found(row), { type: "release" });
      assert.equal(released.fairKey, "a");
      const [again] = await bed.claim({ turns: after("") });
      const error = { type: "Error", code: "handler_error", message: "no" };
      const running = await bed.start(found(again));
      const ended = await bed.write(running, { type: "fail", error, signalled: false, final: true });
      assert.equal(ended.fairKey, "a");
      const revived = await bed.write(ended, { type: "retry" }, { outsider: true });
      assert.equal(revived.fairKey, "a");
      assert.equal(keysOf(await bed.claim({ turns: after("") })), "a");
    },
  },
  {
    name: "keys may be any text, and thousands of them share a queue",
    async run(bed) {
      const odd = ["ä", "𝒳", "\uffee", "'; --", '{"a",NULL}', "NULL", " ", "a\\b"];
      const keys = [...odd, ...times(1_500, (nth) => `key-${nth % 750}`)];
      for (let from = 0; from < keys.length; from += 1_000)
        await bed.addMany(keys.slice(from, from + 1_000).map((fairKey) => bed.job({ fairKey })));
      const seen: string[] = [];
      for (let last = lastTurn({ key: "", taken: 1 }); seen.length < 758; ) {
        const rows = await bed.claim({ limit: 100, turns: { ...EQUAL, last } });
        assert.ok(rows.length > 0, "a claim must give jobs while there are some");
        for (const row of rows) seen.push(fairKeyOf(row));
        last = turnsAfter(last, rows, EQUAL);
      }
      assert.equal(new Set(seen.slice(0, 758)).size, 758);
    },
  },
  {
    name: "claims of several processes give each job once, and leave none",
    async run(bed) {
      const stores = await bed.handles(3);
      await bed.addMany(times(600, (nth) => bed.job({ fairKey: nth < 500 ? "a" : `b-${nth}` })));
      const claimed: string[] = [];
      for (let empty = 0; empty < 3; ) {
        const answers = await Promise.all(
          stores.map((store, nth) =>
            store.jobs.claim(
              claimRequest(bed, { limit: 40, worker: `worker-${nth}`, turns: { ...EQUAL, last: NO_TURNS } }),
            ),
          ),
        );
        for (const rows of answers) claimed.push(...idsOf(rows));
        empty = answers.every((rows) => rows.length === 0) ? empty + 1 : 0;
      }
      assert.equal(claimed.length, 600);
      assert.equal(new Set(claimed).size, 600);
    },
  },
];

/** What claims give, one job at a time. The stores must give the same in any number of claims. */
function model(waiting: JobRow[], weights: FairWeights, last: LastTurns, count: number): JobRow[] {
  const given: JobRow[] = [];
  const lasts = new Map(last);
  while (given.length < count && waiting.length > 0) {
    const best = Math.min(...waiting.map(({ rank }) => priorityRank(rank)));
    const now = waiting.filter(({ rank }) => priorityRank(rank) === best);
    const keys = [...new Set(now.map(fairKeyOf))].sort();
    const turn = lasts.get(best) as Turn;
    const isAgain = hasTurn(turn, weights) && keys.includes(turn.key);
    const key = isAgain ? turn.key : (keys.find((other) => other > turn.key) ?? (keys[0] as string));
    const [row] = now
      .filter((other) => fairKeyOf(other) === key)
      .sort((a, b) => a.rank - b.rank || (a.id < b.id ? -1 : 1));
    given.push(row as JobRow);
    waiting.splice(waiting.indexOf(row as JobRow), 1);
    lasts.set(best, turnAfter(turn, [row as JobRow], weights) as Turn);
  }
  return given;
}

const random: ConformanceCase[] = times(4, (nth) => ({
  name: `random keys, weights, priorities and claims follow the turns (${nth + 1})`,
  async run(bed) {
    const draw = seededRandom(nth);
    const upTo = (most: number) => Math.floor(draw() * (most + 1));
    const weights = {
      weights: new Map([
        ["a", 1 + upTo(4)],
        ["c", 1 + upTo(2)],
      ]),
      defaultWeight: 1 + upTo(1),
    };
    const waiting: JobRow[] = [];
    const least = Math.min(weights.defaultWeight, ...weights.weights.values());
    let last = lastTurn({ key: "b", taken: 1 });
    for (let round = 0; round < 12; round++) {
      const jobs = times(upTo(30), () =>
        bed.job({ fairKey: "abcdefg"[Math.floor(draw() ** 2 * 7)] as string, priority: upTo(1) }),
      );
      if (jobs.length > 0) await bed.addMany(jobs);
      for (const { id } of jobs) waiting.push(found(await bed.load(id)));
      const limit = 1 + upTo(24);
      const rows = await bed.claim({ limit, turns: { ...weights, least, last } });
      assert.deepEqual(idsOf(rows), idsOf(model(waiting, weights, last, limit)), `round ${round}`);
      last = turnsAfter(last, rows, weights);
    }
  },
}));

/** Fair queues: claims in turns (docs/guides/fair-queues.md). */
export const fair: ConformanceSection = {
  name: "fair queues",
  cases: inOneHome(QUEUE_HOME, [...turns, ...combined, ...random]),
};
