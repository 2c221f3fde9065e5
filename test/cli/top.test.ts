import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { defineJob, type Engine, openEngine, processor } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { server } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";
import { inTerminal } from "./terminal.ts";

const slow = defineJob({
  type: "report.build",
  queue: "reports",
  timeouts: { attempt: "10m" },
  retry: { attempts: 1 },
});
const failing = defineJob({ type: "card.charge", queue: "payments", retry: { attempts: 1 } });
const lost = defineJob({ type: "mail.send", queue: "mial" });

/** What leaves the second buffer of the terminal and shows the cursor again. */
const RESTORED = "\u001b[?25h\u001b[?1049l";

const folder = fileFolder();
let store = "";
let engine: Engine;
let isPaid = false;
beforeAll(async () => {
  store = `sqlite:${join(folder, "jobs.db")}`;
  engine = await openEngine({ store });
  engine.work({
    processors: [
      processor(
        slow,
        ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      ),
      processor(failing, () => {
        if (!isPaid) throw new Error("no money");
      }),
    ],
  });
});
afterAll(async () => {
  await engine.close({ drain: "0s" });
});

describe("curfew top on a terminal", () => {
  it("counts deadlines down, filters, resizes, and restores the terminal at q", async () => {
    const job = await engine.enqueue(slow);
    await engine.enqueue(lost);
    const top = inTerminal(["top", "--store", store, "--every", "500ms"], { columns: 100, rows: 24 });
    await top.draws(/9m \d+s left +report\.build/);
    const left = () => /9m (\d+)s left/.exec(top.screen())?.[1];
    const before = left();
    await expect.poll(left).not.toBe(before);
    expect(top.screen()).toMatch(/mial +active +1 .* no worker takes it/);
    expect(top.screen().split("\n")).toHaveLength(24);
    top.resize(60, 16);
    await expect.poll(() => top.screen().split("\n").length).toBe(16);
    expect(
      top
        .screen()
        .split("\n")
        .filter((line) => line.length > 60),
    ).toEqual([]);
    top.type("/");
    top.type("nothing-like-this\r");
    await top.draws(/no job runs now/);
    top.type("q");
    const { code, text } = await top.ended;
    expect(code).toBe(0);
    expect(text.trimEnd().endsWith(RESTORED)).toBe(true);
    await job.cancel();
  });

  it("pauses a queue, cancels a running job and retries a failed one, each after y", async () => {
    const job = await engine.enqueue(slow);
    const broken = await engine.enqueue(failing);
    await expect(broken.result()).rejects.toThrow();
    const { url } = await server(["--store", store], { cwd: folder });
    const top = inTerminal(["top", "--url", url, "--every", "500ms"], { columns: 110, rows: 30 });
    await top.draws(/left +report\.build/);
    top.type("1");
    await top.draws(/▸ mial/);
    top.type("p");
    await top.draws(/pause queue mial\? y does it/);
    top.type("n");
    await top.draws(/Nothing was changed/);
    top.type("p");
    await top.draws(/pause queue mial\?/);
    top.type("y");
    await top.draws(/mial +paused/);
    await expect.poll(async () => (await engine.queues.describe("mial")).pausedAt).not.toBeNull();
    top.type("3");
    top.type("c");
    await top.draws(new RegExp(`cancel job ${job.id}\\?`));
    top.type("y");
    await expect.poll(async () => (await job.load())?.state).toBe("cancelled");
    isPaid = true;
    top.type("4");
    await top.draws(/▸ .*card\.charge.*no money/);
    top.type("w");
    await top.draws(new RegExp(`curfew retry ${broken.id}`));
    top.type(" ");
    await top.draws(/▸ .*card\.charge/);
    top.type("r");
    await top.draws(/retry job .*\?/);
    top.type("y");
    await expect.poll(async () => (await broken.load())?.state).toBe("completed");
    top.type("\u0003");
    const { code, text } = await top.ended;
    expect(code).toBe(130);
    expect(text.trimEnd().endsWith(RESTORED)).toBe(true);
  });

  it("restores the terminal at SIGTERM", async () => {
    const top = inTerminal(["top", "--store", store]);
    await top.draws(/QUEUES/);
    top.terminate();
    const { code, text } = await top.ended;
    expect(code).toBe(143);
    expect(text.trimEnd().endsWith(RESTORED)).toBe(true);
  });

  it("restores the terminal before a crash prints its stack", async () => {
    const crash = `process.stdin.on("data", (text) => { if (String(text).includes("!")) throw new Error("a bug"); });`;
    const preload = `--import data:text/javascript,${encodeURIComponent(crash)}`;
    const top = inTerminal(["top", "--store", store], { env: { NODE_OPTIONS: preload } });
    await top.draws(/QUEUES/);
    top.type("!");
    const { code, text } = await top.ended;
    expect(code).not.toBe(0);
    const restoredAt = text.lastIndexOf(RESTORED);
    expect(restoredAt).toBeGreaterThan(0);
    expect(text.indexOf("Error: a bug")).toBeGreaterThan(restoredAt);
  });

  it("keeps the screen while the server is down, and says so", async () => {
    const running = await server(["--store", store], { cwd: folder });
    const top = inTerminal(["top", "--url", running.url, "--every", "500ms"], { columns: 110 });
    await top.draws(/QUEUES/);
    running.kill("SIGKILL");
    await top.draws(/no answer for .*cannot be reached[\s\S]*QUEUES/);
    top.type("q");
    expect(await top.ended).toMatchObject({ code: 0 });
  });
});

describe("curfew top without a terminal", () => {
  it("needs --once or --json", async () => {
    const { code, stdout, stderr } = await curfew(["top", "--store", store]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("there is no terminal; pass --once or --json");
  });

  it("prints everything once", async () => {
    const { code, stdout } = await curfew(["top", "--once", "--store", store]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^ready \d+ {2}running \d+[\s\S]*^QUEUES \d+\n[\s\S]*^WORKERS 1\n[\s\S]*^RUNNING 0\n/m,
    );
    expect(stdout).not.toContain("\u001b");
  });

  it("prints JSON with the deadline of each running job, also on PostgreSQL", async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    await using other = await openEngine({ store: database.url });
    other.work({
      processors: [
        processor(
          slow,
          ({ signal }) =>
            new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined))),
        ),
      ],
      drain: "0s",
    });
    const job = await other.enqueue(slow, undefined, { timeouts: { total: "5m" } });
    // Its start is in the store a moment after the claim.
    await expect.poll(async () => (await job.load())?.deadlines.soft ?? null).not.toBeNull();
    const { running, workers } = await answer(["top", "--json", "--store", database.url]);
    const { deadlines } = (await job.load()) as NonNullable<Awaited<ReturnType<typeof job.load>>>;
    expect(running).toMatchObject([
      { id: job.id, deadline_at: new Date(deadlines.soft as number).toISOString() },
    ]);
    expect(workers).toHaveLength(1);
    await job.cancel();
  });
});
