import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { seededRandom } from "../src/core/random.ts";
import {
  defineJob,
  type Engine,
  type FairOptions,
  openEngine,
  processor,
  silentLogger,
} from "../src/index.ts";
import { median, ServerMeter } from "./measure.ts";

/** A job of a customer. The customer is its fair key. */
interface Kind {
  readonly keys: number;
  readonly jobs: number;
  /** Customers enqueue one job after the other, in no order, or each all of its jobs at once. */
  readonly arrival: "mixed" | "random" | "blocks";
  readonly fair: FairOptions;
}

const BATCH = 10_000;
/** Every hundredth customer has a weight of 1,000, every tenth one of 50. */
const UNEQUAL = 1_000;

const fairWork = defineJob({ type: "work.do", fair: (customer) => customer as string });
const plainWork = defineJob({ type: "work.do" });

/** Names in no order, as ids of customers have. */
function customer(nth: number): string {
  return `customer-${((nth * 2_654_435_761) % 2 ** 32).toString(36)}`;
}

function unequal(keys: number): FairOptions {
  const weights: Record<string, number> = {};
  for (let nth = 0; nth < keys && nth < 1_000; nth++)
    if (nth % 10 === 0) weights[customer(nth)] = nth % 100 === 0 ? UNEQUAL : 50;
  return { weights };
}

export function kindsOf(counts: readonly number[], jobs: number): ReadonlyMap<string, Kind> {
  const kinds = new Map<string, Kind>();
  for (const keys of counts) {
    const all = Math.max(jobs, keys);
    const name = `${keys.toLocaleString("en")} ${keys === 1 ? "key" : "keys"}`;
    kinds.set(`${name}, mixed`, { keys, jobs: all, arrival: "mixed", fair: {} });
    if (keys === 1 || keys === all) continue;
    kinds.set(`${name}, in no order`, { keys, jobs: all, arrival: "random", fair: {} });
    kinds.set(`${name}, in blocks`, { keys, jobs: all, arrival: "blocks", fair: {} });
    kinds.set(`${name}, unequal weights`, { keys, jobs: all, arrival: "mixed", fair: unequal(keys) });
  }
  return kinds;
}

async function fill(engine: Engine, { keys, jobs, arrival }: Kind, isFair: boolean): Promise<void> {
  const draw = seededRandom(keys);
  const nextOf = {
    mixed: (nth: number) => nth % keys,
    random: () => Math.floor(draw() * keys),
    blocks: (nth: number) => Math.floor((nth * keys) / jobs),
  }[arrival];
  const of = (nth: number) => customer(nextOf(nth));
  for (let from = 0; from < jobs; from += BATCH) {
    const payloads = Array.from({ length: Math.min(BATCH, jobs - from) }, (_, nth) => of(from + nth));
    await engine.enqueueMany(isFair ? fairWork : plainWork, payloads);
  }
}

interface Sample {
  /** Jobs per second. */
  readonly rate: number;
  /** Microseconds of CPU for each job. */
  readonly node: number;
  readonly server: number;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

async function drain(store: string, kind: Kind, isFair: boolean, slots: number): Promise<Sample> {
  const meter = await ServerMeter.of(/^(sqlite|memory)/.test(store) ? "" : store);
  const engine = await openEngine({ store, logger: silentLogger });
  if (isFair) await engine.queues.configure("default", { fair: kind.fair });
  await fill(engine, kind, isFair);
  let left = kind.jobs;
  const drained = Promise.withResolvers<void>();
  const does = processor(plainWork, () => {
    left -= 1;
    if (left === 0) drained.resolve();
  });
  collect();
  const [from, own, server] = [performance.now(), process.cpuUsage(), meter.cpu()];
  const worker = engine.work({ processors: [does], queues: { default: { concurrency: slots } } });
  await drained.promise;
  const used = process.cpuUsage(own);
  const elapsed = performance.now() - from;
  await worker.close();
  const ofServer = Number.isNaN(server) ? 0 : meter.cpu() - server;
  await engine.close();
  return {
    rate: kind.jobs / (elapsed / 1_000),
    node: (used.user + used.system) / kind.jobs,
    server: ofServer / kind.jobs,
  };
}

/** Each kind of drain after a plain one of as many jobs, round by round: CPU of both for each job, and the middle of the quotients. */
export async function drains(
  name: string,
  open: () => Promise<string>,
  { kinds, rounds, slots }: { kinds: ReadonlyMap<string, Kind>; rounds: number; slots: number },
): Promise<void> {
  const pairs = new Map<string, { plain: Sample; fair: Sample }[]>();
  for (let round = 0; round <= rounds; round++) {
    for (const [title, kind] of kinds) {
      const plain = await drain(await open(), kind, false, slots);
      const fair = await drain(await open(), kind, true, slots);
      // The first round compiles.
      if (round > 0) pairs.set(title, [...(pairs.get(title) ?? []), { plain, fair }]);
    }
  }
  for (const [title, samples] of pairs) console.log(`${name}, ${title}: ${line(samples)}`);
}

function line(samples: readonly { plain: Sample; fair: Sample }[]): string {
  const of = (which: "plain" | "fair", what: keyof Sample) =>
    median(samples.map((sample) => sample[which][what]));
  const cpu = ({ node, server }: Sample) => node + server;
  const quotients = samples.map(({ plain, fair }) => cpu(fair) / cpu(plain));
  const text = (which: "plain" | "fair") =>
    `${which} ${of(which, "node").toFixed(1)} + ${of(which, "server").toFixed(1)} µs`;
  return (
    `${text("plain")}, ${text("fair")} (process + server): ${median(quotients).toFixed(2)} x ` +
    `(${Math.min(...quotients).toFixed(2)} to ${Math.max(...quotients).toFixed(2)}), ` +
    `${(of("fair", "rate") / of("plain", "rate")).toFixed(2)} x the rate`
  );
}
