import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { openEngine, silentLogger } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { command } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";

const WORKERS = join(import.meta.dirname, "../server/cli/workers.ts");
const INDEX = join(import.meta.dirname, "../../src/index.ts");

const folder = fileFolder();
let store = "";
beforeAll(() => {
  store = `sqlite:${join(folder, "jobs.db")}`;
});

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Starts a worker and waits until it takes jobs. */
async function worker(flags: readonly string[]) {
  const running = command(["work", ...flags]);
  await running.said(/stop +Ctrl-C/);
  return running;
}

/** Looks without a command: on a busy machine the job would end before the second command has started. */
async function untilActive(id: string): Promise<void> {
  await using engine = await openEngine({ store, logger: silentLogger });
  await expect.poll(async () => (await engine.load(id))?.state, { interval: 20 }).toBe("active");
}

describe("curfew work", () => {
  it("runs jobs, lets running ones finish at SIGTERM, and ends with 0", async () => {
    const running = await worker([WORKERS, "--store", store]);
    expect(running.stdout).toMatch(/^curfew \d+\.\d+\.\d+ runs test\.quick, test\.slow\n/);
    expect(running.stdout).toContain("other (10 at once), default (10 at once)");
    const quick = await answer(["enqueue", "test.quick", "--queue", "other", "--store", store]);
    expect(await answer(["wait", String(quick.id), "--store", store])).toMatchObject({ result: "done" });
    const payload = JSON.stringify({ takes: 20, until: join(folder, "drained") });
    const slow = await answer(["enqueue", "test.slow", payload, "--store", store]);
    await untilActive(String(slow.id));
    running.kill("SIGTERM");
    await running.said(/waiting for running jobs/);
    write("drained", "");
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(await answer(["show", String(slow.id), "--store", store])).toMatchObject({
      state: "completed",
      result: "drained",
    });
  });

  it("ends at once at the second signal", async () => {
    const running = await worker([WORKERS, "--store", store]);
    const slow = await answer(["enqueue", "test.slow", '{"takes":60000}', "--store", store]);
    await untilActive(String(slow.id));
    running.kill("SIGINT");
    await running.said(/send it again to stop at once/);
    running.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: 130 });
    await answer(["cancel", String(slow.id), "--store", store]);
  });

  it("takes only the queues that it is given, with their concurrency", async () => {
    const running = await worker([
      WORKERS,
      "--store",
      store,
      "--queues",
      "other=3,extra",
      "--concurrency",
      "2",
    ]);
    expect(running.stdout).toContain("queues  other (3 at once), extra (2 at once)");
    const { items } = await answer(["workers", "ls", "--store", store]);
    // The worker that the second signal ended is listed, too, until its beats are missed.
    expect(items.map(({ queues }) => queues)).toContainEqual(["other", "extra"]);
    // The engine warns about the queue that no definition names, and the definition whose queue is not taken.
    await running.said(/no definition of its processors names it/);
    await running.said(/no worker of this process takes the queue/);
    running.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 0 });
  });

  it("runs jobs of a PostgreSQL store, and logs JSON lines only with --json", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    const running = command(["work", WORKERS, "--store", database.url, "--json"]);
    await running.said(/"msg":"working"/);
    const quick = await answer(["enqueue", "test.quick", "--queue", "other", "--store", database.url]);
    expect(await answer(["wait", String(quick.id), "--store", database.url])).toMatchObject({
      result: "done",
    });
    running.kill("SIGTERM");
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg).at(-1)).toBe("stopped");
  });

  it("restarts with --watch when the module changes, and stops at SIGTERM", async () => {
    const text = (type: string) =>
      `import { defineJob, processor } from ${JSON.stringify(INDEX)};\nexport default [processor(defineJob({ type: "${type}" }), () => 1)];\n`;
    const module = write("watched.ts", text("before.change"));
    const running = await worker([module, "--store", store, "--watch"]);
    expect(running.stdout).toContain("runs before.change");
    // The watcher learns of a file a moment after the file is loaded, so write until it has seen a change.
    await expect
      .poll(
        () => {
          write("watched.ts", text("after.change"));
          return running.stdout;
        },
        { interval: 500 },
      )
      .toContain("runs after.change");
    running.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(running.stdout).toMatch(/Stopped\.\n$/);
  });
});

describe("a module that curfew work cannot use", () => {
  it.each([
    ["is missing", undefined, /^curfew: work: there is no file .*\.ts; check the path/],
    ["exports nothing", "export {};", /\.ts has no default export; export default \[processor/],
    [
      "exports its processors by name",
      `import { defineJob, processor } from "${INDEX}";\nexport const greet = processor(defineJob({ type: "greet" }), () => 1);`,
      /it exports processors by name: add "export default \[greet\]"/,
    ],
    ["exports an empty list", "export default [];", /the default export of .*\.ts has no processors/],
    ["exports a number", "export default 42;", /the default export of .*\.ts: 42/],
    [
      "lists something else",
      "export default [{ definition: null }];",
      /\.ts, processor 1: .*use what processor\(\) or sandboxed\(\) returned/,
    ],
    ["throws", 'throw new Error("no config");', /\.ts cannot be loaded: no config/],
    ["has an enum", "enum A { B }\nexport default [];", /Node only strips types: avoid enums/],
  ])("%s", async (name, text, says) => {
    const path = join(folder, `${name.replaceAll(" ", "-")}.ts`);
    if (text !== undefined) writeFileSync(path, text);
    const { code, stdout, stderr } = await curfew(["work", path, "--store", store]);
    expect(stderr).toMatch(says);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it("is refused with a store in memory, which no job can reach", async () => {
    const { code, stderr } = await curfew(["work", WORKERS, "--store", "memory:"]);
    expect(code).toBe(2);
    expect(stderr).toContain("no job can reach it");
  });
});
