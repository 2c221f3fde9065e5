import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";

/** Projects that talk to PostgreSQL; the server is started only when one of them has tests to run. */
const postgres = { globalSetup: ["test/postgres-setup.ts"] };

function project(
  name: string,
  include: string[],
  options: TestProjectInlineConfiguration["test"] = {},
): TestProjectInlineConfiguration {
  return { extends: true, test: { name, include, ...options } };
}

export default defineConfig({
  test: {
    pool: "forks",
    // Most of the time is spent waiting for processes and deadlines, so two files share even a single core.
    maxWorkers: 2,
    testTimeout: 10_000,
    projects: [
      project("unit", [
        "src/**/*.test.ts",
        "test/*.test.ts",
        "test/tidy/**/*.test.ts",
        "test/engine/**/*.test.ts",
      ]),
      project("stores", ["test/stores/**/*.test.ts"], {
        ...postgres,
        testTimeout: 30_000,
        hookTimeout: 60_000,
      }),
      project("server", ["test/server/**/*.test.ts"], { ...postgres, testTimeout: 30_000 }),
      project("sim", ["test/sim/**/*.test.ts"], { testTimeout: 60_000 }),
      project("e2e", ["test/e2e/**/*.test.ts"], { ...postgres, testTimeout: 60_000, hookTimeout: 60_000 }),
      project("types", [], {
        // Errors in src are the types stage's to report; here they would hide which misuse is accepted.
        typecheck: {
          enabled: true,
          only: true,
          ignoreSourceErrors: true,
          include: ["test/types/**/*.test-d.ts"],
          tsconfig: "tsconfig.json",
        },
      }),
    ],
  },
});
