import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openEngine } from "../../src/open.ts";
import { hashKey } from "../../src/server/access/auth.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { command, server } from "./command.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-cli-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const workers = join(import.meta.dirname, "cli/workers.ts");

interface Sent {
  readonly job: { readonly id: string; readonly state: string; readonly result?: unknown };
}

async function send(url: string, path: string, body?: unknown, key?: string): Promise<Response> {
  return fetch(url + path, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
  });
}

async function enqueue(url: string, job: object): Promise<string> {
  const response = await send(url, "/ojs/v1/jobs", job);
  expect(response.status).toBe(201);
  return ((await response.json()) as Sent).job.id;
}

/** Asks until the job is in a state; a real process under test gives no event to wait for. */
async function untilState(url: string, id: string, state: string): Promise<Sent["job"]> {
  for (;;) {
    const { job } = (await (await send(url, `/ojs/v1/jobs/${id}`)).json()) as Sent;
    if (job.state === state) return job;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("curfew serve", () => {
  it("curfew serve prints its address, serves, works, and drains on SIGTERM", async () => {
    const running = await server(["--workers", workers], { cwd: folder });
    const { url } = running;
    expect(running.stdout).toMatch(
      /^curfew \d+\.\d+\.\d+ serves Open Job Spec on http:\/\/127\.0\.0\.1:\d+\n/,
    );
    expect((await send(url, "/health")).status).toBe(200);
    expect(await (await send(url, "/")).text()).toContain("<title>curfew</title>");
    expect(statSync(join(folder, "curfew.db")).isFile()).toBe(true);
    const quick = await enqueue(url, { type: "test.quick", args: [], options: { queue: "other" } });
    expect(await untilState(url, quick, "completed")).toMatchObject({ result: "done" });
    const slow = await enqueue(url, {
      type: "test.slow",
      args: [{ takes: 20, until: join(folder, "drained") }],
    });
    await untilState(url, slow, "active");
    running.kill("SIGTERM");
    await running.said(/waiting for running jobs/);
    await expect(send(url, "/health")).rejects.toThrow();
    writeFileSync(join(folder, "drained"), "");
    expect(await running.ended).toMatchObject({ code: 0 });
    await using engine = await openEngine({ store: `sqlite:${join(folder, "curfew.db")}` });
    expect(await rowOf(engine.store, slow)).toMatchObject({ state: "completed", attempt: 1 });
  });

  it("jobs that exceed the drain are given back without spending the attempt", async () => {
    const running = await server(["--workers", workers, "--drain", "100ms"], { cwd: folder });
    const slow = await enqueue(running.url, {
      type: "test.slow",
      args: [{ takes: 60_000 }],
      options: { grace_period: 0 },
    });
    await untilState(running.url, slow, "active");
    running.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: 0 });
    await using engine = await openEngine({ store: `sqlite:${join(folder, "curfew.db")}` });
    expect(await rowOf(engine.store, slow)).toMatchObject({ state: "available", attempt: 0 });
  });

  it("ends at once at the second signal", async () => {
    const running = await server(["--store", "memory:", "--workers", workers]);
    const slow = await enqueue(running.url, { type: "test.slow", args: [{ takes: 60_000 }] });
    await untilState(running.url, slow, "active");
    running.kill("SIGTERM");
    await running.said(/send it again to stop at once/);
    running.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 143 });
  });

  it("writes JSON lines only, when asked to", async () => {
    const running = await server(["--store", "memory:", "--json", "--log-level", "debug"]);
    await enqueue(running.url, { type: "some.type", args: [] });
    running.kill("SIGTERM");
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: "listening", url: running.url, keys: false }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ msg: "job enqueued", type: "some.type" }));
    expect(lines.at(-1)).toMatchObject({ msg: "stopped" });
  });

  it.each([["--json"], []])("says why a store does not answer %j", async (...flags) => {
    const running = command(["serve", "--store", "postgres://user:hunter2@127.0.0.1:1/x", ...flags]);
    await running.said(/cannot reach the store yet.*ECONNREFUSED|ECONNREFUSED.*cannot reach the store yet/);
    running.kill("SIGKILL");
    const { stdout, stderr } = await running.ended;
    expect(stdout + stderr).not.toContain("hunter2");
  });

  it("takes a function that gives the options of a worker", async () => {
    const module = join(import.meta.dirname, "cli/workers-function.ts");
    const { url } = await server(["--store", "memory:", "--workers", module]);
    const id = await enqueue(url, { type: "test.named", args: [] });
    expect(await untilState(url, id, "completed")).toMatchObject({ result: "memory" });
  });

  it("asks for keys, and reads them again on SIGHUP", async () => {
    const file = join(folder, "keys.json");
    const make = async (name: string, role: string) => {
      const { code, stdout } = await command([
        "keys",
        "new",
        "--name",
        name,
        "--role",
        role,
        "--file",
        file,
        "--json",
      ]).ended;
      expect(code).toBe(0);
      return (JSON.parse(stdout) as { key: string }).key;
    };
    const producer = await make("web", "producer");
    const running = await server(["--store", "memory:", "--keys", file, "--host", "0.0.0.0"]);
    const { url } = running;
    const job = { type: "some.type", args: [] };
    expect((await send(url, "/ojs/v1/jobs", job)).status).toBe(401);
    expect((await send(url, "/ojs/v1/jobs", job, producer)).status).toBe(201);
    expect((await send(url, "/ojs/v1/workers/fetch", { queues: ["default"] }, producer)).status).toBe(403);
    expect((await send(url, "/health")).status).toBe(200);
    const worker = await make("fleet", "worker");
    expect((await send(url, "/ojs/v1/workers/fetch", { queues: ["default"] }, worker)).status).toBe(401);
    running.kill("SIGHUP");
    await running.said(/key file was read again/);
    expect((await send(url, "/ojs/v1/workers/fetch", { queues: ["default"] }, worker)).status).toBe(200);
    running.kill("SIGTERM");
    const { stdout, stderr } = await running.ended;
    expect(stdout + stderr).not.toContain(producer);
  });
});

describe("the first screen of the README", () => {
  const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");

  it("is true: npm start serves, and the request it shows is accepted", async () => {
    expect(readme).toContain("npm ci && npm start ");
    const root = join(import.meta.dirname, "../..");
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const [build, start] = manifest.scripts.start.split(" && ");
    expect(build).toBe("node scripts/build-dashboard.ts --if-old");
    const [program, main, ...flags] = start.split(" ");
    expect([program, main]).toEqual(["node", "src/cli/main.ts"]);
    const running = command([...flags, "--port", "0"], { cwd: folder });
    const [url] = await running.said(/http:\/\/[^\s"]+:\d+/);
    const [, path, body] = /curl http:\/\/127\.0\.0\.1:8080(\S+) [^\n]*\n\s+-d '([^']+)'/.exec(
      readme,
    ) as RegExpExecArray;
    const response = await send(url, path as string, JSON.parse(body as string));
    expect(response.status).toBe(201);
    expect(await response.json()).toMatchObject({
      job: { type: "card.charge", state: "available", timeout_ms: 30_000 },
    });
  });
});

describe("what goes wrong at the start is said in one line", () => {
  it.each([
    [
      ["--host", "0.0.0.0"],
      /^curfew: host: "0\.0\.0\.0" can be reached from other machines.*curfew keys new/,
    ],
    [["--store", "mysql://x"], /^curfew: store: "mysql:\/\/x" is not a known store/],
    [["--store", "sqlite:/nowhere/at/all.db"], /^curfew: .*nowhere/],
    [["--workers", "./none.ts"], /^curfew: --workers: there is no file .*none\.ts; check the path/],
    [
      ["--workers", join(import.meta.dirname, "cli/no-workers.ts")],
      /^curfew: --workers: the default export of .* 42 /,
    ],
    [["--keys", "none.json"], /^curfew: keys: the file none\.json does not exist/],
    [["--port", "x"], /error: option '--port <port>' argument 'x' is invalid\. Write a whole number\./],
    [["--port", "99999"], /^curfew: port: 99999/],
    [["--drain", "soon"], /^curfew: drain: "soon"/],
    [["--cors", "*"], /^curfew: cors: "\*"/],
    [["--bogus"], /error: unknown option '--bogus'/],
  ])("serve %j", async (flags, message) => {
    const { code, stdout, stderr } = await command(["serve", "--store", "memory:", "--port", "0", ...flags], {
      cwd: folder,
    }).ended;
    const [line = ""] = stderr.split("\n").filter((text) => !/ warn /.test(text));
    expect(line).toMatch(message);
    expect(stdout).toBe("");
    expect(code).toBe(flags.includes("sqlite:/nowhere/at/all.db") ? 3 : 2);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it("a port that is in use", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const { code, stderr } = await command(["serve", "--store", "memory:", "--port", String(port)]).ended;
    taken.close();
    expect(stderr).toContain(`curfew: 127.0.0.1:${port} is already in use; choose another port`);
    expect(code).toBe(2);
  });

  it("a Node that is too old", async () => {
    const pretend = `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.20.2"}})`;
    const { code, stdout, stderr } = await command(["serve"], { node: ["--import", pretend] }).ended;
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "",
      stderr: "curfew needs Node 22.14 or newer; this is Node 20.20.2\n",
    });
  });
});

describe("curfew migrate", () => {
  it("makes the tables of a store, and says so each time", async () => {
    const store = `sqlite:${join(folder, "jobs.db")}`;
    for (let round = 0; round < 2; round++) {
      const { code, stdout } = await command(["migrate", "--store", store]).ended;
      expect({ code, stdout }).toEqual({ code: 0, stdout: `${store} is up to date\n` });
    }
    expect(statSync(join(folder, "jobs.db")).mode & 0o777).toBe(0o600);
    const engine = await openEngine({ store });
    await engine.close();
  });

  it.each([
    [[], /required option '--store <address>'/],
    [["--store", "memory:"], /curfew: --store: "memory:".*has no tables/],
    [["--store", "sqlite:a.db", "--schema", "jobs"], /curfew: --schema: "jobs".*only PostgreSQL has schemas/],
    [["--store", "redis://host"], /curfew: --store: "redis:.*has no tables/],
  ])("refuses %j", async (flags, says) => {
    const { code, stderr } = await command(["migrate", ...flags], { cwd: folder }).ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(says);
  });
});

describe("curfew keys new", () => {
  it("shows the key once and keeps only its hash, in a file that nobody else can read", async () => {
    const file = join(folder, "keys.json");
    const { code, stdout } = await command([
      "keys",
      "new",
      "--name",
      "web",
      "--role",
      "producer",
      "--file",
      file,
    ]).ended;
    expect(code).toBe(0);
    const key = /curfew_[\w-]{43}/.exec(stdout)?.[0] as string;
    expect(stdout).toContain(hashKey(key));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(key);
    expect(JSON.parse(text)).toEqual({ keys: [{ name: "web", role: "producer", hash: hashKey(key) }] });
  });

  it.each([
    [["--name", "web"], /required option '--role <role>'/],
    [["--role", "worker"], /required option '--name <name>'/],
    [["--role", "boss", "--name", "web"], /Allowed choices are producer, worker, read-only, admin/],
    [["--role", "worker", "--name", "a b"], /curfew: --name: "a b"/],
    [["--role", "worker", "--name", "a", "--not-after", "tomorrow"], /curfew: --not-after: "tomorrow"/],
  ])("refuses %j", async (flags, message) => {
    const { code, stderr } = await command(["keys", "new", ...flags]).ended;
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});
