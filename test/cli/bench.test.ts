import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { openEngine } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { command } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";

const folder = fileFolder();
let stores = 0;

async function emptyStore(): Promise<string> {
  const store = `sqlite:${join(folder, `${stores++}.db`)}`;
  await curfew(["migrate", "--store", store]);
  return store;
}

const spread = { p50_ms: expect.any(Number), p95_ms: expect.any(Number), p99_ms: expect.any(Number) };
const rate = { per_second: expect.any(Number) };

describe("curfew bench", () => {
  it("measures SQLite and PostgreSQL and leaves no job behind", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await curfew(["migrate", "--store", database.url]);
    for (const store of [await emptyStore(), database.url]) {
      expect(await answer(["bench", "--store", store, "--jobs", "300"])).toMatchObject({
        jobs: 300,
        enqueue: { ...rate, ...spread },
        batch: rate,
        drain: rate,
        pickup: spread,
        left_behind: 0,
      });
      expect(await answer(["ls", "--store", store])).toMatchObject({ items: [] });
      // A second run on the store is not asked about what the first one did.
      expect((await curfew(["bench", "--store", store, "--jobs", "1"])).code).toBe(0);
    }
  });

  it("asks before it runs beside other jobs, and leaves them alone", async () => {
    const store = await emptyStore();
    const job = await answer(["enqueue", "mail.send", "--store", store]);
    const asked = await curfew(["bench", "--store", store, "--jobs", "10"]);
    expect(asked).toMatchObject({ code: 2, stdout: "" });
    expect(asked.stderr).toMatch(/has other jobs\. .* pass --yes/);
    const { code, stdout } = await curfew(["bench", "--store", store, "--jobs", "10", "--yes"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^enqueue, one by one +[\d,]+ +[\d.]+ ms/m);
    expect(await answer(["ls", "--store", store])).toMatchObject({
      items: [{ id: job.id, state: "available" }],
    });
  });

  it("deletes its jobs when Ctrl-C stops it", async () => {
    const store = await emptyStore();
    const engine = await openEngine({ store });
    try {
      const running = command(["bench", "--store", store, "--jobs", "500000"]);
      for (let found = 0; found === 0; ) {
        found = (await engine.find({}, { limit: 1 })).jobs.length;
        if (running.child.exitCode !== null) throw new Error("it ended too early");
      }
      running.kill("SIGINT");
      const { code, stderr } = await running.ended;
      expect(stderr).toContain("stopped; what it enqueued is deleted");
      expect(code).toBe(130);
      expect((await engine.find()).jobs).toEqual([]);
    } finally {
      await engine.close();
    }
  });

  it("refuses a server, and a count of nothing", async () => {
    const { code, stderr } = await curfew(["bench", "--url", "http://127.0.0.1:9"]);
    expect(code).toBe(2);
    expect(stderr).toContain("pass --store");
    expect((await curfew(["bench", "--store", "sqlite:x", "--jobs", "0"])).code).toBe(2);
  });
});
