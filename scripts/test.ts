/**
 * `npm test`: every check of the project. All stages run even when one fails, so that one run shows everything there
 * is to mend. What the tests need is built first; the other checks run beside the tests, one at a time, while tests
 * wait. Each stage says when it begins and when it ends, and the tests say every few seconds how far they are. The last
 * line on stdout is always `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { guard, memoryFolder } from "../test/postgres.ts";
import type { TestCounts } from "./count-reporter.ts";

interface Stage {
  name: string;
  command: [program: string, ...flags: string[]];
  /** Ends before the tests begin: it writes what they read. */
  first?: boolean;
  /** Shown while it runs; the others stay silent unless they fail. */
  live?: boolean;
}

const root = join(import.meta.dirname, "..");
/** In memory where there is room: SQLite syncs as on a disk, and tests with files take a quarter less CPU. */
const scratch = mkdtempSync(join((await memoryFolder()) ?? tmpdir(), "curfew-test-"));
const removeScratch = guard(scratch);
const temporary = join(scratch, "tmp");
mkdirSync(temporary);
// PostgreSQL runs as another user.
chmodSync(scratch, 0o755);
chmodSync(temporary, 0o1777);
const countsFile = join(scratch, "counts.json");
const costsFile = join(scratch, "costs.jsonl");

/** `npm run build`, without checking the types that the stage `types` checks. */
const BUILD = "tsc -p tsconfig.build.json --noCheck --singleThreaded && npm run --silent bundle";

const stages: Stage[] = [
  { name: "build", command: ["sh", "-c", BUILD], first: true },
  { name: "dashboard types", command: ["tsc", "-p", "src/dashboard"] },
  { name: "Nest types", command: ["tsc", "-p", "test/frameworks/nest"] },
  { name: "lint", command: ["biome", "check", "--error-on-warnings"] },
  { name: "docs", command: ["node", "scripts/generate-docs.ts", "--check"] },
  { name: "OpenAPI", command: ["node", "scripts/lint-openapi.ts"] },
  { name: "unused", command: ["knip"] },
  // The two that take most come when the tests that watch deadlines are nearly over. Threads of tsc would cost CPU that the
  // tests need: 19 s instead of 14 s.
  { name: "package", command: ["node", "scripts/check-package.ts"] },
  { name: "types", command: ["tsc", "--noEmit", "--singleThreaded"] },
  {
    name: "tests",
    command: ["vitest", "run", "--reporter=default", "--reporter=./scripts/count-reporter.ts"],
    live: true,
  },
];

const startedAt = performance.now();
const failed: string[] = [];

/** The time since the start, such as 3:07. */
function elapsed(): string {
  const seconds = Math.floor((performance.now() - startedAt) / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Gives whether the stage passed. */
async function run(stage: Stage): Promise<boolean> {
  const [program, ...flags] = stage.command;
  const from = performance.now();
  console.log(`${elapsed()} … ${stage.name} (${stages.indexOf(stage) + 1} of ${stages.length})`);
  const child = spawn(program, flags, {
    cwd: root,
    stdio: ["ignore", stage.live ? "inherit" : "pipe", stage.live ? "inherit" : "pipe"],
    env: {
      ...process.env,
      CURFEW_TEST_COUNTS: countsFile,
      CURFEW_TEST_COSTS: costsFile,
      TMPDIR: temporary,
      // Tests take the package from dist then, and need not build it again.
      ...(stage.live && !failed.includes("build") && { CURFEW_BUILT: "1" }),
      PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`,
    },
  });
  // Tests that watch deadlines run at the same time.
  if (!stage.first && !stage.live && child.pid) setPriority(child.pid, 10);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const code = await once(child, "close").then(
    ([exitCode]) => exitCode,
    (error: Error) => error.message,
  );
  const took = ((performance.now() - from) / 1000).toFixed(1);
  console.log(`${elapsed()} ${code === 0 ? "✓" : "✗"} ${stage.name}: ${took} s`);
  if (code !== 0 && !stage.live) console.log(`\n$ ${stage.command.join(" ")}\n${output.trimEnd()}\n`);
  return code === 0;
}

function readCounts(): TestCounts {
  try {
    return JSON.parse(readFileSync(countsFile, "utf8"));
  } catch {
    // Vitest ended before its report, for instance because its configuration is broken: no test ran.
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

console.log(`curfew on Node ${process.version}`);

/** Runs stages one after the other. */
async function runAll(queue: readonly Stage[]): Promise<void> {
  for (const stage of queue) if (!(await run(stage))) failed.push(stage.name);
}

await Promise.all(stages.filter(({ first }) => first).map((stage) => runAll([stage])));
await Promise.all([
  runAll(stages.filter(({ live }) => live)),
  runAll(stages.filter(({ first, live }) => !first && !live)),
]);
const counts = readCounts();
await removeScratch();
if (counts.passed === 0) console.log("No test passed, so nothing has been shown to work.");
if (failed.length > 0) console.log(`Failed: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || counts.failed > 0 || counts.passed === 0 ? 1 : 0;
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
