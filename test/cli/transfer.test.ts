import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { defineJob, openEngine, unchecked } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { bareEnvironment, command, RunningCommand, server } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew, openStage, type Stage } from "./stage.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");

let stage: Stage;
const folder = fileFolder();
let file: string;
let stores = 0;

beforeAll(async () => {
  stage = await openStage();
  file = join(folder, "jobs.jsonl");
  const { stdout } = await curfew(["export", "--store", stage.store, "--partial"]);
  writeFileSync(file, stdout);
});
afterAll(async () => {
  await stage.close();
});

/** A new, empty store. */
async function emptyStore(): Promise<string> {
  const store = `sqlite:${join(folder, `${stores++}.db`)}`;
  await curfew(["migrate", "--store", store]);
  return store;
}

const linesOf = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("curfew export", () => {
  it("writes a first line, jobs and a last line that counts them", () => {
    const lines = linesOf(readFileSync(file, "utf8"));
    expect(lines[0]).toMatchObject({ curfew: "export", version: 3, filter: {} });
    const ids = lines.filter(({ kind }) => kind === "job").map(({ id }) => id);
    expect(ids.toSorted()).toEqual([stage.jobs.waiting, stage.jobs.dead].toSorted());
    expect(lines.at(-1)).toMatchObject({ curfew: "end", jobs: 2, left_out: { running: 0 } });
  });

  it("writes the same from a server, and ended jobs where asked", async () => {
    const [fromStore, fromServer] = await Promise.all(
      [
        ["--store", stage.store],
        ["--url", stage.url],
      ].map((target) => curfew(["export", "--ended", "--partial", ...target])),
    );
    const jobs = (text = "") => linesOf(text).filter(({ kind }) => kind === "job");
    expect(jobs(fromServer?.stdout)).toEqual(jobs(fromStore?.stdout));
    expect(jobs(fromStore?.stdout).map(({ id }) => id)).toContain(stage.jobs.done);
  });

  it("ends with 1 and says what it left out, unless that was accepted", async () => {
    const { code, stderr, stdout } = await curfew(["export", "--url", stage.url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/left out: \d jobs of workflows; wait until they have ended/);
    expect(linesOf(stdout).at(-1)).toMatchObject({ curfew: "end" });
  });

  it("takes the filters of ls", async () => {
    const { code, stdout } = await curfew([
      "export",
      "--dead",
      "--queue",
      "payments",
      "--store",
      stage.store,
    ]);
    expect(code).toBe(0);
    expect(linesOf(stdout).filter(({ kind }) => kind === "job")).toMatchObject([{ id: stage.jobs.dead }]);
  });

  it("ends quietly when its reader leaves", async () => {
    const shell = `"${process.execPath}" "${MAIN}" export --partial --ended --url ${stage.url} | head -n 1`;
    const child = spawn("bash", ["-c", `set -o pipefail; ${shell}`], {
      env: bareEnvironment(),
      stdio: ["ignore", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (text) => {
      stderr += text;
    });
    await once(child, "close");
    expect(stderr).not.toMatch(/EPIPE|at /);
  });
});

describe("curfew import", () => {
  it("stores jobs in SQLite, PostgreSQL and a server with a store in memory, and repeats to nothing", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await curfew(["migrate", "--store", database.url]);
    const { url } = await server(["--store", "memory:"], { cwd: folder });
    const targets = [
      ["--store", await emptyStore()],
      ["--store", database.url],
      ["--url", url],
    ];
    for (const target of targets) {
      expect(await answer(["import", file, ...target, "--dry-run"])).toMatchObject({
        dry_run: true,
        created: 2,
      });
      expect(await answer(["import", file, ...target])).toMatchObject({
        created: 2,
        exists: 0,
        is_complete: true,
      });
      expect(await answer(["import", file, ...target])).toMatchObject({ created: 0, exists: 2 });
      expect(await answer(["show", stage.jobs.dead, ...target])).toMatchObject({
        state: "discarded",
        dead_letter: true,
        error: { message: "the bank said no" },
      });
      const again = await curfew(["export", ...target]);
      const jobs = (text: string) => linesOf(text).filter(({ kind }) => kind === "job");
      expect(jobs(again.stdout)).toEqual(jobs(readFileSync(file, "utf8")));
    }
  });

  it("reads standard input", async () => {
    const store = await emptyStore();
    const shell = `"${process.execPath}" "${MAIN}" import --store ${store} < ${file}`;
    const child = spawn("bash", ["-c", shell], {
      env: bareEnvironment(),
      stdio: ["ignore", "pipe", "ignore"],
    });
    let stdout = "";
    child.stdout.on("data", (text) => {
      stdout += text;
    });
    await once(child, "close");
    expect(stdout).toBe("2 jobs imported.\n");
  });

  it("names each line that is wrong, stores the others and ends with 1", async () => {
    const store = await emptyStore();
    const broken = join(folder, "broken.jsonl");
    const lines = readFileSync(file, "utf8").trim().split("\n");
    writeFileSync(
      broken,
      [lines[0], "{broken", lines[1], '{"kind":"job","id":"x"}', lines[2], lines.at(-1)].join("\n"),
    );
    const { code, stdout, stderr } = await curfew(["import", broken, "--store", store]);
    expect(code).toBe(1);
    expect(stdout).toBe("2 jobs imported, 2 lines are wrong.\n");
    expect(stderr).toContain("line 2: not a JSON object; the file is damaged or cut off here");
    expect(stderr).toMatch(/line 4: job\.id: "x" is not a valid value/);
    expect(stderr).toMatch(/line \d: the last line says 2 jobs, and there are 3/);
  });

  it.each([
    [
      "a file that is cut off",
      (text: string) => text.slice(0, text.lastIndexOf("{")),
      1,
      /line [1-9]\d*: the file ends without its last line/,
    ],
    ["no export", () => "hello\n", 2, /line 1: this is no export of curfew/],
    [
      "another version",
      (text: string) => text.replace('"version":3', '"version":9'),
      2,
      /version 9 is not known/,
    ],
    ["an empty file", () => "", 2, /there is no line/],
  ])("refuses %s", async (_name, change, code, says) => {
    const path = join(folder, "wrong.jsonl");
    writeFileSync(path, change(readFileSync(file, "utf8")));
    const ended = await curfew(["import", path, "--store", await emptyStore()]);
    expect(ended.stderr).toMatch(says);
    expect(ended.code).toBe(code);
  });

  it("refuses a file that is not there, a store that is down and a key without the right", async () => {
    const missing = await curfew(["import", "no-such.jsonl", "--store", await emptyStore()]);
    expect(missing).toMatchObject({ code: 2, stdout: "" });
    const down = await curfew(["import", file, "--url", "http://127.0.0.1:9"]);
    expect(down.code).toBe(3);
    expect(down.stderr).toMatch(/cannot be reached .*; stopped after line 0, .* run it again to go on/);
    const keys = join(folder, "keys.json");
    const made = await answer(["keys", "new", "--role", "read-only", "--name", "eve", "--file", keys]);
    const { url } = await server(["--store", "memory:", "--keys", keys], { cwd: folder });
    const refused = await curfew(["import", file, "--url", url], { CURFEW_KEY: String(made.key) });
    expect(refused).toMatchObject({ code: 4, stdout: "" });
  });
});

describe("an import of many jobs", () => {
  const COUNT = 5_000;
  let large: string;
  beforeAll(async () => {
    const store = `sqlite:${join(folder, "many.db")}`;
    const engine = await openEngine({ store });
    const job = defineJob({ type: "many.job", payload: unchecked<number>() });
    await engine.enqueueMany(job, [...Array(COUNT).keys()]);
    await engine.close();
    large = join(folder, "large.jsonl");
    writeFileSync(large, "");
    const child = new RunningCommand(["export", "--store", store]);
    appendFileSync(large, (await child.ended).stdout);
  });

  it.each(["SIGINT", "SIGKILL"] as const)(
    "that %s ends in the middle is completed by the next one, with nothing lost or doubled",
    async (signal) => {
      const store = await emptyStore();
      const engine = await openEngine({ store });
      try {
        const running = command(["import", large, "--store", store]);
        // Looks until some of them are there: the process says nothing before its end.
        for (let found = 0; found === 0; ) {
          found = (await engine.find({}, { limit: 1 })).jobs.length;
          if (running.child.exitCode !== null) throw new Error("it ended too early");
        }
        running.kill(signal);
        const { code, stdout, stderr } = await running.ended;
        if (signal === "SIGINT") {
          expect(code).toBe(130);
          expect(stderr).toMatch(/stopped after line \d+; run it again to go on/);
          expect(stdout).toMatch(/^\d+ jobs imported\.\n$/);
        }
        const before = await engine.queues.depth();
        expect(before.available).toBeGreaterThan(0);
        expect(before.available).toBeLessThan(COUNT);
        const again = await answer(["import", large, "--store", store]);
        expect(again).toMatchObject({ created: COUNT - before.available, exists: before.available });
        expect(await engine.queues.depth()).toMatchObject({ available: COUNT });
      } finally {
        await engine.close();
      }
    },
  );
});
