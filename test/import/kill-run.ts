import { setTimeout as sleep } from "node:timers/promises";
import { RunningCommand } from "../server/command.ts";
import type { FilledEngine } from "./engines.ts";
import { jobsIn } from "./support.ts";

export interface KillRun {
  readonly engine: string;
  readonly jobs: number;
  /** How many jobs the old system still had when the import was killed, for each kill. */
  readonly killedAt: readonly number[];
  /** Jobs that the last run found already stored. */
  readonly known: number;
  readonly lost: number;
  readonly doubled: number;
  readonly left: number;
  readonly isAtomic: boolean;
  /** Of all runs together. */
  readonly seconds: number;
}

/**
 * Runs `curfew import` as a process and kills it with SIGKILL each time it has moved a share of the jobs, then lets it
 * end. Compares the numbers in the payloads with those that the old system was filled with.
 */
export async function killRun(
  engine: FilledEngine,
  store: string,
  jobs: number,
  shares: readonly number[],
): Promise<KillRun> {
  const flags = ["import", ...engine.flags, "--store", store, "--json"];
  const startedAt = performance.now();
  const killedAt: number[] = [];
  for (const share of shares) {
    const command = new RunningCommand(flags);
    let hasEnded = false;
    void command.ended.then(() => {
      hasEnded = true;
    });
    const limit = Math.floor(jobs * (1 - share));
    // The kill must come at any point of a batch, so the number of jobs is read as often as possible.
    while (!hasEnded && (await engine.left()) > limit) await sleep(1);
    command.kill("SIGKILL");
    const { code, stderr } = await command.ended;
    if (code !== null && hasEnded)
      throw new Error(`the import ended with ${code} before it was killed: ${stderr}`);
    killedAt.push(await engine.left());
  }
  const { code, stdout, stderr } = await new RunningCommand(flags).ended;
  if (code !== 0) throw new Error(`the last import ended with ${code}: ${stderr}`);
  const seconds = (performance.now() - startedAt) / 1_000;
  const report = JSON.parse(stdout) as { known: number; is_atomic: boolean };
  const counts = new Map<number, number>();
  for (const { payload } of await jobsIn(store)) {
    const { n } = JSON.parse(payload) as { n: number };
    counts.set(n, (counts.get(n) ?? 0) + 1);
  }
  let [lost, doubled] = [0, 0];
  for (let n = 0; n < jobs; n++) {
    const count = counts.get(n) ?? 0;
    if (count === 0) lost += 1;
    if (count > 1) doubled += 1;
  }
  const left = await engine.left();
  return {
    engine: engine.name,
    jobs,
    killedAt,
    known: report.known,
    lost,
    doubled: doubled + Math.max(0, counts.size - jobs),
    left,
    isAtomic: report.is_atomic,
    seconds,
  };
}
