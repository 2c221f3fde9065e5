/**
 * `npm run build && npm run bench:sandbox-start`: what a cold sandbox of the built package costs, whose module imports `curfew` as
 * a user's does. The CPU is what the sandbox itself has used when its first handler runs, so a busy machine does not change it much;
 * the wait is from the enqueue to the result. `-- 50` makes so many starts of each kind.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { percentile } from "./measure.ts";

const STARTS = Number(process.argv[2] ?? 20);
const root = join(import.meta.dirname, "..");
const curfew: typeof import("../src/index.ts") = await import(
  pathToFileURL(join(root, "dist", "index.js")).href
);

const MODULE = `
import { defineJob, processor, unchecked } from "curfew";
const job = defineJob({ type: "start", payload: unchecked() });
export default processor(job, () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
});
`;

const folder = await mkdtemp(join(root, ".sandbox-start-"));
try {
  // The package finds itself by this name only from within its own folder.
  await writeFile(join(folder, "job.mjs"), MODULE);
  for (const kind of ["process", "thread"] as const) await measure(kind);
} finally {
  await rm(folder, { recursive: true });
}

async function measure(kind: "process" | "thread"): Promise<void> {
  const { openEngine, defineJob, sandboxed, silentLogger, unchecked } = curfew;
  const job = defineJob({ type: "start", payload: unchecked<null>() });
  const module = pathToFileURL(join(folder, "job.mjs"));
  const [cpu, waits]: [number[], number[]] = [[], []];
  for (let start = 0; start < STARTS; start++) {
    await using engine = await openEngine({ store: "memory:", logger: silentLogger });
    const from = performance.now();
    engine.work({ processors: [sandboxed(job, module, { kind })] });
    const handle = await engine.enqueue(job, null);
    cpu.push((await handle.result({ within: "60s" })) as number);
    waits.push(performance.now() - from);
  }
  const shown = (values: number[]) =>
    [0.5, 0.99].map((share) => percentile(values, share).toFixed(0)).join(" and ");
  const used = kind === "process" ? `${shown(cpu)} ms of CPU until its first handler, ` : "";
  console.log(
    `${STARTS} cold starts of a ${kind}: ${used}${shown(waits)} ms from enqueue to result (p50 and p99)`,
  );
}
