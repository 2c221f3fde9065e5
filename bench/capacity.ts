/**
 * `npm run bench:capacity [-- --measure]`: the figures of docs/scale.md. Prints what masters a demand takes, by a model of
 * measured costs, and what happens to fleets of up to 10,000 processes and 1,000 homes, in virtual time. `--measure`
 * measures the costs again on a Valkey server of its own; put them into capacity-model.ts.
 */
import { parseArgs } from "node:util";
import { measureCosts } from "./capacity-costs.ts";
import { capacityTable } from "./capacity-model.ts";
import { type Outcome, type Scenario, simulateFleet } from "./capacity-sim.ts";

const { values } = parseArgs({ options: { measure: { type: "boolean", default: false } } });

const SMALL = { masters: 10, homes: 20, processes: 100, slots: 100, jobsPerSecond: 100_000, handler: 5 };
const AWAY = { share: 1 / 3, from: 2, to: 32 };
const SCENARIOS: readonly Scenario[] = [
  { name: "10 masters, 20 homes, 100 processes", ...SMALL, seconds: 5 },
  { name: "the same, 1,000 processes", ...SMALL, processes: 1_000, slots: 10, seconds: 3 },
  { name: "the same, 10,000 processes", ...SMALL, processes: 10_000, slots: 1, seconds: 2 },
  { name: "100 processes, 1,000 homes", ...SMALL, homes: 1_000, seconds: 3 },
  ...[200, 300, 500].map((processes) => ({
    name: `10 masters, 20 homes, ${processes} processes`,
    ...SMALL,
    processes,
    slots: 10_000 / processes,
    seconds: 3,
  })),
  {
    // A worker behind a server claims and settles by one more hop each; only servers reach the store.
    name: "10 masters, 20 homes, 10,000 remote workers behind 100 servers",
    ...SMALL,
    hop: 500,
    seconds: 5,
  },
  {
    name: "100 masters, 1,000 homes, 10,000 remote workers behind 100 servers",
    ...SMALL,
    masters: 100,
    homes: 1_000,
    hop: 500,
    seconds: 3,
  },
  {
    name: "100 masters, 200 homes, 10,000 remote workers behind 100 servers",
    ...SMALL,
    masters: 100,
    homes: 200,
    hop: 500,
    seconds: 3,
  },
  {
    name: "100 masters, 1,000 homes, 10,000 processes",
    ...SMALL,
    masters: 100,
    homes: 1_000,
    processes: 10_000,
    slots: 1,
    seconds: 2,
  },
  { name: "100 processes, half of the jobs behind one key", ...SMALL, hot: 0.5, seconds: 5 },
  { name: "100 processes, 1,000 delayed jobs/s as well", ...SMALL, delayedPerSecond: 1_000, seconds: 5 },
  {
    name: "10,000 processes, 1,000 delayed jobs/s as well",
    ...SMALL,
    processes: 10_000,
    slots: 1,
    delayedPerSecond: 1_000,
    seconds: 2,
  },
  {
    name: "100 processes, a third of the masters away for 30 s, a tenth of the jobs by the outbox",
    ...SMALL,
    jobsPerSecond: 50_000,
    away: AWAY,
    crossing: 0.1,
    seconds: 50,
  },
];

const number = (value: number) =>
  value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(2);
const percent = (share: number) => `${Math.round(100 * share)} %`;

function rowOf({ seconds, jobsPerSecond }: Scenario, outcome: Outcome): string {
  const { name, pickup, started, enqueued, emptyClaims, looks, sweeps, busy, outbox, calmAfter } = outcome;
  const cells = [
    name,
    jobsPerSecond.toLocaleString("en"),
    percent(started / enqueued),
    `${number(pickup.p50)}, ${number(pickup.p99)}`,
    `${percent(busy.mean)}, ${percent(busy.most)}`,
    [emptyClaims, looks, sweeps].map(number).join(", "),
    outbox.p99 > 0 ? `${number(outbox.p50)}, ${number(outbox.p99)}` : "",
    calmAfter === null ? "" : `${number(calmAfter)} s`,
    `${seconds} s`,
  ];
  return `| ${cells.join(" | ")} |`;
}

if (values.measure) console.log("costs, measured now:", await measureCosts());
console.log(`\n${capacityTable()}\n`);
console.log(
  "| fleet | jobs/s | started | pickup p50, p99, ms | load of masters: mean, most | empty claims, looks, sweeps a job | outbox p50, p99, ms | calm after | virtual time |",
);
console.log("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
for (const scenario of SCENARIOS) console.log(rowOf(scenario, simulateFleet(scenario)));
