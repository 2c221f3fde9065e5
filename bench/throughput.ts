import type { OpenContender } from "./contender.ts";
import { type Cost, measure, NO_SERVER } from "./measure.ts";
import { type Column, type Context, IS_SHORT, isQueue, type Workload } from "./workload.ts";

const COSTS: readonly Column[] = [
  { key: "node", title: "Node µs/job", digits: 1 },
  { key: "server", title: "server µs/job", digits: 1 },
];
const RATE: Column = { key: "rate", title: "jobs/s" };

function meterOf({ contender, meter }: Context) {
  return contender.database === "sqlite" ? NO_SERVER : meter;
}

const BULK_JOBS = IS_SHORT ? 20_000 : 50_000;

export const bulk: Workload = {
  name: "bulk",
  title: `bulk enqueue of ${BULK_JOBS.toLocaleString("en")} jobs`,
  warmsUp: true,
  columns: [RATE, ...COSTS],
  suits: () => true,
  async sample(context) {
    const contender = await context.contender.open(context.place);
    const cost = await measure(BULK_JOBS, meterOf(context), async (begin) => {
      begin();
      await contender.enqueue(BULK_JOBS);
    });
    await contender.clear();
    await contender.close();
    return { ...cost };
  },
};

const PRODUCERS = 20;
const SINGLE_FOR = IS_SHORT ? 700 : 2_000;

/** By the clock and not by the number, because the contenders are up to a hundred times apart. */
export const single: Workload = {
  name: "single",
  title: `single enqueue, ${PRODUCERS} producers that each await their own, for ${SINGLE_FOR / 1_000} s`,
  warmsUp: true,
  columns: [RATE, ...COSTS],
  suits: () => true,
  async sample(context) {
    const contender = await context.contender.open(context.place);
    const produce = async (endsAt: number, add: (n: number) => Promise<void>) => {
      let count = 0;
      const producer = async () => {
        for (; performance.now() < endsAt; count++) await add(count);
      };
      await Promise.all(Array.from({ length: PRODUCERS }, producer));
      return count;
    };
    // Connections are opened and statements prepared before the clock runs.
    await produce(performance.now() + 200, (n) => contender.add(n));
    let count = 0;
    const { rate, node, server } = await measure(1, meterOf(context), async (begin) => {
      begin();
      count = await produce(performance.now() + SINGLE_FOR, yielding(contender));
    });
    await contender.clear();
    await contender.close();
    return { rate: rate * count, node: node / count, server: server / count };
  },
};

/** A contender that adds in the caller's own turn must not keep the other producers from theirs for ever. */
function yielding(contender: OpenContender): (n: number) => Promise<void> {
  return async (n) => {
    await contender.add(n);
    if (n % 100 === 99) await new Promise((resolve) => setImmediate(resolve));
  };
}

const DRAIN_JOBS = IS_SHORT ? 20_000 : 50_000;

function drainAt(concurrency: number): Workload {
  return {
    name: `drain-${concurrency}`,
    title: `drain of ${DRAIN_JOBS.toLocaleString("en")} jobs that do nothing, at concurrency ${concurrency}`,
    warmsUp: true,
    columns: [RATE, ...COSTS],
    suits: () => true,
    async sample(context) {
      const contender = await context.contender.open(context.place);
      await contender.enqueue(DRAIN_JOBS);
      await context.analyze(context.place);
      const cost = await drain(contender, DRAIN_JOBS, concurrency, context);
      await contender.clear();
      await contender.close();
      return { ...cost };
    },
  };
}

export const drain10 = drainAt(10);
export const drain100 = drainAt(100);

const FEW_JOBS = 5_000;
const PENDING_JOBS = 1_000_000;
const TOMORROW = 86_400_000;

/** The same drain in two places, one of which also holds a million jobs that are due tomorrow. */
export const beside: Workload = {
  name: "beside",
  title: `drain of ${FEW_JOBS.toLocaleString("en")} jobs at concurrency 10, empty and beside ${PENDING_JOBS.toLocaleString("en")} delayed ones`,
  isLong: true,
  rounds: 9,
  warmsUp: true,
  columns: [
    { key: "beside", title: "beside 1M, jobs/s" },
    { key: "empty", title: "empty, jobs/s" },
    { key: "kept", title: "kept %" },
  ],
  suits: isQueue,
  async setUp(context) {
    const contender = await context.contender.open(context.place);
    const dueAt = Date.now() + TOMORROW;
    for (let from = 0; from < PENDING_JOBS; from += 100_000) {
      await contender.delay?.(new Array(100_000).fill(dueAt));
    }
    await contender.close();
    await context.analyze(context.place);
  },
  async sample(context) {
    const rateIn = async (place: string) => {
      const contender = await context.contender.open(place);
      await contender.enqueue(FEW_JOBS);
      await context.analyze(place);
      const { rate } = await drain(contender, FEW_JOBS, 10, context);
      await contender.close();
      return rate;
    };
    const empty = await rateIn(context.emptyPlace);
    const full = await rateIn(context.place);
    return { beside: full, empty, kept: (full / empty) * 100 };
  },
};

/** From the first handler, so that nobody is charged for starting a worker, until the last job is acknowledged. */
async function drain(
  contender: OpenContender,
  count: number,
  concurrency: number,
  context: Context,
): Promise<Cost> {
  let stop = async () => {};
  const cost = await measure(count, meterOf(context), async (begin) => {
    let left = count;
    let reach = () => {};
    const reached = new Promise<void>((resolve) => {
      reach = resolve;
    });
    stop = await contender.work(concurrency, () => {
      if (left === count) begin();
      left -= 1;
      if (left === 0) reach();
    });
    await reached;
    // Asking again is what a user without a better signal would do.
    while (!(await contender.isDrained(count))) await new Promise((resolve) => setImmediate(resolve));
  });
  await stop();
  return cost;
}
