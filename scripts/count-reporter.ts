import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule, TestSpecification } from "vitest/node";

/** What really ran, for the last line of `npm test`. */
export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/** What one file cost: `test/costs-setup.ts` writes it. */
export interface FileCosts {
  file: string;
  seconds: number;
  /** Of its process and of the processes that it started; without PostgreSQL and Chromium. */
  cpuSeconds: number;
}

/** How many of the most expensive files are listed at the end. */
const MOST_EXPENSIVE = 20;

/** Milliseconds between two lines that say how far the run is. */
const SAY_EVERY = 10_000;

/**
 * Says every few seconds how many files are done, how many tests have passed and failed, and what runs.
 * Counts the tests that were executed and writes the sum to the file named by `CURFEW_TEST_COUNTS`. A file that
 * could not be loaded and an error outside any test count as failures: otherwise tests that never started would
 * make the last line look better than the run was.
 */
export default class CountReporter implements Reporter {
  readonly #startedAt = performance.now();
  readonly #running = new Set<string>();
  readonly #sofar: TestCounts = { passed: 0, failed: 0, skipped: 0 };
  #files = 0;
  #done = 0;
  #saidAt = performance.now();
  #timer: ReturnType<typeof setInterval> | undefined;

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.length;
    this.#timer = setInterval(() => this.#say(), 1_000).unref();
  }

  onTestModuleStart({ relativeModuleId }: TestModule): void {
    this.#running.add(relativeModuleId);
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module.relativeModuleId);
    this.#done += 1;
    for (const test of module.children.allTests()) this.#sofar[verdictOf(test.result().state)] += 1;
    this.#say();
  }

  #say(): void {
    const now = performance.now();
    if (now - this.#saidAt < SAY_EVERY) return;
    this.#saidAt = now;
    const seconds = Math.floor((now - this.#startedAt) / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    const { passed, failed } = this.#sofar;
    const files = `${this.#done} of ${this.#files} files`;
    const running = this.#running.size > 0 ? `; now ${[...this.#running].join(", ")}` : "";
    console.log(`tests ${time}: ${files}, ${passed} passed, ${failed} failed${running}`);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    clearInterval(this.#timer);
    const counts: TestCounts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      counts.failed += module.errors().length;
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
      for (const test of module.children.allTests()) counts[verdictOf(test.result().state)] += 1;
    }
    const file = process.env.CURFEW_TEST_COUNTS;
    if (file) writeFileSync(file, JSON.stringify(counts));
    sayCosts(new Map(modules.map(({ relativeModuleId, project }) => [relativeModuleId, project.name])));
  }
}

/** Says how much CPU each project took, which files took most of it, and how long they took. */
function sayCosts(projectOf: ReadonlyMap<string, string>): void {
  const file = process.env.CURFEW_TEST_COSTS;
  if (!file || !existsSync(file)) return;
  const lines = readFileSync(file, "utf8").trim().split("\n");
  const all = lines.map((line): FileCosts => JSON.parse(line));
  const sumOf = (files: readonly FileCosts[]) =>
    Math.round(files.reduce((total, { cpuSeconds }) => total + cpuSeconds, 0));
  const projects = [...Map.groupBy(all, ({ file }) => projectOf.get(file) ?? "none")]
    .map(([name, files]) => ({ name, sum: sumOf(files) }))
    .toSorted((a, b) => b.sum - a.sum)
    .map(({ name, sum }) => `${name} ${sum}`);
  console.log(
    `\nThe files took ${sumOf(all)} s of CPU without PostgreSQL and Chromium: ${projects.join(", ")}. CPU and real seconds of`,
  );
  for (const { file, cpuSeconds, seconds } of all
    .toSorted((a, b) => b.cpuSeconds - a.cpuSeconds)
    .slice(0, MOST_EXPENSIVE))
    console.log(`${cpuSeconds.toFixed(1).padStart(7)} ${seconds.toFixed(1).padStart(7)}  ${file}`);
}

/** A test still pending when the run ends was cut off, which nobody may read as passed or skipped. */
function verdictOf(state: "passed" | "failed" | "skipped" | "pending"): keyof TestCounts {
  return state === "pending" ? "failed" : state;
}
