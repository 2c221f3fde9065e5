/**
 * `npm run bench:sqlite-drivers -- [rounds]`: the SQLite store on `node:sqlite` and on better-sqlite3. Each has a process
 * of its own, and they take turns within a round, so that whatever disturbs the machine disturbs both. The ratio of a
 * round says more than the figures of a busy machine.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { curfewOn, DRIVERS } from "./contenders/curfew.ts";
import { median, ServerMeter } from "./measure.ts";
import { bulk, drain10, drain100, single } from "./throughput.ts";
import type { Context, Figures } from "./workload.ts";

type Driver = keyof typeof DRIVERS;

const LIBRARIES = Object.keys(DRIVERS) as Driver[];
const WORKLOADS = [bulk, single, drain10, drain100];
/** Code is compiled and files are grown in the first round of each workload. */
const WARM_UPS = 1;

/** The process of one driver: samples the workload that it is sent. */
function serve(driver: Driver, place: string): void {
  const context: Context = {
    contender: curfewOn(driver),
    key: driver,
    place,
    emptyPlace: place,
    meter: new ServerMeter(undefined),
    analyze: async () => {},
  };
  process.on("message", async (name) => {
    process.send?.(await WORKLOADS.find((workload) => workload.name === name)?.sample(context));
  });
  process.on("disconnect", () => process.exit());
}

async function sample(child: ChildProcess, workload: string): Promise<Figures> {
  child.send(workload);
  const [figures] = await once(child, "message");
  return figures as Figures;
}

/** The middle, with the smallest and the largest. */
function shown(values: readonly number[], digits = 0): string {
  const text = (value: number) => value.toLocaleString("en", { maximumFractionDigits: digits });
  return `${text(median(values))} (${text(Math.min(...values))} to ${text(Math.max(...values))})`;
}

async function compare(rounds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-drivers-"));
  const children = new Map<Driver, ChildProcess>();
  for (const [index, driver] of LIBRARIES.entries()) {
    const flags = ["--serve", driver, join(folder, `${index}.db`)];
    children.set(driver, fork(import.meta.filename, flags, { serialization: "advanced" }));
  }
  console.log(`| workload | ${LIBRARIES.join(" | ")} | rate of the first / the second | CPU of the same |`);
  console.log("|---|---|---|---|---|");
  for (const { name } of WORKLOADS) {
    const samples: Figures[][] = [];
    for (let round = 0; round < WARM_UPS + rounds; round++) {
      // The driver that is first in one round is second in the next.
      const order = round % 2 === 0 ? LIBRARIES : LIBRARIES.toReversed();
      const figures = new Map<Driver, Figures>();
      for (const driver of order) {
        figures.set(driver, await sample(children.get(driver) as ChildProcess, name));
      }
      if (round >= WARM_UPS) samples.push(LIBRARIES.map((driver) => figures.get(driver) as Figures));
    }
    const column = (driver: number, key: string) => samples.map((pair) => pair[driver]?.[key] as number);
    const ratio = (key: string) =>
      samples.map(([one, other]) => (one?.[key] as number) / (other?.[key] as number));
    const rates = LIBRARIES.map((_, driver) => `${shown(column(driver, "rate"))} jobs/s`);
    console.log(
      `| ${name} | ${rates.join(" | ")} | ${shown(ratio("rate"), 2)} | ${shown(ratio("node"), 2)} |`,
    );
  }
  for (const child of children.values()) child.disconnect();
  rmSync(folder, { recursive: true, force: true });
}

const [first, driver, place] = process.argv.slice(2);
if (first === "--serve") serve(driver as Driver, place as string);
else await compare(Number(first ?? 7));
