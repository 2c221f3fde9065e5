import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { constant } from "../../src/core/job/policy/retry.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { type DashboardStage, type OpenedPage, openDashboard, settled } from "./stage.ts";

const flaky = defineJob({
  type: "hook.call",
  queue: "hooks",
  retry: { attempts: 3, backoff: constant({ first: "30m", jitter: false }) },
});

describe.skipIf(!hasBrowser)("the lists of jobs", () => {
  let browser: Browser;
  let stage: DashboardStage;
  let opened: OpenedPage;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  beforeEach(async () => {
    stage = await openDashboard(browser);
  });
  afterEach(async () => {
    expect(opened.problems).toEqual([]);
    await stage[Symbol.asyncDispose]();
  });
  afterAll(() => browser?.close());

  const open = async (path: string) => {
    opened = await stage.open(path);
    await settled(opened.page);
    return opened.page;
  };
  const load = (id: string) => stage.test.engine.load(id);

  it("timeouts that fired are listed by their limit, and lead to the job", async () => {
    const page = await open("/jobs");
    await page.getByRole("link", { name: "Timeouts", exact: true }).nth(1).click();
    await page.waitForURL("**/jobs?tab=timeouts");
    const rows = page.getByRole("table", { name: "Fired timeouts" }).locator("tbody tr");
    await rows.filter({ hasText: "never started" }).first().waitFor();
    await page.keyboard.press("f");
    await page.getByLabel("Filter by").selectOption("kind");
    await page.locator(".popover select").last().selectOption("execution");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.waitForURL("**/jobs?tab=timeouts&kind=execution");
    await rows.filter({ hasText: "never started" }).first().waitFor({ state: "detached" });
    // Three attempts of the report that hung, and one of the report that runs.
    const reports = rows.filter({ hasText: "report.render" });
    await reports.nth(3).waitFor();
    expect(await reports.count()).toBe(4);
    await rows.filter({ hasText: "ended by force" }).last().getByRole("link").click();
    await page.waitForURL(`**/jobs/${stage.seeded.killed}`);
  });

  it("near misses say how much of which limit was used", async () => {
    const page = await open("/jobs?tab=near-misses");
    const rows = page.getByRole("table", { name: "Near misses" }).locator("tbody tr");
    await rows.filter({ hasText: "94 % of 5m" }).waitFor();
    await rows.filter({ hasText: "completed after the signal, within its grace" }).waitFor();
    await page.getByText(/\d+ found; all completed jobs were searched\./).waitFor();
  });

  it("a text in the payload is searched for, with how far the search came", async () => {
    const page = await open("/jobs");
    await page.getByLabel("Search by id or payload").fill("customer-17@example.org");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/jobs?search=customer-17%40example.org");
    await page.getByText("1 found; all jobs were searched.").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    await page.getByLabel("Search by id or payload").fill(stage.seeded.scheduled.slice(0, 23));
    await page.keyboard.press("Enter");
    await page.locator(`tr[data-id="${stage.seeded.scheduled}"]`).waitFor();
    await page.getByLabel("Search by id or payload").fill("in no payload at all");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Remove search: in no payload at all" }).click();
    await page.waitForURL("**/jobs");
  });

  it("a scheduled job is run now", async () => {
    const page = await open(`/jobs/${stage.seeded.scheduled}`);
    await page.getByRole("button", { name: "Run now…" }).click();
    await page.getByLabel("Reason, for the audit").fill("the customer is on the phone");
    await page.getByRole("button", { name: "Run it now" }).click();
    await page.locator(".badge.pill", { hasText: /Waiting|Running|Completed/ }).waitFor();
    const { entries } = await stage.test.engine.audit.read({ limit: 10 });
    expect(entries.map(({ reason }) => reason)).toContain("the customer is on the phone");
  });

  it("a waiting job gets another priority, with the reason in the audit", async () => {
    const { id } = await stage.test.engine.enqueue(flaky, null, { queue: "nobody" });
    const page = await open(`/jobs/${id}`);
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("button", { name: "Change priority…" }).click();
    await page.getByLabel("Priority, from -100 to 100").fill("40");
    await page.getByLabel("Reason, for the audit").fill("a fair is tomorrow");
    await page.getByRole("button", { name: "Set it to 40" }).click();
    await page.getByText(", priority 40").waitFor();
    expect((await load(id))?.priority).toBe(40);
    const { entries } = await stage.test.engine.audit.read({ limit: 10 });
    expect(entries.map(({ reason }) => reason)).toContain("a fair is tomorrow");
  });

  it("a job that waits for its next attempt is run now", async () => {
    const { engine } = stage.test;
    engine.work({
      queues: { hooks: { concurrency: 1 } },
      processors: [
        processor(flaky, ({ attempt }) => {
          if (attempt === 1) throw new Error("not yet");
        }),
      ],
    });
    const { id } = await engine.enqueue(flaky);
    await expect.poll(async () => (await load(id))?.state).toBe("retryable");
    const page = await open(`/jobs/${id}`);
    await page.keyboard.press("n");
    await page.getByRole("button", { name: "Run it now" }).click();
    await expect.poll(async () => (await load(id))?.state).toBe("completed");
  });

  it("a cancel of a waiting job is undone by a copy with the same limits and start", async () => {
    const page = await open(`/jobs/${stage.seeded.scheduled}`);
    const before = await load(stage.seeded.scheduled);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("It is enqueued anew.").waitFor();
    await page.waitForURL((url) => !url.pathname.endsWith(stage.seeded.scheduled));
    const id = page.url().split("/").at(-1)?.split("?")[0] ?? "";
    const after = await load(id);
    expect((await load(stage.seeded.scheduled))?.state).toBe("cancelled");
    expect(after?.state).toBe("scheduled");
    expect(after?.payload).toEqual(before?.payload);
    const limits = async (job: string) =>
      (await stage.test.engine.explain(job)).fields
        .filter(({ field }) => ["attempt", "wait", "total", "attempts"].includes(field))
        .map(({ field, value }) => `${field} ${value}`);
    expect(await limits(id)).toEqual(await limits(stage.seeded.scheduled));
  });

  it("a bulk cancel of chosen jobs is undone", async () => {
    const page = await open("/jobs?state=available&queue=video");
    await page.getByLabel("Select all on this page").check();
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel 6 jobs" }).click();
    await page.getByText("6 jobs are cancelled.").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("6 jobs enqueued anew.").waitFor();
    const { jobs } = await stage.test.engine.find({ queue: "video", state: "available" });
    expect(jobs).toHaveLength(6);
  });

  it("a bulk delete says how many it deletes, without those that wait", async () => {
    const { engine } = stage.test;
    const { id } = await engine.enqueue(defineJob({ type: "old", queue: "mixed" }));
    await engine.enqueue(defineJob({ type: "new", queue: "mixed" }));
    await engine.job(id).cancel();
    const page = await open("/jobs?queue=mixed");
    await page.getByLabel("Select all on this page").check();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByText("This means 1 of the chosen jobs.").waitFor();
    await page.getByRole("button", { name: "Delete 1 job", exact: true }).click();
    await page.getByText("1 job is deleted.").waitFor();
    expect((await engine.find({ queue: "mixed" })).jobs.map(({ type }) => type)).toEqual(["new"]);
  });
});
