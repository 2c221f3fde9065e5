import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { openEngine, silentLogger } from "../../src/index.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");

/** The generated types and the program, in a folder by the content of the document: unchanged, they are made once. */
async function generated(): Promise<string> {
  const use = join(import.meta.dirname, "generated-client/use.ts.txt");
  const hash = createHash("sha256")
    .update(readFileSync(join(ROOT, "docs/openapi.json")))
    .update(readFileSync(use));
  const folder = join(ROOT, ".cache/openapi", hash.digest("hex").slice(0, 16));
  if (existsSync(join(folder, "compiled"))) return folder;
  mkdirSync(folder, { recursive: true });
  copyFileSync(use, join(folder, "use.ts"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const modules = existsSync(join(ROOT, "tools/openapi/node_modules/openapi-fetch")) ? "tools/openapi/" : "";
  if (!existsSync(join(folder, "node_modules")))
    symlinkSync(join(ROOT, modules, "node_modules"), join(folder, "node_modules"));
  await run(process.execPath, [join(ROOT, "tools/openapi/generate.js"), join(folder, "client.d.ts")]);
  const options = {
    compilerOptions: {
      ...{ strict: true, noEmit: true, target: "es2022", module: "nodenext", types: ["node"] },
      ...{
        allowImportingTsExtensions: true,
        skipLibCheck: false,
        typeRoots: [join(ROOT, "node_modules/@types")],
      },
    },
    files: ["use.ts"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  await run(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder]).catch(({ stdout }) => {
    throw new Error(`the generated client does not compile:\n${stdout}`);
  });
  writeFileSync(join(folder, "compiled"), "");
  return folder;
}

it("a client that is generated from the OpenAPI document compiles, and works with a real server", async () => {
  const folder = await generated();
  await using engine = await openEngine({ store: "memory:", logger: silentLogger });
  const server = createServer(engine);
  const listening = await listen(server, { port: 0 });
  try {
    const { stdout } = await run(process.execPath, [join(folder, "use.ts"), listening.url]);
    expect(JSON.parse(stdout)).toEqual({
      isSame: true,
      acked: 200,
      state: "completed",
      steps: 2,
      version: 1,
      missing: "not_found",
      queues: ["default"],
    });
  } finally {
    await listening.close();
  }
});
