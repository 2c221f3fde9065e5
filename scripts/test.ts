/**
 * `npm test`: every check of the project. All stages run even when one fails, so that one run shows everything there
 * is to mend. What the tests need is built first. Then three lanes run side by side: the tests that mostly wait for
 * processes and deadlines, the tests that compute, and the other checks, one at a time. Each stage says when it begins and when it ends, and the tests say every few seconds how far they are. The last
 * line on stdout is always `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { TestCounts } from "./count-reporter.ts";

interface Stage {
  name: string;
  command: [program: string, ...flags: string[]];
  /** Ends before the tests begin: it writes what they read, or takes both cores. */
  first?: boolean;
  /** Shown while it runs; the others stay silent unless they fail. */
  live?: boolean;
}

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "curfew-test-"));

/** A lane of tests: Vitest with the projects that `flags` choose. */
function tests(name: string, ...flags: string[]): Stage {
  const reporters = ["--reporter=default", "--reporter=./scripts/count-reporter.ts"];
  return { name, command: ["vitest", "run", ...flags, ...reporters], live: true };
}

const stages: Stage[] = [
  { name: "types", command: ["tsc", "--noEmit"], first: true },
  { name: "package", command: ["npm", "run", "--silent", "package"], first: true },
  { name: "dashboard types", command: ["tsc", "-p", "src/dashboard"] },
  { name: "Nest types", command: ["tsc", "-p", "test/frameworks/nest"] },
  { name: "lint", command: ["biome", "check", "--error-on-warnings"] },
  { name: "docs", command: ["node", "scripts/generate-docs.ts", "--check"] },
  { name: "OpenAPI", command: ["node", "scripts/lint-openapi.ts"] },
  { name: "unused", command: ["knip"] },
  // On two cores each of its files takes a fifth of one: two of them hardly slow down the files that compute.
  tests("waiting tests", "--project=e2e", "--maxWorkers=2"),
  tests("tests", "--project=!e2e"),
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
      CURFEW_TEST_STAGE: stage.name,
      CURFEW_TEST_COUNTS: countsFile(stage),
      // Tests take the package from dist then, and need not build it again.
      ...(stage.live && !failed.includes("package") && { CURFEW_BUILT: "1" }),
      PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}`,
    },
  });
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

function countsFile({ name }: Stage): string {
  return join(scratch, `${name}.json`);
}

function readCounts(stage: Stage): TestCounts {
  try {
    return JSON.parse(readFileSync(countsFile(stage), "utf8"));
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
const lanes = stages.filter(({ live }) => live);
await Promise.all([
  ...lanes.map((stage) => runAll([stage])),
  runAll(stages.filter(({ first, live }) => !first && !live)),
]);
const counts: TestCounts = { passed: 0, failed: 0, skipped: 0 };
for (const lane of lanes.map(readCounts))
  for (const name of ["passed", "failed", "skipped"] as const) counts[name] += lane[name];
rmSync(scratch, { recursive: true, force: true });
if (counts.passed === 0) console.log("No test passed, so nothing has been shown to work.");
if (failed.length > 0) console.log(`Failed: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || counts.failed > 0 || counts.passed === 0 ? 1 : 0;
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
