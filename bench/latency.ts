import { percentile } from "./measure.ts";
import { monotonic, RemoteWorker, sleep } from "./remote.ts";
import { type Figures, IS_SHORT, isQueue, type Workload } from "./workload.ts";

const PICKUPS = IS_SHORT ? 100 : 200;

/** From the call of enqueue in one process to the entry of the handler in another, while nothing else is going on. */
export const pickup: Workload = {
  name: "pickup",
  title: `pickup of a job on an idle queue, two processes, ${PICKUPS} samples a round`,
  warmsUp: false,
  lowerIsBetter: true,
  columns: [
    { key: "p50", title: "p50 ms", digits: 2 },
    { key: "p95", title: "p95 ms", digits: 2 },
    { key: "p99", title: "p99 ms", digits: 2 },
  ],
  suits: isQueue,
  async sample({ contender: { open }, key, place }) {
    const contender = await open(place);
    let pickedUp = (_at: number) => {};
    const worker = new RemoteWorker(key, place, "tell", ({ at }) => pickedUp(at));
    await worker.opened();
    await worker.begin();
    const waits: number[] = [];
    // The first ones open connections and prepare statements.
    for (let n = -20; n < PICKUPS; n++) {
      await sleep(15 + 30 * Math.random());
      const picked = new Promise<number>((resolve) => {
        pickedUp = resolve;
      });
      const calledAt = monotonic();
      await contender.add(n);
      const at = await picked;
      if (n >= 0) waits.push(at - calledAt);
    }
    await worker.end();
    await contender.clear();
    await contender.close();
    return percentiles(waits);
  },
};

const DELAYED_JOBS = 20_000;
const WINDOW = 10_000;
/** In which all of them are added. */
const LEAD = 6_000;
const GIVE_UP_AFTER = 60_000;

export const delayed: Workload = {
  name: "delayed",
  title: `lateness of ${DELAYED_JOBS.toLocaleString("en")} delayed jobs that fall due in ${WINDOW / 1_000} s, concurrency 100`,
  isLong: true,
  rounds: 3,
  warmsUp: false,
  lowerIsBetter: true,
  columns: [
    { key: "p99", title: "p99 ms", digits: 1 },
    { key: "p50", title: "p50 ms", digits: 1 },
    { key: "max", title: "worst ms", digits: 1 },
  ],
  suits: isQueue,
  async sample({ contender: { open }, place, analyze }) {
    const contender = await open(place);
    const from = Date.now() + LEAD;
    const dueAt = Array.from({ length: DELAYED_JOBS }, (_, n) =>
      Math.round(from + (n * WINDOW) / DELAYED_JOBS),
    );
    await contender.delay?.(dueAt);
    await analyze(place);
    const late: number[] = [];
    let reach = (_is: boolean) => {};
    const reached = new Promise<boolean>((resolve) => {
      reach = resolve;
    });
    const stop = await contender.work(100, (n) => {
      late.push(performance.timeOrigin + performance.now() - (dueAt[n] as number));
      if (late.length === DELAYED_JOBS) reach(true);
    });
    if (Date.now() > from) throw new Error("the jobs could not be added in time");
    const timer = setTimeout(() => reach(false), LEAD + WINDOW + GIVE_UP_AFTER);
    if (!(await reached)) throw new Error(`only ${late.length} of the jobs were run`);
    clearTimeout(timer);
    await stop();
    await contender.clear();
    await contender.close();
    return percentiles(late);
  },
};

function percentiles(values: readonly number[]): Figures {
  return {
    p50: percentile(values, 0.5),
    p95: percentile(values, 0.95),
    p99: percentile(values, 0.99),
    max: Math.max(...values),
  };
}
