import { join } from "node:path";
import { type BuildOptions, build } from "esbuild";

/** Makes programs with few files of scripts with many modules: loading the modules takes most of the CPU of a start. */
export async function bundle(options: BuildOptions): Promise<void> {
  await build({
    absWorkingDir: join(import.meta.dirname, ".."),
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    // They load files of their own at run time.
    external: ["better-sqlite3", "pg"],
    banner: {
      js: 'import{createRequire as requireOf}from"node:module";const require=requireOf(import.meta.url);',
    },
    logLevel: "warning",
    ...options,
  });
}
