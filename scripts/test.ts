/**
 * `npm test`: every check of the project, one stage after the other. All stages run even when one fails, so that
 * one run shows everything there is to mend. The last line on stdout is always `N passed, N failed`.
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
  /** Shown while it runs; the others stay silent unless they fail. */
  live?: boolean;
}

const root = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "curfew-test-"));
const countsFile = join(scratch, "counts.json");

const stages: Stage[] = [
  { name: "types", command: ["tsc", "--noEmit"] },
  { name: "lint", command: ["biome", "check", "--error-on-warnings"] },
  { name: "docs", command: ["node", "scripts/generate-docs.ts", "--check"] },
  { name: "unused", command: ["knip"] },
  { name: "package", command: ["npm", "run", "--silent", "package"] },
  {
    name: "tests",
    command: ["vitest", "run", "--reporter=default", "--reporter=./scripts/count-reporter.ts"],
    live: true,
  },
];

/** Gives whether the stage passed. */
async function run(stage: Stage): Promise<boolean> {
  const [program, ...flags] = stage.command;
  const from = performance.now();
  if (stage.live) console.log(`… ${stage.name}`);
  const child = spawn(program, flags, {
    cwd: root,
    stdio: ["ignore", stage.live ? "inherit" : "pipe", stage.live ? "inherit" : "pipe"],
    env: {
      ...process.env,
      CURFEW_TEST_COUNTS: countsFile,
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
  const took = ((performance.now() - from) / 1000).toFixed(1).padStart(6);
  console.log(`${code === 0 ? "✓" : "✗"} ${stage.name.padEnd(8)}${took} s`);
  if (code !== 0 && !stage.live) console.log(`\n$ ${stage.command.join(" ")}\n${output.trimEnd()}\n`);
  return code === 0;
}

function readCounts(): TestCounts {
  try {
    return JSON.parse(readFileSync(countsFile, "utf8"));
  } catch {
    // Vitest ended before its report, for instance because its configuration is broken: no test ran.
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

console.log(`curfew on Node ${process.version}`);
const failed: string[] = [];
for (const stage of stages) {
  if (!(await run(stage))) failed.push(stage.name);
}
const counts = readCounts();
rmSync(scratch, { recursive: true, force: true });
if (counts.passed === 0) console.log("No test passed, so nothing has been shown to work.");
if (failed.length > 0) console.log(`Failed: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || counts.failed > 0 || counts.passed === 0 ? 1 : 0;
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
