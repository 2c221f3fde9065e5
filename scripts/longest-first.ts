import { existsSync } from "node:fs";
import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const root = join(import.meta.dirname, "..");

/** How many seconds the long files take on two cores, as a run of CI printed them; all others take less than ten. */
const SECONDS: Readonly<Record<string, number>> = {
  "test/dashboard/first-paint.test.ts": 30,
  "test/dashboard/settings-pages.test.ts": 35,
  "test/import/kill.test.ts": 25,
  "test/e2e/webhooks.test.ts": 25,
  "test/stores/why/situations.test.ts": 45,
  "test/stores/redis.test.ts": 20,
  "test/stores/redis-store.test.ts": 29,
  "test/stores/producer.test.ts": 17,
  "test/stores/sqlite.test.ts": 40,
  "test/stores/better-sqlite3.test.ts": 25,
  "test/stores/kit-self.test.ts": 25,
  "test/stores/postgres.test.ts": 26,
  "test/stores/postgres-races.test.ts": 25,
  "test/stores/postgres-growth.test.ts": 25,
  "test/sim/workflows/workflows.test.ts": 25,
  "test/sim/sagas/sagas.test.ts": 22,
  "test/sim/timeouts/timeouts.test.ts": 16,
  "test/sim/mutants.test.ts": 14,
  "test/sim/homes/homes.test.ts": 11,
  "test/e2e/crons.test.ts": 10,
  "test/e2e/unique.test.ts": 14,
  "test/frameworks/servers.test.ts": 21,
  "test/server/cron-conformance.test.ts": 131,
  "test/server/conformance.test.ts": 50,
  "test/dashboard/other-pages.test.ts": 80,
  "test/cli/operators.test.ts": 24,
  "test/dashboard/hostile.test.ts": 48,
  "test/dashboard/long-use.test.ts": 46,
  "test/e2e/sandbox/pool.test.ts": 45,
  "test/e2e/crash.test.ts": 44,
  "test/e2e/sandbox/kill.test.ts": 43,
  "test/dashboard/pages.test.ts": 42,
  "test/sim/sim.test.ts": 40,
  "test/e2e/remote-worker.test.ts": 38,
  "test/e2e/package.test.ts": 48,
  "test/e2e/runtimes.test.ts": 30,
  "test/dashboard/actions.test.ts": 36,
  "test/dashboard/demo.test.ts": 20,
  "test/e2e/server-crash.test.ts": 27,
  "test/dashboard/other-actions.test.ts": 27,
  "test/e2e/workflows.test.ts": 26,
  "test/server/timeouts-suite.test.ts": 26,
  "test/cli/transfer.test.ts": 13,
  "test/cli/mcp.test.ts": 14,
  "test/examples.test.ts": 19,
  "test/cli/changes.test.ts": 6,
  "test/cli/bench.test.ts": 17,
  "test/server/attack.test.ts": 65,
  "test/server/fuzz.test.ts": 30,
  "test/stores/postgres-store.test.ts": 16,
  "test/stores/postgres-failover.test.ts": 15,
  "test/cli/work.test.ts": 15,
  "test/e2e/timeouts.test.ts": 15,
  "test/e2e/sandbox/attack.test.ts": 23,
  "test/sim/crons/crons.test.ts": 14,
  "test/e2e/limits.test.ts": 17,
  "test/cli/failures.test.ts": 13,
  "test/e2e/blocked-loop.test.ts": 13,
  "test/dashboard/job-lists.test.ts": 13,
  "test/e2e/sagas.test.ts": 12,
  "test/cli/answers.test.ts": 12,
  "test/cli/doctor.test.ts": 25,
  "test/stores/sqlite-own-database.test.ts": 12,
  "test/e2e/sandbox/context.test.ts": 16,
  "test/server/serve.test.ts": 10,
  "test/e2e/all-events.test.ts": 10,
  "test/cli/top.test.ts": 10,
};

/**
 * The order of Vitest, with the longest files first, in a fresh clone too: one of them at the end would keep all workers
 * but its own idle. Long files that compute and long files that wait are mixed by it: beside the files that watch
 * deadlines, every second file computes. The files of projects that share processes come last, each project together, and
 * the project with the longest file first.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = new Map(Object.entries(SECONDS).map(([path, count]) => [join(root, path), count]));
    const gone = [...seconds.keys()].find((path) => !existsSync(path));
    if (gone) throw new Error(`scripts/longest-first.ts: ${gone} does not exist; correct the list`);
    const longestFirst = (specs: readonly TestSpecification[]) =>
      specs.toSorted((a, b) => (seconds.get(b.moduleId) ?? 0) - (seconds.get(a.moduleId) ?? 0));
    const sorted = await super.sort(files);
    const alone = Map.groupBy(
      longestFirst(sorted.filter(({ project }) => project.config.isolate)),
      ({ project }) => project.config.sequence.groupOrder,
    );
    const together = Map.groupBy(
      longestFirst(sorted.filter(({ project }) => !project.config.isolate)),
      ({ project }) => project.name,
    );
    return [...[...alone.values()].flatMap(mixed), ...[...together.values()].flat()];
  }
}

/** Every second one watches deadlines, while there are any. */
function mixed(specs: readonly TestSpecification[]): TestSpecification[] {
  const waiting = specs.filter(({ project }) => project.name === "deadlines");
  const computing = specs.filter(({ project }) => project.name !== "deadlines");
  const pairs = waiting.flatMap((spec, index) => [spec, ...computing.slice(index, index + 1)]);
  return [...pairs, ...computing.slice(waiting.length)];
}
