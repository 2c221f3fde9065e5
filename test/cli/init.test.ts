import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { command } from "../server/command.ts";
import { answer, curfew } from "./stage.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");

let cache = "";
beforeAll(() => {
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  cache = mkdtempSync(join(ROOT, ".cache/init-"));
});
afterAll(() => rmSync(cache, { recursive: true }));

/** A folder in which `curfew` is installed: modules that hand on the source, since Node strips no types in node_modules. */
function projectFolder(name: string): string {
  const folder = join(cache, name);
  const installed = join(folder, "node_modules/curfew");
  mkdirSync(installed, { recursive: true });
  const exports: Record<string, object> = {};
  for (const [path, source] of [
    [".", "src/index.ts"],
    ["./testing", "src/testing/index.ts"],
  ] as const) {
    const file = path === "." ? "index" : "testing";
    writeFileSync(
      join(installed, `${file}.js`),
      `export * from ${JSON.stringify(pathToFileURL(join(ROOT, source)).href)};\n`,
    );
    writeFileSync(join(installed, `${file}.d.ts`), `export * from ${JSON.stringify(join(ROOT, source))};\n`);
    exports[path] = { types: `./${file}.d.ts`, default: `./${file}.js` };
  }
  writeFileSync(join(installed, "package.json"), JSON.stringify({ name: "curfew", type: "module", exports }));
  return folder;
}

/** The errors that the compiler finds in the files of the starter. Errors in src are the types stage's to report. */
async function typeErrors(folder: string): Promise<string[]> {
  const said = await run(
    join(ROOT, "node_modules/.bin/tsc"),
    ["-p", folder, "--typeRoots", join(ROOT, "node_modules/@types")],
    {
      cwd: folder,
    },
  ).then(
    () => "",
    (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
  );
  return said.split("\n").filter((line) => line !== "" && !/^(?:\.\.\/)+src\/| {2}/.test(line));
}

describe("curfew init", () => {
  it("writes a starter that compiles and whose test passes", async () => {
    const folder = projectFolder("fresh");
    const written = await answer(["init", folder]);
    expect(written).toMatchObject({
      written: ["jobs.ts", "worker.ts", "web.ts", "jobs.test.ts", "package.json", "tsconfig.json"],
      kept: [],
    });
    expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))).toMatchObject({
      name: "fresh",
      type: "module",
    });
    expect(await typeErrors(folder)).toEqual([]);
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter", "tap"], { cwd: folder });
    expect(stdout).toMatch(/# pass 2\n/);
    expect(stdout).toMatch(/# fail 0\n/);
  });

  it("writes a compiler setup that finds a wrong payload", async () => {
    const folder = projectFolder("wrong");
    await answer(["init", folder]);
    const web = readFileSync(join(folder, "web.ts"), "utf8");
    writeFileSync(join(folder, "web.ts"), web.replace('subject: "Hello"', "subject: 42"));
    expect((await typeErrors(folder)).join("\n")).toMatch(/^web\.ts\(\d+,\d+\): error TS2322/);
  });

  it("writes a web server and a worker that run a job together", async () => {
    const folder = projectFolder("running");
    await answer(["init", folder]);
    const web = spawn(process.execPath, ["web.ts"], {
      cwd: folder,
      env: { PATH: process.env.PATH, PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void web.kill("SIGKILL"));
    const [line] = (await once(web.stdout.setEncoding("utf8"), "data")) as [string];
    const url = /http:\/\/localhost:\d+/.exec(line)?.[0];
    const path = (await (await fetch(`${url}/?to=me@example.com`)).text()).trim();
    expect(path).toMatch(/^\/jobs\/[0-9a-f-]{36}$/);
    const worker = command(["work", "worker.ts"], { cwd: folder });
    await worker.said(/runs mail\.send/);
    await expect.poll(async () => (await fetch(url + path)).text()).toBe("completed\n");
    worker.kill("SIGTERM");
    expect(await worker.ended).toMatchObject({ code: 0 });
    // The second signal must not end it while it closes.
    web.kill("SIGTERM");
    web.kill("SIGTERM");
    expect(await once(web, "exit")).toEqual([0, null]);
  });

  it("changes no file that exists, and uses Vitest where the project does", async () => {
    const folder = projectFolder("existing");
    const manifest = JSON.stringify({ name: "mine", devDependencies: { vitest: "*" } });
    writeFileSync(join(folder, "package.json"), manifest);
    writeFileSync(join(folder, "jobs.ts"), "// mine\n");
    const { code, stdout } = await curfew(["init", folder]);
    expect(code).toBe(0);
    expect(stdout).toContain("kept   jobs.ts, which exists");
    expect(stdout).toContain("npx vitest run jobs.test.ts");
    expect(readFileSync(join(folder, "package.json"), "utf8")).toBe(manifest);
    expect(readFileSync(join(folder, "jobs.ts"), "utf8")).toBe("// mine\n");
    expect(readFileSync(join(folder, "jobs.test.ts"), "utf8")).toContain('from "vitest"');
    const again = await curfew(["init", folder]);
    expect(again.stdout).toContain("Nothing was written: all files exist.");
    expect(again.stdout).not.toContain("Next:");
  });

  it("says what an existing project lacks: ES modules, the driver of its store, and the compiler", async () => {
    const folder = projectFolder("commonjs");
    const manifest = { name: "mine", type: "commonjs", dependencies: { curfew: "*" } };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    expect(await answer(["init", folder, "--store", "postgres://localhost/mine"])).toMatchObject({
      setup: [
        "npm pkg set type=module",
        'npm install pg@"^8.16.0"',
        'npm install -D @types/node@"^24.0.0" typescript@">=5.9"',
      ],
    });
    // The starter runs once the first of them is done: the others install packages, and the test needs none of them.
    await run("npm", ["pkg", "set", "type=module"], { cwd: folder });
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter", "tap"], { cwd: folder });
    expect(stdout).toMatch(/# pass 2\n/);
  });

  it("puts the driver of PostgreSQL into a new package.json", async () => {
    const folder = projectFolder("postgres");
    expect(await answer(["init", folder, "--store", "postgres://localhost/mine"])).toMatchObject({
      setup: ["npm install"],
    });
    expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))).toMatchObject({
      dependencies: { pg: "^8.16.0" },
    });
  });

  it("refuses a store that does not fit into source code, and a folder that is a file", async () => {
    const folder = join(cache, "refused");
    const wrong = await curfew(["init", folder, "--store", 'sqlite:a" + evil + "']);
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain("--store: not an address for a starter");
    expect(existsSync(folder)).toBe(false);
    writeFileSync(join(cache, "file"), "");
    const file = await curfew(["init", join(cache, "file")]);
    expect(file).toMatchObject({ code: 1, stdout: "" });
    expect(file.stderr).toContain("cannot be written");
    expect(readdirSync(cache)).toContain("file");
  });
});
