import { describe, expect, it } from "vitest";
import { adaptive, defineJob, processor } from "../../src/index.ts";
import { openPair, openStage, START, type Stage } from "./stage.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const options = { floor: "100ms", ceiling: "10s", samples: 20, step: 2, window: "6h" } as const;
const report = defineJob({
  type: "report",
  timeouts: { attempt: adaptive(options), grace: "1s" },
  retry: { attempts: 2, backoff: { kind: "constant", first: 1_000, max: 1_000, jitter: false } },
});

/** Jobs take as long as their payload says, unless the signal ends them. */
const handler = (stage: Stage) =>
  processor(report, async ({ payload, signal }) => {
    await stage.sleep((payload as { run: number }).run);
    signal.throwIfAborted();
  });

async function enqueueMany(stage: Stage, count: number, run: number) {
  for (let job = 0; job < count; job++) await stage.engine.enqueue(report, { run });
}

async function limitOf(stage: Stage, run = 1) {
  const job = await stage.engine.enqueue(report, { run });
  await stage.advance({ milliseconds: run + 3_000 });
  return (await stage.engine.store.jobs.load([job.id]))[0]?.policy;
}

/** The hour at which the stage begins, so that periods end where the tests say. */
const toNextHour = (stage: Stage) => stage.advance({ milliseconds: HOUR - (stage.now() % HOUR) });

it("a period of a minute has a step each minute, also where an idle engine polls seldom", async () => {
  const stage = await openStage();
  const rule = adaptive({ floor: "100ms", ceiling: "10s", samples: 20, every: "1m", window: "1h" });
  const often = defineJob({ type: "often", timeouts: { attempt: rule } });
  stage.work([processor(often, () => stage.sleep(50))]);
  await stage.engine.enqueueMany(often, Array.from({ length: 30 }));
  const limits: unknown[] = [];
  await stage.advance({ milliseconds: 60_000 - (stage.now() % 60_000) });
  for (let minute = 0; minute < 4; minute++) {
    await stage.advance("11s");
    const job = await stage.engine.enqueue(often);
    await stage.advance("49s");
    limits.push((await stage.engine.store.jobs.load([job.id]))[0]?.policy?.attempt);
  }
  expect(limits).toEqual([6_667, 4_445, 2_964, 1_976]);
});

describe("adaptive limits (SEMANTICS 16)", () => {
  it("begin at the ceiling and follow the runs, a step per hour, to the millisecond", async () => {
    const stage = await openStage();
    stage.work([handler(stage)]);
    await enqueueMany(stage, 30, 200);
    expect((await limitOf(stage))?.attempt).toBe(10_000);
    const limits: unknown[] = [];
    for (let hour = 0; hour < 7; hour++) {
      await toNextHour(stage);
      await stage.advance("10m");
      const policy = await limitOf(stage);
      limits.push(policy?.attempt);
      expect(policy?.adaptive?.learned?.limit).toBe(policy?.attempt);
    }
    // 200 ms are in the bucket that ends at 207 ms: 3 × 207. The last hour has too few runs in its window.
    expect(limits).toEqual([5_000, 2_500, 1_250, 625, 621, 621, 1_242]);
  });

  it("are those of the first start: a retry after a change has the limit of its first attempt", async () => {
    const stage = await openStage();
    stage.work([handler(stage)]);
    await enqueueMany(stage, 30, 200);
    await stage.advance({ milliseconds: HOUR - (stage.now() % HOUR) - 1_000 });
    // Its first attempt begins a second before the hour and is cut off at 10 s.
    const { id } = await stage.engine.enqueue(report, { run: 60_000 });
    await stage.advance("1s");
    const startedAt = stage.now() - 1_000;
    const row = async () => (await stage.engine.store.jobs.load([id]))[0];
    expect(await row()).toMatchObject({ startedAt, softAt: startedAt + 10_000, attempt: 1 });
    await stage.engine.enqueue(report, { run: 1 }, { delay: "10m" });
    await stage.advance("12m");
    // Both attempts were cut off at the limit of the first.
    const ended = await row();
    expect(ended?.errors?.map(({ limit }) => limit)).toEqual([10_000, 10_000]);
    expect(ended?.policy?.attempt).toBe(10_000);
    expect((await limitOf(stage))?.attempt).toBe(5_000);
    // A manual retry resolves its policy anew.
    await stage.engine.retry(id);
    await stage.advance("30s");
    expect((await row())?.policy?.attempt).toBe(5_000);
  });

  it("count a run that was cut off as longer than all others, so a limit that cuts rises again", async () => {
    const stage = await openStage();
    const { engine } = stage;
    stage.work([handler(stage)]);
    await enqueueMany(stage, 100, 200);
    const limits: unknown[] = [];
    for (let hour = 0; hour < 5; hour++) {
      await toNextHour(stage);
      await stage.advance("10m");
      limits.push((await limitOf(stage))?.attempt);
    }
    expect(limits.at(-1)).toBe(621);
    // Ten of about 115 now hang: more than p99 leaves out.
    for (let job = 0; job < 10; job++) await engine.enqueue(report, { run: 60_000 });
    await toNextHour(stage);
    await stage.advance("10m");
    expect((await limitOf(stage))?.attempt).toBe(1_242);
  });

  it("are the same in two processes, and the two make one step per period together", async () => {
    const { first, second, advance } = await openPair();
    first.work([handler(first)]);
    await enqueueMany(first, 30, 200);
    await advance(40_000, 1_000);
    // From now on both have asked for the limit, so both compute it.
    second.work([handler(second)]);
    await enqueueMany(second, 4, 200);
    const stored = async () => {
      const records = await first.engine.store.records.list("learned", null, 10);
      return records.map(({ body }) => (body as { limit: number }).limit);
    };
    await advance(HOUR - 40_000 + 600_000, 5_000);
    expect(await stored()).toEqual([5_000]);
    await advance(HOUR, 5_000);
    expect(await stored()).toEqual([2_500]);
    const jobs = [
      await first.engine.enqueue(report, { run: 1 }),
      await second.engine.enqueue(report, { run: 1 }),
    ];
    await advance(3_000, 100);
    const rows = await first.engine.store.jobs.load(jobs.map(({ id }) => id));
    expect(rows.map((row) => row?.policy?.attempt)).toEqual([2_500, 2_500]);
  });

  it("are shown by explain, with the runs behind them", async () => {
    const stage = await openStage();
    stage.work([handler(stage)]);
    const early = await stage.engine.enqueue(report, { run: 1 }, { delay: "1d" });
    const before = await early.explain(report);
    expect(before.fields.find(({ field }) => field === "attempt")).toMatchObject({
      value: "10s",
      source: "definition",
      note: "adaptive, 3 × p99 within 100ms to 10s: no period with 20 runs yet, so it is the ceiling",
    });
    await enqueueMany(stage, 30, 200);
    await toNextHour(stage);
    await stage.advance("10m");
    const after = await early.explain(report);
    const hour = new Date(START + HOUR).toISOString();
    expect(after.adaptive?.learned).toMatchObject({
      limit: 5_000,
      previous: 10_000,
      target: 621,
      runs: 30,
      cut: 0,
    });
    expect(after.toString()).toContain(
      `to ${hour}; p99 is 207ms, which asks for 621ms, in steps of at most × 2 per 1h; it was 10s`,
    );
    expect(after.instants.soft).toBe(after.instants.due + 5_000);
    const said = await early.explain(defineJob({ type: "report", timeouts: { attempt: "3s" } }));
    expect(said.adaptive).toBeUndefined();
  });

  it("let an enqueue with a duration win, and lose to it in explain", async () => {
    const stage = await openStage();
    const { engine } = stage;
    const job = await engine.enqueue(report, { run: 1 }, { timeouts: { attempt: "3s" }, delay: "1h" });
    const { fields, adaptive: rule } = await job.explain(report);
    expect(rule).toBeUndefined();
    expect(fields.find(({ field }) => field === "attempt")).toMatchObject({
      value: "3s",
      lost: [
        { source: "definition", value: "adaptive up to 10s" },
        { source: "built-in", value: "30m" },
      ],
    });
  });

  it("are no longer learned once somebody extends the attempt", async () => {
    const stage = await openStage();
    const { engine } = stage;
    stage.work([handler(stage)]);
    const job = await engine.enqueue(report, { run: 12_000 });
    await stage.advance("2s");
    await engine.extend(job.id, { attempt: "20s" });
    await stage.advance("15s");
    const [row] = await engine.store.jobs.load([job.id]);
    expect(row).toMatchObject({
      state: "completed",
      policy: { attempt: 20_000, sources: { attempt: "enqueue" } },
    });
    expect(row?.policy?.adaptive).toBeUndefined();
    expect(row?.options?.settings?.timeouts).not.toHaveProperty("adaptive");
  });

  it("tell why a job that they ended had that limit", async () => {
    const stage = await openStage();
    stage.work([handler(stage)]);
    const job = await stage.engine.enqueue(report, { run: 60_000 });
    await stage.advance("2m");
    const why = await stage.engine.why(job.id);
    expect(why.reasons[0]?.sentence).toContain(
      "The limit is adaptive, 3 × p99 within 100ms to 10s: no period",
    );
  });

  it("come from a queue for every type in it, each with its own runs", async () => {
    const stage = await openStage();
    const { engine } = stage;
    await engine.queues.configure("default", { timeouts: { attempt: adaptive(options) } });
    const quick = defineJob({ type: "quick" });
    const slow = defineJob({ type: "slow" });
    stage.work([processor(quick, () => stage.sleep(10)), processor(slow, () => stage.sleep(3_000))]);
    for (let job = 0; job < 20; job++) await Promise.all([engine.enqueue(quick), engine.enqueue(slow)]);
    await toNextHour(stage);
    await stage.advance("10m");
    const ids = await Promise.all([engine.enqueue(quick), engine.enqueue(slow)]);
    await stage.advance("10s");
    const rows = await engine.store.jobs.load(ids.map(({ id }) => id));
    expect(rows.map((row) => row?.policy?.attempt)).toEqual([5_000, 9_213]);
  });

  it("are forgotten when nobody computed them for 30 days", async () => {
    const stage = await openStage();
    const { store } = stage.engine;
    const body = {
      limit: 1,
      previous: 1,
      target: 1,
      quantile: 1,
      runs: 1,
      cut: 0,
      since: 0,
      until: START - 31 * DAY,
    };
    const put = (name: string, until: number) =>
      ({ put: ["learned", name], body: { ...body, until }, wakeAt: null }) as const;
    await store.commit([{ effects: [put("gone x", body.until), put("kept x", START - DAY)] }], {
      now: START,
    });
    stage.work([handler(stage)]);
    await enqueueMany(stage, 1, 200);
    await stage.advance("70m");
    const left = await store.records.list("learned", null, 10);
    expect(left.map(({ key }) => key[1])).toEqual(["kept x"]);
  });

  it("cost nothing where nobody asks for them: no record is made", async () => {
    const stage = await openStage();
    const plain = defineJob({ type: "plain" });
    stage.work([processor(plain, () => 1)]);
    for (let job = 0; job < 300; job++) await stage.engine.enqueue(plain);
    await stage.advance("3h");
    expect(await stage.engine.store.records.list("learned", null, 10)).toEqual([]);
  });

  it("are proposed by advise, which replays any rule on history and changes nothing", async () => {
    const stage = await openStage();
    const plain = defineJob({ type: "plain", timeouts: { attempt: "1h" } });
    stage.work([processor(plain, ({ payload }) => stage.sleep((payload as { run: number }).run))]);
    for (let hour = 0; hour < 5; hour++) {
      for (let job = 0; job < 40; job++) await stage.engine.enqueue(plain, { run: 200 });
      await toNextHour(stage);
    }
    await stage.engine.enqueue(plain, { run: 3_000 });
    await stage.advance("1m");
    const [advice] = await stage.engine.advise({ type: "plain", adaptive: options });
    expect(advice?.adaptive?.code).toBe(
      'attempt: adaptive({ from: "p99", times: 3, floor: "500ms", ceiling: "1h", samples: 200 })',
    );
    expect(advice?.adaptiveWhatIf).toMatchObject({
      limit: 621,
      lowest: 621,
      highest: 10_000,
      runs: 201,
      wouldCut: { atLeast: 1, atMost: 1 },
    });
    expect(advice?.adaptiveWhatIf?.changes.map(({ limit }) => limit)).toEqual([
      5_000, 2_500, 1_250, 625, 621,
    ]);
    expect(await stage.engine.store.records.list("learned", null, 10)).toEqual([]);
    await expect(stage.engine.advise({ adaptive: options })).rejects.toThrow("advise.type");
  });
});
