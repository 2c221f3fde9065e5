import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { command, server } from "../server/command.ts";
import { testFolder } from "../support/folders.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { openPage } from "./stage.ts";

const README = join(import.meta.dirname, "../../README.md");

function folder(): string {
  const made = testFolder();
  return made;
}

interface DemoJob {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly error?: { readonly forced?: boolean };
}

async function jobsOf(url: string, query: string): Promise<readonly DemoJob[]> {
  const reply = await fetch(`${url}/ojs/v1/admin/jobs?per_page=100&${query}`);
  return ((await reply.json()) as { readonly items: readonly DemoJob[] }).items;
}

/** A killed loop needs 8 s, and 30 s are the newcomer's patience. */
const WITHIN = { interval: 250 };

/** What the pages of the dashboard list. */
const PATHS = [
  "/admin/jobs?state=completed",
  "/admin/jobs?state=retryable",
  "/admin/jobs?state=scheduled",
  "/admin/jobs?state=pending",
  "/admin/jobs?state=discarded",
  "/admin/timeouts-fired",
  "/admin/jobs/near-misses",
  "/rate-limits",
  "/unique-jobs",
  "/workflows",
  "/cron",
  "/admin/sagas",
  "/admin/timeouts",
  "/admin/dead-letter",
  "/admin/audit",
  "/admin/workers",
];

/** From the overview to the stack, as a newcomer goes. */
async function findKilledLoop(url: string): Promise<void> {
  await using browser = await openBrowser();
  await using opened = await openPage(browser, url);
  const { page, problems } = opened;
  await page.locator(".top .notice-label", { hasText: "Demo" }).waitFor();
  await page.getByRole("link", { name: "An endless loop, killed, with its stack" }).click();
  await page.locator("tbody tr").first().getByRole("link").first().click();
  await page.locator(".stack", { hasText: "placeTables" }).first().waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  // The label of the notice has to fit beside the rest of the top bar.
  expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
  expect(problems).toEqual([]);
}

describe("the demo", () => {
  it("kills an endless loop, shows its stack, and soon has something on every page", async () => {
    const demo = await server(["--demo"], { cwd: folder() });
    const killed = async () =>
      (await jobsOf(demo.url, "type=report.render")).filter(({ error }) => error?.forced).length;
    await expect.poll(killed, WITHIN).toBeGreaterThan(0);
    if (hasBrowser) await findKilledLoop(demo.url);
    const items = async (path: string) => {
      const body = (await (await fetch(`${demo.url}/ojs/v1${path}`)).json()) as Record<string, unknown>;
      const list = Object.values(body).find(Array.isArray) as readonly unknown[] | undefined;
      return list?.length ?? 0;
    };
    const missing = new Set(PATHS);
    const look = async () => {
      for (const path of missing) if ((await items(path)) > 0) missing.delete(path);
      return [...missing];
    };
    await expect.poll(look, WITHIN).toEqual([]);
  });

  it("goes on with its own store, and stops at a signal", async () => {
    const cwd = folder();
    const first = await server(["--demo"], { cwd });
    await expect.poll(async () => (await jobsOf(first.url, "")).length, WITHIN).toBeGreaterThan(10);
    // A newcomer starts the demo as the README says, and pastes its next command.
    const [, body = ""] = /-d '(\{"type": "card\.charge".*?)'$/ms.exec(readFileSync(README, "utf8")) ?? [];
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch(`${first.url}/ojs/v1/jobs`, { method: "POST", headers, body });
    expect([reply.status, await reply.json()]).toMatchObject([201, { job: { queue: "payments" } }]);
    first.kill("SIGTERM");
    expect((await first.ended).code).toBe(0);
    expect(existsSync(join(cwd, "curfew-demo.db"))).toBe(true);
    const second = await server(["--demo"], { cwd });
    expect((await jobsOf(second.url, "")).length).toBeGreaterThan(10);
  });

  it("refuses a store that has another job, and leaves it as it was", async () => {
    const cwd = folder();
    const store = `sqlite:${join(cwd, "own.db")}`;
    const own = await openEngine({ store, logger: silentLogger });
    await own.enqueue(defineJob({ type: "invoice.print" }));
    await own.close();
    const { code, stderr } = await command(["serve", "--demo", "--store", store, "--port", "0"], { cwd })
      .ended;
    expect(code).not.toBe(0);
    expect(stderr).toMatch(
      /demo: store "sqlite:.*own\.db" has job \S+ of type "invoice\.print", which is not the demo's/,
    );
    const again = await openEngine({ store, logger: silentLogger });
    onTestFinished(() => again.close());
    expect((await again.find({})).jobs.map(({ type }) => type)).toEqual(["invoice.print"]);
    expect(await again.crons.list()).toEqual([]);
  });

  it("refuses its own store once another job is in it", async () => {
    const cwd = folder();
    const first = await server(["--demo"], { cwd });
    first.kill("SIGTERM");
    await first.ended;
    const own = await openEngine({ store: `sqlite:${join(cwd, "curfew-demo.db")}`, logger: silentLogger });
    await own.enqueue(defineJob({ type: "invoice.print" }));
    await own.close();
    const { stderr } = await command(["serve", "--demo", "--port", "0"], { cwd }).ended;
    expect(stderr).toContain('of type "invoice.print", which is not the demo\'s');
  });

  it("refuses a database server and a worker module", async () => {
    const onPostgres = await command(["serve", "--demo", "--store", "postgres://user:secret@localhost/app"])
      .ended;
    expect(onPostgres.stderr).toContain("the demo runs only on an embedded store");
    expect(onPostgres.stderr).not.toContain("secret");
    const withWorkers = await command(["serve", "--demo", "--workers", "./workers.js"]).ended;
    expect(withWorkers.stderr).toContain("cannot be used with option");
  });
});
