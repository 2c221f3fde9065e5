import { existsSync } from "node:fs";
import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const root = join(import.meta.dirname, "..");

/** Files that take longest, longest first: one of them at the end would keep all workers but its own idle. */
const LONGEST = [
  "test/server/conformance.test.ts",
  "test/e2e/crash.test.ts",
  "test/e2e/sandbox/kill.test.ts",
  "test/e2e/server-crash.test.ts",
  "test/server/fuzz.test.ts",
  "test/e2e/workflows.test.ts",
  "test/e2e/sandbox/pool.test.ts",
  "test/e2e/remote-worker.test.ts",
  "test/e2e/crons.test.ts",
  "test/stores/postgres.test.ts",
  "test/stores/sqlite.test.ts",
  "test/sim/sim.test.ts",
  "test/sim/crons/crons.test.ts",
].map((path) => join(root, path));

/**
 * The order of Vitest, with the longest files of each project first, in a fresh clone too. The files of a project stay
 * together, so that they can share processes.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const gone = LONGEST.find((path) => !existsSync(path));
    if (gone) throw new Error(`scripts/longest-first.ts: ${gone} does not exist; correct the list`);
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.indexOf(moduleId);
      return at < 0 ? LONGEST.length : at;
    };
    const byProject = Map.groupBy(sorted, ({ project }) => project.name);
    return [...byProject.values()].flatMap((specs) => specs.sort((a, b) => rank(a) - rank(b)));
  }
}
