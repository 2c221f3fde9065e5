import { join } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { LongestFirst } from "./scripts/longest-first.ts";

/** Projects that talk to PostgreSQL; the server is started only when one of them has tests to run. */
const postgres = ["test/postgres-setup.ts"];
/** Projects that start many processes of their own. */
const processes = ["test/compile-cache-setup.ts", "test/programs-setup.ts"];

/**
 * Files that have a process of their own: they measure memory, send signals, or wait for minutes. All other files of
 * their project share processes, because loading the modules again for each file took a third of the whole run. A file
 * that replaces modules needs one, too.
 */
const ALONE = [
  "test/server/attack.test.ts",
  "test/server/conformance.test.ts",
  "test/server/cron-conformance.test.ts",
  "test/server/fuzz.test.ts",
  "test/server/timeouts-suite.test.ts",
  "test/stores/sqlite-disk.test.ts",
  "test/examples.test.ts",
];

/** Files whose tests fail on a machine that is too busy: most of their time they wait. */
const DEADLINES = [
  "test/server/conformance.test.ts",
  "test/server/timeouts-suite.test.ts",
  "test/e2e/remote-worker.test.ts",
  "test/e2e/blocked-loop.test.ts",
  "test/e2e/sandbox/pool.test.ts",
  "test/e2e/sandbox/kill.test.ts",
  "test/e2e/sandbox/death.test.ts",
  "test/stores/postgres-failover.test.ts",
];

/**
 * They run beside the tests that watch deadlines, which mostly wait. They compute on virtual time, so a test with a
 * higher priority may take their core.
 */
const BESIDE_DEADLINES = { sequence: { groupOrder: 0 } };

function project(
  name: string,
  include: string[],
  options: TestProjectInlineConfiguration["test"] = {},
): TestProjectInlineConfiguration {
  const setupFiles = ["test/costs-setup.ts", ...(name === "deadlines" ? [] : ["test/priority-setup.ts"])];
  return { extends: true, test: { name, include, setupFiles, sequence: { groupOrder: 1 }, ...options } };
}

export default defineConfig({
  test: {
    pool: "forks",
    // Node loads the modules itself, from its compile cache, and runs them faster than the module runner of Vite.
    experimental: { viteModuleRunner: false },
    // Half of the long files wait for processes and deadlines, so five files share two cores.
    maxWorkers: 5,
    // No test needs this long; a busy machine takes ten times as long as a quiet one. Tests set no shorter limits.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    sequence: { sequencer: LongestFirst },
    // A test in which nothing was asserted has shown nothing. Waiting ends early when what is waited for is there.
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    // Hundreds of Node processes are started. With their compiled modules on disk each takes 0.25 s of CPU, not 0.6 s.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, ".cache", "compiled"),
      CURFEW_TEST_PROGRAMS: join(import.meta.dirname, ".cache", "programs"),
    },
    projects: [
      // They watch deadlines of real time, so only tests of virtual time run beside them, with a lower priority.
      project("deadlines", DEADLINES, {
        globalSetup: [...postgres, ...processes],
        ...BESIDE_DEADLINES,
      }),
      project("e2e", ["test/e2e/**/*.test.ts", ...ALONE], {
        exclude: DEADLINES,
        globalSetup: [...postgres, ...processes],
      }),
      project("server", ["test/server/**/*.test.ts"], {
        exclude: ALONE,
        globalSetup: postgres,
        isolate: false,
      }),
      project("cli", ["test/cli/**/*.test.ts", "test/import/**/*.test.ts"], {
        globalSetup: [...postgres, "test/cli-setup.ts"],
      }),
      project("dashboard", ["test/dashboard/**/*.test.ts"], {
        globalSetup: ["test/dashboard-setup.ts"],
        // Waiting for something on a page is an assertion that Vitest does not count.
        expect: { requireAssertions: false, poll: { timeout: 60_000 } },
      }),
      project("frameworks", ["test/frameworks/**/*.test.ts", "test/deploy/**/*.test.ts"], {
        // The example for Next.js is a package of its own, so its `curfew` is not the one of this folder. Only Vite knows aliases.
        alias: [{ find: /^curfew$/, replacement: join(import.meta.dirname, "src/index.ts") }],
        experimental: { viteModuleRunner: true },
      }),
      project("sim", ["test/sim/**/*.test.ts"], BESIDE_DEADLINES),
      project("stores", ["test/stores/**/*.test.ts"], {
        exclude: [...ALONE, ...DEADLINES],
        globalSetup: postgres,
        isolate: false,
        // The conformance kit runs in any test runner, so it asserts with node:assert, which Vitest does not count.
        expect: { requireAssertions: false, poll: { timeout: 60_000 } },
      }),
      project(
        "unit",
        [
          "src/**/*.test.ts",
          "test/*.test.ts",
          "test/tidy/**/*.test.ts",
          "test/engine/**/*.test.ts",
          "test/calls/**/*.test.ts",
          "test/cluster/**/*.test.ts",
        ],
        { exclude: ALONE, isolate: false, pool: "threads", ...BESIDE_DEADLINES },
      ),
    ],
  },
});
