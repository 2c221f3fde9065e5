import { globSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundle } from "./bundle.ts";
import { fillCompileCache } from "./compile-cache-setup.ts";

const root = join(import.meta.dirname, "..");

/** Processes that are started again and again because tests kill them, and the thread that SQLite starts in them. */
const SCRIPTS = [
  ...globSync("test/e2e/*/{worker-process,host-process,child}.ts", { cwd: root }),
  "test/webhooks/server-main.ts",
  "src/stores/sqlite/checkpoint-thread.ts",
];

/** Has the modules that the scripts share. Nothing runs when it is imported. */
const SHARED = "src/server/index.ts";

/** Makes one program of each script. It starts in 0.10 s of CPU, and the script in 0.22 s. */
export default async function setup(project: TestProject): Promise<void> {
  const outdir = project.config.env.CURFEW_TEST_PROGRAMS as string;
  await bundle({
    entryPoints: [...SCRIPTS, SHARED],
    outbase: root,
    outdir,
    // As deep as the modules of src, which look for files beside them.
    chunkNames: "src/chunks/[name]-[hash]",
  });
  await fillCompileCache(project, [join(outdir, SHARED.replace(/\.ts$/, ".js"))]);
}
