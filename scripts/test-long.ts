/**
 * `npm run test:long`: the tests of which `npm test` runs a sample, at full length; about an hour on two cores. Names
 * choose some, as in `npm run test:long -- crash kill`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";

interface LongTest {
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "..");

const LONG: Readonly<Record<string, LongTest>> = {
  crash: { files: ["test/e2e/crash.test.ts"], env: { CURFEW_CRASH_SECONDS: "600" } },
  "server-crash": { files: ["test/e2e/server-crash.test.ts"], env: { CURFEW_SERVER_KILLS: "200" } },
  sandbox: {
    files: ["test/e2e/sandbox/kill.test.ts", "test/e2e/sandbox/pool.test.ts"],
    env: { CURFEW_SANDBOX_KILLS: "1000", CURFEW_SANDBOX_EDGES: "200" },
  },
  workflows: { files: ["test/e2e/workflows.test.ts"], env: { CURFEW_WORKFLOWS: "1000" } },
  sagas: { files: ["test/e2e/sagas.test.ts"], env: { CURFEW_RACE_PAIRS: "10000" } },
  paced: { files: ["test/e2e/paced.test.ts"], env: { CURFEW_PACED_ROUNDS: "200" } },
  batches: { files: ["test/engine/batch-leaks.test.ts"], env: { CURFEW_BATCH_ROUNDS: "50" } },
  redis: {
    files: [
      "test/stores/redis.test.ts",
      "test/stores/redis-store.test.ts",
      "test/stores/redis-sentinel.test.ts",
    ],
    env: { CURFEW_REDIS_GROWTH: "1", CURFEW_HISTORIES: "50" },
  },
  calls: { files: ["test/calls/leaks.test.ts"], env: { CURFEW_TIMED_OUT_CALLS: "10000" } },
  walks: { files: ["src/core/job/decide/decide.random-walks.test.ts"], env: { CURFEW_WALKS: "30000" } },
  histories: {
    files: ["test/stores/sqlite.test.ts", "test/stores/better-sqlite3.test.ts"],
    env: { CURFEW_HISTORIES: "300" },
  },
  dashboard: {
    files: ["first-paint", "long-use", "hostile"].map((name) => `test/dashboard/${name}.test.ts`),
    env: { CURFEW_FULL_DASHBOARD_TESTS: "1" },
  },
};

async function run({ files, env }: LongTest): Promise<boolean> {
  const path = `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`;
  const child = spawn("vitest", ["run", ...files], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env, PATH: path },
  });
  const [code] = await once(child, "close");
  return code === 0;
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(LONG);
const failed: string[] = [];
for (const name of names) {
  const test = LONG[name];
  if (!test)
    throw new Error(`test:long: ${name} is no long test; name one of ${Object.keys(LONG).join(", ")}`);
  console.log(`long test ${name}: ${JSON.stringify(test.env)}`);
  if (!(await run(test))) failed.push(name);
}
if (failed.length > 0) console.log(`Failed: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 ? 1 : 0;
