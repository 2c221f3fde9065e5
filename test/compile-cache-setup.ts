import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";

const run = promisify(execFile);

/** Node writes its compile cache when a process ends by itself, which processes that a test kills never do. */
const MODULES = [
  "index.ts",
  "engine/engine.ts",
  "client/index.ts",
  "server/index.ts",
  "sandbox/child-attempt.ts",
];

/** Fills the compile cache before the first test. Modules that have not changed are in it already. */
export default async function setup(project: TestProject): Promise<void> {
  await fillCompileCache(
    project,
    MODULES.map((path) => join(import.meta.dirname, "..", "src", path)),
  );
}

export async function fillCompileCache(project: TestProject, files: readonly string[]): Promise<void> {
  const imports = files.map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};`);
  await run(process.execPath, ["--input-type=module", "--eval", imports.join("")], {
    env: { ...process.env, ...project.config.env },
  });
}
