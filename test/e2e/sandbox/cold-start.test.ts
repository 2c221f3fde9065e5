import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);
const index = new URL("../../../src/index.ts", import.meta.url).href;

/** Prints the address of every module that the package loads when it is imported. */
const PROGRAM = `
  import { registerHooks } from "node:module";
  const loaded = [];
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  await import(${JSON.stringify(index)});
  console.log(JSON.stringify(loaded));
`;

it("a module that imports the package loads neither the engine nor a driver", async () => {
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", PROGRAM]);
  const loaded: string[] = JSON.parse(stdout);
  expect(loaded).toContain(index);
  const heavy =
    /engine\/engine\.ts$|\/(pg|better-sqlite3|hono|zod|@opentelemetry|croner)\/|^node:(http|sqlite)$/;
  expect(loaded.filter((url) => heavy.test(url))).toEqual([]);
  // Each module costs every start of a sandbox about half a millisecond.
  expect(loaded.length).toBeLessThan(170);
});
