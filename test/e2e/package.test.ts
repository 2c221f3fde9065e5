import { execFile } from "node:child_process";
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { fileFolder } from "../support/folders.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const compiler = join(root, "node_modules/.bin/tsc");
/** `npm` and `tsc` are scripts for the Node that runs this test. */
const env = { ...process.env, PATH: `${join(process.execPath, "..")}:${process.env.PATH}` };

async function build(dist: string): Promise<void> {
  await run(compiler, ["-p", "tsconfig.build.json", "--outDir", dist], { cwd: root, env });
  await run(process.execPath, ["scripts/bundle-package.ts", dist], { cwd: root, env });
}

/** The package as users get it: built, packed, unpacked into their `node_modules`, and compiled against. */
const user = fileFolder();

beforeAll(async () => {
  const built = join(user, "built");
  // `npm test` has built the package before.
  if (process.env.CURFEW_BUILT === "1")
    await cp(join(root, "dist"), join(built, "dist"), { recursive: true });
  else await build(join(built, "dist"));
  for (const name of ["package.json", "CHANGELOG.md"]) await copyFile(join(root, name), join(built, name));
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts"], { cwd: built, env });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const installed = join(user, "node_modules/curfew");
  await mkdir(installed, { recursive: true });
  await run("tar", ["xzf", join(built, filename), "-C", installed, "--strip-components=1"]);
  // What npm would install with it, and what this user has besides; a registry is not asked.
  const { dependencies } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const server = ["hono", "@hono/node-server", "zod"];
  for (const name of [...Object.keys(dependencies), ...server, "@types/node"]) {
    const link = join(user, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(root, "node_modules", name), link);
  }
  await cp(join(import.meta.dirname, "package"), join(user, "source"), { recursive: true });
  await writeFile(join(user, "package.json"), '{ "type": "module" }');
  await writeFile(
    join(user, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "ES2023",
        lib: ["ES2024", "ESNext.Disposable"],
        types: ["node"],
        module: "nodenext",
        strict: true,
        declaration: true,
        skipLibCheck: true,
        rewriteRelativeImportExtensions: true,
        sourceMap: true,
        rootDir: "source",
        outDir: "compiled",
      },
      include: ["source"],
    }),
  );
  await run(compiler, ["-p", user], { cwd: user, env });
});

describe("a sandbox of the built package", () => {
  it.each([
    ["compiled", "compiled/main.js"],
    ["as TypeScript", "source/main.ts"],
  ])("runs a module that is %s, as a process and as a thread", async (_, main) => {
    const { stdout, stderr } = await run(process.execPath, [join(user, main)], { cwd: user, env });
    expect(stderr).toBe("");
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ kind }) => kind)).toEqual(["process", "thread"]);
    for (const { result, lines: log, followers, checkpoint, error } of lines) {
      expect({ result, log, followers, checkpoint }).toEqual({
        result: { year: 2030 },
        log: ["printed", "enqueued"],
        followers: 1,
        checkpoint: { begun: true },
      });
      expect(error).toMatchObject({ type: "timeout", forced: true });
      // Line 9 of the source, wherever the compiler has put it.
      expect(error.stack).toMatch(/^It hung here:\n {4}at spin \(.*source\/work\.ts:9:\d+\)\n/);
    }
  });

  it("brings the entries of the child and the reaper with it", async () => {
    const sandbox = join(user, "node_modules/curfew/dist/sandbox");
    for (const name of ["child", "reaper-process"])
      expect(await readFile(join(sandbox, `${name}.js`), "utf8")).not.toBe("");
  });
});

describe("the files of the built package", () => {
  it("have no source maps, because the sources that those would name are not shipped", async () => {
    const dist = join(user, "node_modules/curfew/dist");
    const names = await readdir(dist, { recursive: true });
    const scripts = names.filter((name) => name.endsWith(".js"));
    expect(scripts).toContain("index.js");
    expect(names.filter((name) => name.endsWith(".map"))).toEqual([]);
    for (const name of scripts)
      expect(await readFile(join(dist, name), "utf8")).not.toContain("sourceMappingURL=");
  });
});

describe("the demo of the built package", () => {
  it("kills an endless loop in its sandbox and says where it hung", async () => {
    const main = join(user, "node_modules/curfew/dist/cli/main.js");
    const flags = ["serve", "--demo", "--store", "memory:", "--port", "0"];
    const demo = execFile(process.execPath, [main, ...flags], { cwd: user, env });
    const ended = new Promise((resolve) => demo.once("close", resolve));
    let output = "";
    const killed = new Promise<void>((resolve, reject) => {
      const hear = (text: string) => {
        output += text;
        if (
          /job killed .*type=report\.render .*at placeTables \(.*dist\/demo\/render-report\.js/.test(output)
        )
          resolve();
      };
      demo.stdout?.on("data", hear);
      demo.stderr?.on("data", hear);
      demo.once("close", () => reject(new Error(output)));
    });
    await killed;
    demo.kill("SIGTERM");
    expect(await ended).toBe(0);
  });
});

describe("a package that is missing", () => {
  it.each([
    [
      "pg",
      'openEngine({ store: "postgres://localhost/shop" })',
      /PostgreSQL store .* npm install pg@\^8\.\d+\.0$/,
    ],
    [
      "@opentelemetry/api",
      'import("curfew/tracing").then(({ openTelemetry }) => openTelemetry())',
      /Tracing .* npm install @opentelemetry\/api@\^1\.\d+\.0$/,
    ],
  ])("is an error with the command that installs it: %s", async (_, call, says) => {
    const program = `import { openEngine } from "curfew"; await ${call}.catch(({ code, message }) => console.log(code, message))`;
    const flags = ["--input-type=module", "--eval", program];
    const { stdout } = await run(process.execPath, flags, { cwd: user, env });
    expect(stdout.trim()).toMatch(/^missing_package /);
    expect(stdout.trim()).toMatch(says);
  });

  it.each([
    ["curfew/server", ["--input-type=module", "--eval", 'await import("curfew/server")']],
    ["curfew serve", ["node_modules/curfew/dist/cli/main.js", "serve"]],
  ])("is named by %s, with all that the server needs", async (_, flags) => {
    const hono = join(user, "node_modules/hono");
    await rename(hono, `${hono}-away`);
    try {
      const running = run(process.execPath, flags, { cwd: user, env });
      await expect(running).rejects.toMatchObject({
        stderr: expect.stringMatching(
          /needs the package hono; run: npm install hono@\S+ @hono\/node-server@\S+ zod@\S+\n/,
        ),
      });
    } finally {
      await rename(`${hono}-away`, hono);
    }
  });
});

describe("a program that a bundler made", () => {
  it("works on the memory and the SQLite store, and runs sandboxes of the installed package", async () => {
    const out = join(user, "bundled");
    const esbuild = (names: string[], ...flags: string[]) =>
      run(
        join(root, "node_modules/.bin/esbuild"),
        [
          ...names,
          "--bundle",
          "--platform=node",
          "--format=esm",
          `--outdir=${out}`,
          "--log-level=error",
          ...flags,
        ],
        { cwd: join(user, "compiled"), env },
      );
    await esbuild(["main.js", "embedded.js"], "--external:pg", "--external:better-sqlite3");
    // The module of a sandbox shares curfew with the process that loads it.
    await esbuild(["work.js"], "--external:curfew");
    const main = await run(process.execPath, [join(out, "main.js")], { cwd: user, env });
    const results = main.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).result);
    expect(results).toEqual([{ year: 2030 }, { year: 2030 }]);
    const embedded = join(out, "embedded.js");
    const { stdout } = await run(process.execPath, [embedded], { cwd: user, env });
    expect(stdout).toBe("memory: Hello, Ada!\nsqlite: Hello, Ada!\n");

    // Where curfew is not installed, everything but sandboxes works, and those say what to do.
    const alone = await mkdtemp(join(tmpdir(), "curfew-alone-"));
    await cp(out, alone, { recursive: true });
    await writeFile(join(alone, "package.json"), '{ "type": "module" }');
    expect((await run(process.execPath, [join(alone, "embedded.js")], { cwd: alone, env })).stdout).toBe(
      stdout,
    );
    await expect(run(process.execPath, [join(alone, "main.js")], { cwd: alone, env })).rejects.toMatchObject({
      stderr: expect.stringMatching(/sandbox\/\S+ of curfew is not beside .*--external:curfew/),
    });
    await rm(alone, { recursive: true });
  });
});

describe("the SQLite store of the built package", () => {
  it("brings the thread for its checkpoints with it, and the thread works", async () => {
    const entry = join(user, "node_modules/curfew/dist/stores/sqlite/checkpoint-thread.js");
    const order = { kind: "checkpoint", store: 1, path: join(user, "jobs.db") };
    const program = `
      const thread = new (require("node:worker_threads").Worker)(${JSON.stringify(entry)});
      thread.once("message", (report) => console.log(JSON.stringify(report)) ?? thread.terminate());
      thread.postMessage(${JSON.stringify(order)});`;
    const { stdout } = await run(process.execPath, ["-e", program], { cwd: user, env });
    expect(JSON.parse(stdout)).toEqual({ store: 1 });
  });
});
