import { RemoteWorker, sleep, type Told } from "./remote.ts";
import { isQueue, type Workload } from "./workload.ts";

/** The job that runs when its worker is killed. */
export const VICTIM = 0;
const INNOCENTS = 20;
/** How long an innocent job runs: longer than its worker lives. */
export const INNOCENT_FOR = 300;
const KILLED_AFTER = 100;
const WATCHED_FOR = 30_000;

/**
 * One worker of ten slots gets a job that never ends and 20 others; it is killed (SIGKILL) 100 ms after it has entered
 * the first, and another one begins to work. Limits are the smallest that each contender accepts.
 */
export const recovery: Workload = {
  name: "recovery",
  title: "a worker is killed (SIGKILL), another stands by: from the kill to the next start of its job",
  isLong: true,
  rounds: 3,
  warmsUp: false,
  lowerIsBetter: true,
  columns: [
    { key: "again", title: "job starts again, ms" },
    { key: "innocents", title: "20 others done, ms" },
    { key: "left", title: "not done in 30 s" },
    { key: "twice", title: "ended twice" },
  ],
  suits: isQueue,
  async sample({ contender: { open }, key, place }) {
    const contender = await open(place, { short: true });
    const told: { by: "first" | "second"; told: Told }[] = [];
    const first = new RemoteWorker(key, place, "recovery", (each) => told.push({ by: "first", told: each }));
    const second = new RemoteWorker(key, place, "recovery", (each) =>
      told.push({ by: "second", told: each }),
    );
    await Promise.all([first.opened(), second.opened()]);
    await contender.enqueue(1 + INNOCENTS);
    await first.begin();
    while (!told.some(({ told: { n } }) => n === VICTIM)) await sleep(2);
    await sleep(KILLED_AFTER);
    const killedAt = Number(process.hrtime.bigint()) / 1e6;
    await first.end("SIGKILL");
    await second.begin();
    const started = () => told.find(({ by, told: { n } }) => by === "second" && n === VICTIM)?.told.at;
    const ends = () => told.filter(({ told: { n, is } }) => n !== VICTIM && is === "ended");
    const ended = () => new Set(ends().map(({ told: { n } }) => n)).size;
    const giveUpAt = killedAt + WATCHED_FOR;
    while (
      (started() === undefined || ended() < INNOCENTS) &&
      Number(process.hrtime.bigint()) / 1e6 < giveUpAt
    )
      await sleep(10);
    await second.end("SIGKILL");
    await contender.clear();
    await contender.close();
    const left = INNOCENTS - ended();
    return {
      again: (started() ?? Number.NaN) - killedAt,
      innocents: left > 0 ? Number.NaN : Math.max(...ends().map(({ told: { at } }) => at)) - killedAt,
      left,
      twice: ends().length - ended(),
    };
  },
};
