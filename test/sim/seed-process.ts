/** A process that runs the seeds it is given, one after the other, and answers what they came to. `run-seeds.ts` starts it. */
import { failureText, worldOf } from "./worlds.ts";

/** Seeds of one world that follow each other. */
export interface SeedRange {
  readonly name: string;
  readonly from: number;
  readonly count: number;
}

export interface SeedTotals {
  readonly seeds: number;
  readonly units: number;
  readonly events: number;
  readonly milliseconds: number;
  /** What failed, with the commands that replay it. */
  readonly findings: readonly string[];
}

async function run({ name, from, count }: SeedRange): Promise<SeedTotals> {
  const { simulate } = worldOf(name);
  const begunAt = performance.now();
  const findings: string[] = [];
  let units = 0;
  let events = 0;
  for (let seed = from; seed < from + count; seed++) {
    const outcome = await simulate({ seed });
    units += outcome.units;
    events += outcome.events;
    if (outcome.violations.length > 0) findings.push(failureText(name, seed, outcome.violations));
  }
  return { seeds: count, units, events, milliseconds: performance.now() - begunAt, findings };
}

// Nobody reads the stacks of the many errors that worlds throw on purpose. Who replays a seed has them.
Error.stackTraceLimit = 0;

// Ctrl+C reaches all processes of a terminal. The one that gives the seeds ends this one after them.
process.on("SIGINT", () => {});

process.on("message", (range: SeedRange) => {
  void run(range).then((totals) => process.send?.(totals));
});
