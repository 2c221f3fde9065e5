import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** What really ran, for the last line of `npm test`. */
export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Counts the tests that were executed and writes the sum to the file named by `CURFEW_TEST_COUNTS`. A file that
 * could not be loaded and an error outside any test count as failures: otherwise tests that never started would
 * make the last line look better than the run was.
 */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const counts: TestCounts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      counts.failed += module.errors().length;
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
      for (const test of module.children.allTests()) counts[verdictOf(test.result().state)] += 1;
    }
    const file = process.env.CURFEW_TEST_COUNTS;
    if (file) writeFileSync(file, JSON.stringify(counts));
  }
}

/** A test still pending when the run ends was cut off, which nobody may read as passed or skipped. */
function verdictOf(state: "passed" | "failed" | "skipped" | "pending"): keyof TestCounts {
  return state === "pending" ? "failed" : state;
}
