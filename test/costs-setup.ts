import { appendFileSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { isMainThread } from "node:worker_threads";
import { afterAll, expect } from "vitest";
import type { FileCosts } from "../scripts/count-reporter.ts";

/** Where each file writes what it cost; `scripts/test.ts` names it. */
const costs = process.env.CURFEW_TEST_COSTS;

/**
 * CPU seconds of this process and of the children that have ended. PostgreSQL and Chromium are no children of it. A file
 * that runs in a thread shares its process with others, so only the thread counts.
 */
function cpuSeconds(): number {
  const stat = readFileSync(isMainThread ? "/proc/self/stat" : "/proc/thread-self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, isMainThread ? 15 : 13).reduce((sum, field) => sum + Number(field), 0);
  return ticks / 100;
}

if (costs && process.platform === "linux") {
  const from = cpuSeconds();
  const startedAt = performance.now();
  afterAll(() => {
    const file = relative(process.cwd(), expect.getState().testPath ?? "");
    const seconds = (performance.now() - startedAt) / 1000;
    const line: FileCosts = { file, seconds, cpuSeconds: cpuSeconds() - from };
    appendFileSync(costs, `${JSON.stringify(line)}\n`);
  });
}
