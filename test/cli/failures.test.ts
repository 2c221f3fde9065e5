import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { EXITS } from "../../src/cli/exit.ts";
import { createDatabase } from "../postgres.ts";
import { bareEnvironment, RunningCommand, server } from "../server/command.ts";
import { answer, curfew, openStage, type Stage } from "./stage.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

describe("exit codes", () => {
  it.each([
    ["no target", ["ls"], 2, /pass --store <address> or --url <url>/],
    ["two targets", ["ls", "--store", "sqlite:a.db", "--url", "http://h"], 2, /pass one of them/],
    ["an unknown command", ["lss"], 2, /Did you mean ls\?/],
    ["an unknown state", ["ls", "--state", "lost"], 2, /Allowed choices are scheduled/],
    [
      "a store that lives in a process",
      ["ls", "--store", "memory:"],
      2,
      /pass --url with the server of that process/,
    ],
    ["a count of nothing", ["ls", "--limit", "0"], 2, /Write a whole number from 1/],
    ["an address that is not a URL", ["ls", "--url", "localhost"], 2, /--url: "localhost" is not a URL/],
    [
      "a path without its kind",
      ["ls", "--store", "/tmp/shop.db"],
      2,
      /"\/tmp\/shop\.db" is not an address; did you mean sqlite:\/tmp\/shop\.db\?/,
    ],
    ["a store of an unknown kind", ["ls", "--store", "mysql://h"], 2, /write "memory:", "sqlite:path"/],
    [
      "a file that is not there",
      ["ls", "--store", "sqlite:/no/such.db"],
      3,
      /there is no file "\/no\/such\.db"/,
    ],
    ["a server that is down", ["ls", "--url", "http://127.0.0.1:9"], 3, /127\.0\.0\.1:9 cannot be reached/],
    [
      "a database that is down",
      ["ls", "--store", "postgres://127.0.0.1:9/x"],
      3,
      /cannot be opened: .*ECONNREFUSED/,
    ],
  ])("%s", async (_name, flags, code, says) => {
    const ended = await curfew([...flags, "--json"]);
    const { error } = JSON.parse(ended.stderr) as { error: { code: keyof typeof EXITS; message: string } };
    expect(error.message).toMatch(says);
    expect(EXITS[error.code].code).toBe(code);
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).not.toMatch(/^\s+at /m);
  });

  it("an unknown id ends with 1 and names the job that was meant", async () => {
    const id = stage.jobs.waiting;
    const wrong = `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`;
    const { code, stdout, stderr } = await curfew(["why", wrong, "--url", stage.url]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toBe(`curfew: there is no job "${wrong}"; did you mean ${id}?\n`);
  });

  it("an unknown cron ends with 1 and names the cron that was meant", async () => {
    const { code, stderr } = await curfew(["cron", "show", "nihtly", "--store", stage.store]);
    expect(code).toBe(1);
    expect(stderr).toContain('did you mean "nightly"?');
  });

  it("a key without the right ends with 4, and a missing key names the option", async () => {
    const keys = join(stage.folder, "keys.json");
    const made = await answer(["keys", "new", "--role", "read-only", "--name", "eve", "--file", keys]);
    const guarded = await openStage(["--keys", keys]);
    try {
      const read = await curfew(["ls", "--url", guarded.url], { CURFEW_KEY: String(made.key) });
      expect(read.code).toBe(0);
      const act = await curfew(["queues", "pause", "mail", "--url", guarded.url, "--key", String(made.key)]);
      expect(act).toMatchObject({ code: 4, stdout: "" });
      expect(act.stderr).toContain("has the role read-only, which may not operate");
      const nobody = await curfew(["ls", "--url", guarded.url]);
      expect(nobody).toMatchObject({ code: 4, stdout: "" });
      expect(nobody.stderr).toContain("pass --key or set CURFEW_KEY");
    } finally {
      await guarded.close();
    }
  });
});

describe("a target", () => {
  it("comes from the environment, and the command line wins", async () => {
    const fromEnvironment = await curfew(["ls", "--json"], { CURFEW_URL: stage.url });
    expect(fromEnvironment.code).toBe(0);
    const written = await curfew(["ls", "--json", "--url", stage.url], {
      CURFEW_STORE: "sqlite:/no/such.db",
    });
    expect(written.code).toBe(0);
  });

  it("may be a server whose store is in memory", async () => {
    const { url } = await server(["--store", "memory:"], { cwd: stage.folder });
    const job = await answer(["enqueue", "mail.send", "--url", url]);
    expect(await answer(["jobs", "ls", "--url", url])).toMatchObject({
      items: [{ id: job.id }],
      has_more: false,
    });
  });

  it("may be PostgreSQL", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    const migrated = await curfew(["migrate", "--store", database.url]);
    expect(migrated.code).toBe(0);
    const job = await answer(["enqueue", "mail.send", "--store", database.url]);
    expect(await answer(["ls", "--store", database.url])).toMatchObject({ items: [{ id: job.id }] });
    expect(await answer(["why", String(job.id), "--store", database.url])).toMatchObject({
      state: "available",
    });
  });
});

describe("output that cannot be written", () => {
  it.skipIf(!existsSync("/dev/full"))("ends a command with 1 and one line", async () => {
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, [MAIN, "stats", "--store", stage.store], {
      env: bareEnvironment(),
      stdio: ["ignore", full, "pipe"],
    });
    closeSync(full);
    const stderr = text(child.stderr as Readable);
    const [code] = await once(child, "close");
    expect({ code, stderr: await stderr }).toEqual({
      code: 1,
      stderr: "curfew: cannot write the output: no space left on the device\n",
    });
  });
});

describe("a reader that leaves", () => {
  it("ends a command quietly", async () => {
    const shell = `"${process.execPath}" "${MAIN}" tail -f -n 200 --url ${stage.url} | head -n 1`;
    const child = spawn("bash", ["-c", `set -o pipefail; ${shell}`], {
      env: bareEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.stdout.resume();
    let code: number | null | undefined;
    child.once("close", (given) => {
      code = given;
    });
    // The first line ends head; a later event finds the pipe broken.
    while (code === undefined) await curfew(["enqueue", "mail.send", "--url", stage.url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});

describe("Ctrl-C", () => {
  it.each(["url", "store"] as const)("ends tail -f on --%s with 130 and without a word", async (kind) => {
    const running = new RunningCommand(["tail", "-f", `--${kind}`, stage[kind]]);
    await running.said(/job\.enqueued/);
    running.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: 130, stderr: "" });
  });

  it("ends a command whose question is not answered yet", async () => {
    // It presses Ctrl-C when the question comes, and never answers.
    const server = createServer(() => running.kill("SIGINT")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const running = new RunningCommand(["wait", stage.jobs.waiting, "--url", url]);
    expect(await running.ended).toMatchObject({ code: 130, stdout: "", stderr: "" });
    server.closeAllConnections();
    server.close();
  });
});

describe("sagas and timeouts", () => {
  it("are read from the routes for operators, and a server without them is named", async () => {
    const timeout = {
      id: "t-1",
      destination: "bell",
      state: "dead",
      due_at: "2030-01-01T00:00:00.000Z",
      tries: 10,
    };
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      const isServed = request.url?.startsWith("/ojs/v1/admin/timeouts");
      const body = !isServed
        ? { error: { code: "not_found", message: `Nothing is served at ${request.url}` } }
        : request.method === "GET"
          ? { items: [timeout], pagination: { has_more: false } }
          : { ...timeout, state: "pending" };
      response
        .writeHead(isServed ? 200 : 404, { "content-type": "application/json" })
        .end(JSON.stringify(body));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      expect(await answer(["timeouts", "ls", "--dead", "--url", url])).toEqual({
        items: [timeout],
        has_more: false,
      });
      expect(await answer(["timeouts", "requeue", "t-1", "--url", url])).toMatchObject({ state: "pending" });
      expect(asked).toEqual([
        "GET /ojs/v1/admin/timeouts?dead=true&limit=50",
        "POST /ojs/v1/admin/timeouts/t-1/requeue",
      ]);
      const sagas = await curfew(["sagas", "ls", "--url", url]);
      expect(sagas).toMatchObject({ code: 1, stdout: "" });
      expect(sagas.stderr).toContain("does not offer sagas to operators");
    } finally {
      server.close();
    }
  });
});
