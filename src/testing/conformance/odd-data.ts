import assert from "node:assert/strict";
import {
  type ErrorRecord,
  JOB_STATES,
  type JobDocuments,
  type JobImage,
  type JobRow,
  rankOf,
} from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { type Random, randomInt } from "../../core/random.ts";
import type { Json } from "../../core/schema.ts";
import { logOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, idsOf, POLICY, type TestBed, times } from "./test-bed.ts";

const YEAR_3000 = 32_503_680_000_000;

/** Strings that have broken some store. */
const STRINGS = [
  "",
  "plain",
  "héllo wörld",
  "日本語 🎉 👩‍👩‍👧",
  "\u0000 in the middle \u0000",
  "lone \ud800 high and \udc00 low",
  "line\nbreak\ttab\r\u2028\u2029",
  "quote ' double \" back \\ slash $1 ? :name %s",
  "__proto__",
  "constructor",
  "null",
  "{}",
  "\ufeffbom",
];

const DEEP = JSON.parse(`${"[".repeat(500)}1${"]".repeat(500)}`) as Json;

const DOCUMENTS: readonly (readonly [name: string, value: Json])[] = [
  ["odd strings", STRINGS],
  ["odd strings as keys", Object.fromEntries(STRINGS.map((text, index) => [`${text} ${index}`, text]))],
  ["keys in their own order", { z: 1, a: 2, "10": 3, m: { y: 1, b: 2 }, aa: 4 }],
  ["numbers at the edge", [0, -0.5, 1e21, 5e-324, 2 ** 53 - 1, -(2 ** 53) + 1, 0.1]],
  ["500 levels", DEEP],
  ["empty things", [[], {}, "", null, false]],
];

const documents = DOCUMENTS.map(
  ([name, value]): ConformanceCase => ({
    name: `${name} come back as they went in`,
    run: (bed) => roundTrip(bed, value),
  }),
);

/** Compares the JSON texts too: equal objects may differ in the order of their keys. */
function assertSame(actual: unknown, value: Json): void {
  assert.deepEqual(actual, value);
  assert.equal(JSON.stringify(actual), JSON.stringify(value));
}

async function roundTrip(bed: TestBed, value: Json): Promise<void> {
  const text = JSON.stringify(value);
  const { id, fence } = await bed.add({ payload: text, options: { meta: { value }, wire: { value } } });
  const errors: ErrorRecord[] = [
    {
      type: "Error",
      code: "handler_error",
      message: STRINGS.join(),
      attempt: 1,
      at: bed.now,
      details: value,
    },
  ];
  const documents = { errors, progress: text, checkpoint: text, result: text };
  const effects = [
    { put: ["kit", "odd"] as const, body: value, wakeAt: null },
    { event: value },
    { log: value, job: id },
  ];
  assert.deepEqual(await bed.commit({ job: { id, fence, documents }, effects }), [{ ok: true }]);
  const check = async () => {
    const row = found(await bed.load(id));
    for (const stored of [row.payload, row.progress, row.checkpoint, row.result]) assert.equal(stored, text);
    assertSame(row.options, { meta: { value }, wire: { value } });
    assertSame(row.errors, errors as unknown as Json);
  };
  await check();
  const [record] = await bed.store.records.load([["kit", "odd"]]);
  assertSame(record?.body, value);
  assertSame((await bed.store.inspect.events(null, 1)).events[0], value);
  assertSame((await logOf(bed.store, id))[0], value);
  await bed.write(found(await bed.load(id)), { type: "cancel" }, { outsider: true });
  await check();
}

const extremes: ConformanceCase[] = [
  {
    name: "a payload of 1 MB comes back as it went in",
    async run(bed) {
      const payload = JSON.stringify("ü🎉x".repeat(120_000));
      const { id } = await bed.add({ payload });
      assert.equal((await bed.claimOne()).payload, payload);
      assert.equal((await bed.load(id))?.payload, payload);
    },
  },
  { name: "large documents by the dozen come back as they went in", timeout: 60_000, run: largeDocuments },
  {
    name: "a unique key, limit key, workflow or key of a record longer than 512 characters is refused, and nothing written",
    run: refusesLongNames,
  },
  {
    name: "names of 255 characters, and names that differ only in case or accents, stay apart",
    async run(bed) {
      const names = ["x".repeat(255), `${"x".repeat(254)}y`, "ü🎉".repeat(85), "queue", "Queue", "queué"];
      for (const name of names) {
        const sketch = {
          queue: name,
          type: name,
          limitKey: name,
          fairKey: name,
          workflow: name,
          uniqueKey: name,
        };
        const row = await bed.add(sketch);
        assert.deepEqual(
          [row.queue, row.type, row.limitKey, row.fairKey, row.workflow],
          [name, name, name, name, name],
        );
        await bed.effect({ admit: name, count: 1 });
        const claimed = await bed.claimOne({ queue: name, worker: name });
        assert.deepEqual([claimed.id, claimed.worker], [row.id, name]);
      }
    },
  },
  {
    name: "instants in the year 3000 and the lowest priorities keep their order",
    async run(bed) {
      const sketches = [
        { priority: -100, dueAt: YEAR_3000 },
        { priority: -100, dueAt: YEAR_3000 - 1 },
        { priority: 100, dueAt: YEAR_3000 },
      ];
      const [last, second, first] = sketches.map((sketch) => bed.job(sketch));
      assert(first && second && last);
      await bed.addMany([last, second, first]);
      assert.equal((await bed.sweep()).nextWakeAt, YEAR_3000 - 1);
      assert.deepEqual([...(await bed.sweep(YEAR_3000)).ready], [["default", 3]]);
      const rows = await bed.claim({ now: YEAR_3000 });
      assert.deepEqual(idsOf(rows), idsOf([first, second, last]));
      assert.equal(rows[2]?.rank, rankOf(-100, YEAR_3000));
      assert.equal(rows[2]?.claimedAt, YEAR_3000);
    },
  },
  { name: "every field of 300 random rows comes back as it went in", timeout: 60_000, run: randomRows },
];

/** Far more than one statement should carry. The answers must come anyway, in order. */
async function largeDocuments(bed: TestBed): Promise<void> {
  const payloadOf = (index: number) => JSON.stringify(`${index} ${"x".repeat(500_000)}`);
  const jobs = times(12, (index) => bed.job({ payload: payloadOf(index), dueAt: bed.now + 1 }));
  await bed.addMany(jobs);
  assert.deepEqual([...(await bed.sweep(bed.now + 1)).ready], [["default", 12]]);
  const rows = await bed.claim({ limit: 12 });
  assert.deepEqual(idsOf(rows), idsOf(jobs));
  const units = rows.map((row) => bed.unit(row, { type: "start", policy: POLICY, upper: bed.now }));
  const lost = { job: { id: found(rows[5]).id, fence: 1 } };
  const outcomes = await bed.commit(...units.slice(0, 6), lost, ...units.slice(6));
  assert.deepEqual(
    outcomes.map(({ ok }) => ok),
    times(13, (index) => index !== 6),
  );
  const results = (await bed.store.jobs.load(idsOf(jobs))).map((row, index) => {
    assert.equal(found(row).payload, payloadOf(index));
    return bed.unit(found(row), { type: "succeed", signalled: false, result: payloadOf(index + 50) });
  });
  assert((await bed.commit(...results)).every(({ ok }) => ok));
  const ended = await bed.store.jobs.load(idsOf(jobs));
  for (const [index, row] of ended.entries()) assert.equal(row?.result, payloadOf(index + 50));
  const pruneAt = Math.max(...ended.map((row) => found(row).pruneAt ?? 0));
  assert.equal(await bed.store.jobs.prune({ now: pruneAt, eventsBefore: 0, limit: 100 }), 12);
}

async function refusesLongNames(bed: TestBed): Promise<void> {
  const [longest, tooLong] = ["é".repeat(512), "é".repeat(513)];
  await bed.add({ uniqueKey: longest, workflow: longest });
  await bed.effect({ put: [longest, longest], body: 1, wakeAt: null });
  for (const sketch of [
    { uniqueKey: tooLong },
    { limitKey: tooLong },
    { fairKey: tooLong },
    { workflow: tooLong },
  ]) {
    const jobs = [bed.job(), bed.job(sketch)];
    await assert.rejects(bed.store.jobs.enqueue(jobs, { now: bed.now }), { code: "too_large" });
    const effects = jobs.map((enqueue) => ({ enqueue }));
    await assert.rejects(bed.effect(...effects), { code: "too_large" });
    assert.deepEqual(await bed.store.jobs.load(idsOf(jobs)), [null, null]);
  }
  for (const key of [["kit", tooLong] as const, [tooLong, "kit"] as const]) {
    await assert.rejects(bed.effect({ put: key, body: 1, wakeAt: null }), { code: "too_large" });
    await assert.rejects(bed.commit({ when: [{ record: key, version: 0 }] }), { code: "too_large" });
  }
}

async function randomRows(bed: TestBed): Promise<void> {
  for (const row of await addRandom(bed, 300)) {
    const image = randomImage(bed, row.priority);
    const { random } = bed;
    const documents = randomDocuments(random);
    const nextFence = randomInt(random, 2 ** 53);
    const job = { id: row.id, fence: row.fence, rev: row.rev, image, documents, nextFence };
    assert.deepEqual(await bed.commit({ job }), [{ ok: true }]);
    const expected: JobRow = { ...row, ...image, ...documents, fence: nextFence, rev: row.rev + 1 };
    assert.deepEqual(await bed.load(row.id), expected);
  }
}

async function addRandom(bed: TestBed, count: number): Promise<JobRow[]> {
  const jobs = times(count, () =>
    bed.job({
      priority: randomInt(bed.random, 201) - 100,
      dueAt: bed.now + randomInt(bed.random, 1_000_000),
      ...(bed.random() < 0.3 && { needs: randomInt(bed.random, 10_000) }),
      ...(bed.random() < 0.3 && { workflow: bed.nextId() }),
      ...(bed.random() < 0.3 && { limitKey: `key ${randomInt(bed.random, 5)}` }),
      ...(bed.random() < 0.3 && { fairKey: `fair ${randomInt(bed.random, 5)}` }),
      payload: JSON.stringify(STRINGS[randomInt(bed.random, STRINGS.length)]),
    }),
  );
  await bed.addMany(jobs);
  const rows = await bed.store.jobs.load(idsOf(jobs));
  for (const [index, job] of jobs.entries()) {
    const {
      hasNewId: _hasNewId,
      image,
      needs = 0,
      limitKey = null,
      fairKey = null,
      workflow = null,
      ...said
    } = job;
    const unwritten = { policy: null, errors: null, progress: null, checkpoint: null, result: null };
    const unclaimed = { fence: 0, rev: 0, claimedAt: null, worker: null };
    assert.deepEqual(rows[index], {
      ...said,
      ...image,
      ...unwritten,
      ...unclaimed,
      needs,
      limitKey,
      fairKey,
      workflow,
    });
  }
  return rows.map(found);
}

const STATES = JOB_STATES.filter((state) => state !== "cancelled");

function randomImage({ random, now }: TestBed, priority: number): JobImage {
  const maybe = () => (random() < 0.5 ? null : now + randomInt(random, 10 ** 12));
  const state = STATES[randomInt(random, STATES.length)] as JobImage["state"];
  const hasEnded = isTerminal(state);
  return {
    state,
    wake: !hasEnded && random() < 0.5 ? "ready" : "decide",
    wakeAt: hasEnded ? null : maybe(),
    rank: rankOf(priority, now + randomInt(random, 10 ** 12)),
    attempt: randomInt(random, 30_000),
    returns: randomInt(random, 1_000),
    expiredClaims: randomInt(random, 1_000),
    waitAt: maybe(),
    totalAt: maybe(),
    startedAt: maybe(),
    softAt: maybe(),
    hardAt: maybe(),
    stallAt: maybe(),
    heartbeat: random() < 0.5 ? null : randomInt(random, 315_360_000_000),
    finishedAt: hasEnded ? now + randomInt(random, 10 ** 12) : null,
    pruneAt: hasEnded ? maybe() : null,
    deadLetter: hasEnded && random() < 0.5,
  };
}

function randomDocuments(random: Random): JobDocuments {
  const text = () => (random() < 0.3 ? null : JSON.stringify(STRINGS[randomInt(random, STRINGS.length)]));
  return {
    ...(random() < 0.5 && { options: random() < 0.3 ? null : { meta: { odd: STRINGS }, total: 5 } }),
    ...(random() < 0.5 && { policy: random() < 0.3 ? null : POLICY }),
    ...(random() < 0.5 && { errors: null }),
    ...(random() < 0.5 && { progress: text() }),
    ...(random() < 0.5 && { checkpoint: text() }),
    ...(random() < 0.5 && { result: text() }),
  };
}

export const oddData: ConformanceSection = { name: "odd data", cases: [...documents, ...extremes] };
