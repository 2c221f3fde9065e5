import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openEngine, silentLogger } from "../../src/index.ts";
import { fileFolder } from "../support/folders.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const examples = join(root, "examples/frameworks");
const scratch = fileFolder();

interface Server {
  readonly url: string;
  readonly store: string;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<{ code: number | null; signal: string | null; errors: string }>;
  readonly child: ChildProcess;
}

let nth = 0;

async function start(main: string, more: NodeJS.ProcessEnv = {}): Promise<Server> {
  nth += 1;
  const store = more.STORE ?? `sqlite:${join(scratch, `shop-${nth}.db`)}`;
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, PORT: "0", STORE: store, NO_COLOR: "1", ...more },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void (child.exitCode === null && child.kill("SIGKILL")));
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(child, "close");
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      const said = /^(?:listening on (\S+)|working)$/.exec(line);
      if (said) resolve(said[1] ?? "");
    });
    ended.then(() => reject(new Error(`${main} ended: ${errors}`)));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const [code, signal] = await ended;
    // On a busy machine a worker warns that its event loop was blocked.
    return { code, signal, errors: errors.replaceAll(/^curfew warning: .*\n/gm, "") };
  };
  return { url, store, stop, child };
}

async function ask(url: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const reply = await fetch(url, { ...init, headers: { "content-type": "application/json" } });
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
}

async function enqueue({ url }: Server, takes?: number): Promise<string> {
  const { status, body } = await ask(`${url}/users`, { email: "ada@example.org", takes });
  expect(status).toBe(202);
  return body.job as string;
}

async function stateOf(store: string, id: string) {
  const engine = await openEngine({ store, logger: silentLogger });
  try {
    return await engine.load(id);
  } finally {
    await engine.close();
  }
}

const completed = { state: "completed", result: { sent: "mail to ada@example.org" } };

/** Node runs no decorators, so the Nest example is compiled, as Nest applications are. */
async function compileNest(): Promise<string> {
  mkdirSync(join(root, ".cache"), { recursive: true });
  // Inside the repository, so that packages are found in its node_modules.
  const folder = mkdtempSync(join(root, ".cache/nest-"));
  const flags = [
    "--noEmit",
    "false",
    // The stage "Nest types" of `npm test` checks them.
    "--noCheck",
    "--outDir",
    folder,
    "--rootDir",
    root,
    "--allowImportingTsExtensions",
    "false",
  ];
  const config = join(examples, "nest");
  await run(join(root, "node_modules/.bin/tsc"), ["-p", config, ...flags], { cwd: root });
  const manifest = readFileSync(join(root, "examples/package.json"), "utf8");
  writeFileSync(join(folder, "examples/package.json"), manifest.replaceAll('.ts"', '.js"'));
  cpSync(join(root, "package.json"), join(folder, "package.json"));
  return folder;
}

let nest = "";
beforeAll(async () => {
  nest = await compileNest();
});
afterAll(() => rmSync(nest, { recursive: true, force: true }));

const mains: Record<string, () => string> = {
  express: () => join(examples, "express/main.ts"),
  fastify: () => join(examples, "fastify/main.ts"),
  hono: () => join(examples, "hono/main.ts"),
  koa: () => join(examples, "koa/main.ts"),
  nest: () => join(nest, "examples/frameworks/nest/main.js"),
};

describe.each(Object.keys(mains))("the example for %s", (name) => {
  const main = () => (mains[name] as () => string)();

  it("enqueues in a request, works beside the server, is healthy, and finishes running jobs at SIGTERM", async () => {
    const server = await start(main());
    expect((await ask(`${server.url}/health`)).status).toBe(200);
    const job = await enqueue(server);
    await expect.poll(async () => (await ask(`${server.url}/jobs/${job}`)).body).toEqual(completed);
    const slow = await enqueue(server, 1_500);
    await expect.poll(async () => (await ask(`${server.url}/jobs/${slow}`)).body.state).toBe("active");
    expect(await server.stop()).toEqual({ code: 0, signal: null, errors: "" });
    expect(await stateOf(server.store, slow)).toMatchObject({ ...completed, attempt: 1 });
  });
});

describe("the worker as a process of its own", () => {
  it("runs what a server without a worker enqueued, and drains at SIGTERM", async () => {
    const server = await start(join(examples, "express/main.ts"), { WORK: "off" });
    const job = await enqueue(server, 500);
    expect((await ask(`${server.url}/jobs/${job}`)).body.state).toBe("available");
    const worker = await start(join(examples, "worker.ts"), { STORE: server.store });
    await expect.poll(async () => (await ask(`${server.url}/jobs/${job}`)).body.state).toBe("active");
    expect(await worker.stop()).toMatchObject({ code: 0, errors: "" });
    expect((await ask(`${server.url}/jobs/${job}`)).body).toEqual(completed);
    expect(await server.stop()).toMatchObject({ code: 0 });
  });
});
