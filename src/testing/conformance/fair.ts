import assert from "node:assert/strict";
import { type FairWeights, fairKeyOf, NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import { Rounds } from "../../core/fair/round.ts";
import {
  hasTurn,
  type LastTurns,
  NO_TURNS,
  type Turn,
  type Turns,
  turnAfter,
  turnsAfter,
} from "../../core/fair/turns.ts";
import { claimedRow } from "../../core/job/decide/store-formulas.ts";
import { type JobRow, priorityRank, rankOf } from "../../core/job/job.ts";
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

/** Claims of a busy queue, in which at most `most` jobs start in a round. */
function inRounds(most: number, weights: FairWeights = EQUAL): Turns {
  const rounds = new Rounds();
  rounds.most = most;
  return { ...weights, last: NO_TURNS, rounds };
}

const rounds: ConformanceCase[] = [
  {
    name: "in a busy queue each key gives its part of a round, however many jobs of another are before it",
    async run(bed) {
      await add(bed, `${"a".repeat(100)}${"b".repeat(30)}${"c".repeat(3)}`);
      const weights = { weights: new Map([["b", 2]]), defaultWeight: 1 };
      // Four times the weights.
      const turns = inRounds(16, weights);
      assert.equal(sortedKeys(await bed.claim({ limit: 10, turns })).length, 10);
      const first = sortedKeys(await bed.claim({ limit: 5, turns }));
      assert.equal(first.length, 5);
      // A key without jobs leaves its part to nobody.
      assert.match(sortedKeys(await bed.claim({ limit: 14, turns })), /^a{5,9}b{5,9}$/);
    },
  },
  {
    name: "a better priority goes before the rest of a round, and a pause holds",
    async run(bed) {
      await add(bed, `${"a".repeat(40)}bbbb`);
      const turns = inRounds(8);
      assert.equal(sortedKeys(await bed.claim({ limit: 3, turns })), "aaa");
      await bed.add({ fairKey: "u", priority: 5 });
      assert.match(keysOf(await bed.claim({ limit: 4, turns })), /^u/);
      // The rest of this round is taken from its keys.
      await bed.claim({ limit: 3, turns });
      await bed.add({ fairKey: "u", priority: 5 });
      assert.match(keysOf(await bed.claim({ limit: 2, turns })), /^u/);
      await bed.effect({ put: pauseKey(QUEUE), body: {}, wakeAt: null });
      assert.deepEqual(await bed.claim({ limit: 2, turns }), []);
    },
  },
  {
    name: "a concurrency limit of the queue holds in a round, and jobs of no key have a part",
    async run(bed) {
      await bed.addMany(times(30, () => bed.job()));
      await add(bed, "a".repeat(30));
      const turns = inRounds(8);
      assert.equal(sortedKeys(await bed.claim({ limit: 50, most: 8, turns })), "----aaaa");
      assert.deepEqual(await bed.claim({ limit: 50, most: 8, turns }), []);
      assert.equal((await bed.claim({ limit: 50, most: 11, turns })).length, 3);
    },
  },
  {
    name: "claims of several processes in rounds give each job once, and leave none",
    async run(bed) {
      const stores = await bed.handles(3);
      const turns = stores.map(() => inRounds(60));
      await bed.addMany(times(600, (nth) => bed.job({ fairKey: nth < 400 ? "a" : `b-${nth % 50}` })));
      const claimed: string[] = [];
      for (let empty = 0; empty < 3; ) {
        const answers = await Promise.all(
          stores.map((store, nth) =>
            store.jobs.claim(
              claimRequest(bed, { limit: 40, worker: `worker-${nth}`, turns: turns[nth] as Turns }),
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
  ...times(4, (nth) => ({
    name: `in random rounds no key is passed over, and each gives its jobs in order (${nth + 1})`,
    run: (bed: TestBed) => randomRounds(bed, nth),
  })),
];

function sortedKeys(rows: readonly JobRow[]): string {
  return [...keysOf(rows)].sort().join("");
}

async function randomRounds(bed: TestBed, seed: number): Promise<void> {
  const draw = seededRandom(seed);
  const upTo = (most: number) => Math.floor(draw() * (most + 1));
  const most = 10 + upTo(60);
  const turns = inRounds(most, { weights: new Map([["a", 1 + upTo(4)]]), defaultWeight: 1 });
  // A round that a key has just missed, and the next one. Jobs of one claim are in no order.
  const longest = 2 * (most + 11) + 24;
  const waiting: JobRow[] = [];
  const passed = new Map<string, number>();
  for (let nth = 0; nth < 16 || waiting.length > 0; nth++) {
    const isBlock = draw() < 0.5;
    const fairKey = () => "abcdefg"[Math.floor(draw() ** 2 * 7)] as string;
    const ofBlock = fairKey();
    const count = nth < 16 ? upTo(40) : 0;
    const jobs = times(count, () =>
      bed.job({ fairKey: isBlock ? ofBlock : fairKey(), priority: upTo(9) === 0 ? 1 : 0 }),
    );
    if (jobs.length > 0) await bed.addMany(jobs);
    for (const { id } of jobs) waiting.push(found(await bed.load(id)));
    const limit = 1 + upTo(24);
    const rows = await bed.claim({ limit, turns });
    assert.equal(rows.length, Math.min(limit, waiting.length), `claim ${nth}`);
    for (const row of rows) {
      const best = Math.min(...waiting.map(({ rank }) => priorityRank(rank)));
      assert.equal(priorityRank(row.rank), best, "the best priority goes first");
      const same = waiting.filter(({ rank }) => priorityRank(rank) === best);
      const own = same.filter((other) => fairKeyOf(other) === fairKeyOf(row));
      const [first] = own.sort((a, b) => a.rank - b.rank || (a.id < b.id ? -1 : 1));
      assert.equal(row.id, found(first).id, "the jobs of a key are in order");
      waiting.splice(
        waiting.findIndex(({ id }) => id === row.id),
        1,
      );
      for (const key of new Set(same.map((other) => `${best} ${fairKeyOf(other)}`)))
        passed.set(key, (passed.get(key) ?? 0) + 1);
      for (const key of passed.keys())
        if (!waiting.some((other) => `${priorityRank(other.rank)} ${fairKeyOf(other)}` === key))
          passed.delete(key);
      passed.delete(`${best} ${fairKeyOf(row)}`);
      const longestPassed = Math.max(0, ...passed.values());
      assert.ok(longestPassed <= longest, `a key that waited was passed over ${longestPassed} times`);
    }
  }
}

/** Fair queues: claims in turns (docs/guides/fair-queues.md). */
export const fair: ConformanceSection = {
  name: "fair queues",
  cases: inOneHome(QUEUE_HOME, [...turns, ...combined, ...random, ...rounds]),
};
