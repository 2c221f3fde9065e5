import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(import.meta.dirname, "../../..");

/**
 * The program of a process that tests start often. In the tests it is what `test/programs-setup.ts` made of the script,
 * which starts with half of the CPU; elsewhere it is the script.
 */
export function program(script: URL): string {
  const path = fileURLToPath(script);
  const folder = process.env.CURFEW_TEST_PROGRAMS;
  return folder ? join(folder, relative(root, path).replace(/\.ts$/, ".js")) : path;
}
