import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { beat, type FullStage, openFullDashboard } from "./full-stage.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { follow, type OpenedPage, settled } from "./stage.ts";

const REASON = "said in the test";

describe.skipIf(!hasBrowser)("what can be done on the other pages", () => {
  let browser: Browser;
  let stage: FullStage;
  let opened: OpenedPage | undefined;
  beforeAll(async () => {
    browser = await openBrowser();
    stage = await openFullDashboard(browser);
  });
  afterEach(async () => {
    expect(opened?.problems ?? []).toEqual([]);
    await opened?.[Symbol.asyncDispose]();
    opened = undefined;
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await browser?.close();
  });

  const open = async (path: string): Promise<Page> => {
    opened = await stage.open(path);
    await settled(opened.page);
    return opened.page;
  };
  /** Fills in the reason, presses the button of the form, and waits for what is said. */
  const confirm = async (page: Page, button: string | RegExp, said: string | RegExp) => {
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason, for the audit").fill(REASON);
    await dialog.getByRole("button", { name: button }).click();
    await page.locator(".toast", { hasText: said }).last().waitFor();
    await dialog.waitFor({ state: "detached" });
  };
  const lastEntry = async (action: string) => {
    const { entries } = await stage.test.engine.audit.read({ limit: 1, action });
    return entries[0];
  };

  it("a queue is paused and resumed, with the reason in the audit", async () => {
    const page = await open("/queues");
    const row = page.locator('tr[data-id="orders"]');
    await row.getByRole("button", { name: "Pause" }).click();
    await confirm(page, "Pause the queue", "Queue orders is paused.");
    await page.getByText(REASON).waitFor();
    expect(await lastEntry("queue.pause")).toMatchObject({ queue: "orders", reason: REASON });
    await row.getByRole("button", { name: "Resume" }).click();
    await confirm(page, "Resume the queue", "hands out jobs again");
    await row.getByText("Open").waitFor();
    expect(await lastEntry("queue.resume")).toMatchObject({ queue: "orders", reason: REASON });
  });

  it("the rules of a queue are changed and taken back, and others stay", async () => {
    const page = await open("/queues/images");
    await page.getByRole("button", { name: "Rules…" }).click();
    await page.getByLabel("Jobs at once").fill("x");
    await page.getByText("A whole number from 1, or nothing.").waitFor();
    await page.getByLabel("Jobs at once").fill("7");
    await page.getByLabel("attempt", { exact: true }).fill("45s");
    await confirm(page, "Set the rules", "has new rules");
    await page.getByText("7 at once, 100 wait at most, wait 5m, attempt 45s").waitFor();
    await page.getByRole("button", { name: "Rules…" }).click();
    await page.getByLabel("Jobs at once").fill("");
    await confirm(page, "Set the rules", "has new rules");
    await page.getByText("100 wait at most, wait 5m, attempt 45s").waitFor();
  });

  it("jobs of a queue are deleted", async () => {
    const page = await open("/queues/scans");
    await page.getByRole("button", { name: "Delete jobs…" }).click();
    await page.getByText("That is about 6 jobs.").waitFor();
    await confirm(page, "Delete them for good", "6 jobs are deleted.");
    expect((await stage.test.engine.find({ queue: "scans" }, { limit: 10 })).jobs).toEqual([]);
  });

  it("a worker over HTTP is quieted, resumed and stopped; one in a process cannot be", async () => {
    await beat(stage.url, "http-worker-2");
    const page = await open("/workers");
    const row = page.locator('tr[data-id="http-worker-2"]');
    await row.getByRole("button", { name: "Quiet…" }).click();
    await confirm(page, "Quiet the worker", "takes no more jobs");
    await row.getByText("Quiet", { exact: true }).waitFor();
    expect(await beat(stage.url, "http-worker-2")).toMatchObject({ directive: "quiet" });
    await row.getByRole("button", { name: "Resume…" }).click();
    await confirm(page, "Resume the worker", "takes jobs again");
    await row.getByText("Works").waitFor();
    await row.getByRole("button", { name: "Stop…" }).click();
    await confirm(page, "Stop the worker", "stops with its next beat");
    await row.getByText("Stops", { exact: true }).waitFor();
    expect(await lastEntry("worker.terminate")).toMatchObject({ reason: REASON });
    const local = page
      .locator("tr", { hasText: "beside the store" })
      .first()
      .getByRole("button", { name: "Quiet…" });
    expect(await local.isDisabled()).toBe(true);
    expect(await local.getAttribute("title")).toContain("Stop that process");
  });

  it("a cron is run now, paused, resumed, changed and deleted", async () => {
    const { crons } = stage.test.engine;
    const page = await open("/crons/close%20the%20books");
    await page.getByRole("button", { name: "Run now…" }).click();
    await confirm(page, "Run it now", /Job .* is enqueued/);
    await page.locator("table[aria-label=History] tbody tr").nth(1).waitFor();
    await page.getByRole("button", { name: "Pause…" }).click();
    await confirm(page, "Pause the cron", "is paused");
    await page.locator(".badge.pill", { hasText: "Paused" }).waitFor();
    await page.getByRole("button", { name: "Resume…" }).click();
    await confirm(page, "Resume the cron", "goes on");
    await page.locator(".badge.pill", { hasText: "On" }).waitFor();
    await page.getByRole("button", { name: "Change…" }).click();
    await page.getByLabel("Expression").fill("30 2 * * *");
    await page.getByText("That is at 02:30.").waitFor();
    await confirm(page, "Change the schedule", "has a new schedule");
    await page.getByText("At 02:30").waitFor();
    expect((await crons.get("close the books"))?.cron).toBe("30 2 * * *");
    await page.getByRole("button", { name: "Delete…" }).click();
    await confirm(page, "Delete the cron", "is deleted");
    await page.waitForURL("**/crons");
    expect(await crons.get("close the books")).toBeNull();
    expect(await lastEntry("cron.delete")).toMatchObject({ reason: REASON });
  });

  it("a schedule that the server refuses stays in the form, in the server's words", async () => {
    const page = await open("/crons/refresh%20search");
    await page.getByRole("button", { name: "Change…" }).click();
    await page.getByLabel("Zone").fill("Mars/Olympus");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Change the schedule" }).click();
    await dialog.getByRole("alert").waitFor();
    expect(await dialog.getByRole("alert").textContent()).toContain("Mars/Olympus");
    expect(await page.getByLabel("Zone").inputValue()).toBe("Mars/Olympus");
    if (opened) opened.problems.length = 0;
  });

  it("a workflow is cancelled", async () => {
    const page = await open(`/workflows/${stage.pages.workflow}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await confirm(page, "Cancel the workflow", "The workflow is cancelled.");
    await page.locator(".badge.pill", { hasText: "Cancelled" }).waitFor();
    await page.locator(".graph a", { hasText: "order.pack" }).filter({ hasText: "Cancelled" }).waitFor();
  });

  it("the overview and a queue say how many jobs a retry of all that failed means", async () => {
    const page = await open("/");
    const { jobs } = await stage.test.engine.find({ state: "discarded", queue: "billing" });
    expect(jobs.length).toBeGreaterThan(1);
    const previews = async (button: string, count = jobs.length) => {
      await page.getByRole("button", { name: button }).click();
      await page.getByText(`This means ${count} of the chosen jobs`).waitFor();
      await page.getByRole("button", { name: `Retry ${count} jobs` }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    };
    // Not all that were discarded are kept as dead letters.
    const ofAll = (await page.getByRole("button", { name: /^Retry \d+…$/ }).textContent()) ?? "";
    await previews(ofAll, Number(/\d+/.exec(ofAll)?.[0]));
    await follow(page, "/queues/billing");
    await previews("Retry discarded…");
    await follow(page, "/queues");
    await page.locator('tr[data-id="billing"]').getByRole("button", { name: "More for billing" }).click();
    await previews("Retry its discarded jobs…");
  });

  it("dead letters are retried one by one, by their error, and deleted by choice", async () => {
    const page = await open("/dead-letters");
    const rows = page.locator("tbody tr");
    await rows.nth(5).waitFor();
    await page.getByRole("button", { name: "Delete card.charge" }).first().click();
    await page.getByText("This means 1 of the chosen jobs.").waitFor();
    await confirm(page, /^Delete 1 /, "deleted.");
    await rows.nth(5).waitFor({ state: "detached" });
    await page.getByRole("checkbox").nth(1).check();
    await page.getByRole("checkbox").nth(2).check();
    await page.getByRole("region", { name: "Selected rows" }).getByRole("button", { name: "Retry…" }).click();
    await page.getByText("This means 2 of the chosen jobs.").waitFor();
    await confirm(page, "Retry 2 jobs", "2 jobs wait again.");
    await page.getByRole("button", { name: "Retry all with the error Error" }).click();
    await page.getByText(/This means \d of the chosen jobs/).waitFor();
    await confirm(page, /Retry \d jobs/, "wait again.");
    const { entries } = await stage.test.engine.audit.read({ limit: 10 });
    const done = entries.filter(({ reason }) => reason === REASON).map(({ action }) => action);
    expect(done.some((action) => action.includes("retry"))).toBe(true);
    expect(done.some((action) => action.includes("delete"))).toBe(true);
  });

  it("the limit of a key is overridden, and left to its jobs again", async () => {
    const page = await open("/limits");
    const row = page.locator('tr[data-id="crm tenant 17"]');
    await row.getByRole("button", { name: "Override…" }).click();
    await page.getByLabel("Jobs at once").fill("9");
    await confirm(page, "Set the override", "has a new limit");
    await row.getByText("overridden").waitFor();
    expect((await stage.test.engine.limits.get("crm tenant 17")).limit?.concurrency).toBe(9);
    await row.getByRole("button", { name: "Remove override…" }).click();
    await confirm(page, "Remove the override", "as its jobs say again");
    await row.getByText("overridden").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Override a key…" }).click();
    await page.getByRole("textbox", { name: "Key" }).fill("new key");
    await page.getByRole("textbox", { name: "Starts" }).fill("10");
    await confirm(page, "Set the override", "Key new key has a new limit.");
    await page.locator('tr[data-id="new key"]', { hasText: "10 per 1m" }).waitFor();
  });

  it("timeouts are rescheduled, revoked and requeued", async () => {
    const { engine } = stage.test;
    const page = await open("/timeouts?destination=trials");
    const row = page.locator(".due-list > li", { hasText: "trial 4" });
    await row.getByRole("button", { name: "Reschedule…" }).click();
    await page.getByRole("textbox", { name: /^Due/ }).fill("nonsense");
    await page.getByText("Such as 30m, 2h, 3d").waitFor();
    await page.getByRole("textbox", { name: /^Due/ }).fill("2026-11-20 09:00");
    await page.getByText("That is Fri 20 Nov 09:00:00.000 UTC+1").waitFor();
    await confirm(page, "Reschedule the timeout", "has a new time");
    const moved = (await engine.timeouts.list({ destination: "trials" })).find(
      ({ key }) => key === "trial 4",
    );
    expect(new Date(moved?.dueAt ?? 0).toISOString()).toBe("2026-11-20T08:00:00.000Z");
    const other = page.locator(".due-list > li", { hasText: "trial 5" });
    await other.getByRole("button", { name: "Revoke…" }).click();
    await confirm(page, "Revoke the timeout", "is revoked");
    await other.waitFor({ state: "detached" });
    await page.goto(`${stage.url}/timeouts?tab=dead`);
    await page.getByRole("button", { name: "Requeue…" }).click();
    await confirm(page, "Requeue the timeout", "is tried again");
    await page.getByText("No timeout is dead").waitFor();
  });

  it("a pending timeout of a saga is revoked", async () => {
    const page = await open("/sagas");
    await page.getByRole("link", { name: "o-77342" }).click();
    await page.getByText("started by the message").waitFor();
    const row = page.locator(".lines > li", { hasText: "paymentLate" });
    await row.getByRole("button", { name: "Revoke…" }).click();
    await confirm(page, "Revoke the timeout", "paymentLate is revoked.");
    await row.waitFor({ state: "detached" });
    await page.locator(".lines > li", { hasText: "reminder" }).waitFor();
  });

  it("the audit shows what was done, and filters it", async () => {
    const page = await open("/audit?action=queue.*");
    await page.locator("tbody tr").first().waitFor();
    const actions = await page.locator("tbody code").allTextContents();
    expect(actions.length).toBeGreaterThan(3);
    expect(actions.every((action) => action.startsWith("queue."))).toBe(true);
    await page.getByRole("link", { name: "ana" }).first().click();
    await page.waitForURL("**actor=ana**");
  });

  it("maintenance begins with a reason and an end, and ends", async () => {
    const page = await open("/system");
    await page.getByRole("button", { name: "Begin maintenance…" }).click();
    await page.getByLabel("Ends by itself after").fill("soon");
    await page.getByText("Such as 30m or 1h30m.").waitFor();
    await page.getByLabel("Ends by itself after").fill("30m");
    await confirm(page, "Hand out no jobs", "No job of any queue is handed out.");
    await page.getByText(`“${REASON}”`).waitFor();
    await page.getByRole("button", { name: "End the maintenance…" }).click();
    await confirm(page, "Hand out jobs again", "Jobs are handed out again.");
    await page.getByRole("button", { name: "Begin maintenance…" }).waitFor();
  });
});

describe.skipIf(!hasBrowser)("a viewer who may only read", () => {
  it("sees every action, may press none, and is told why", async () => {
    const reader = createKey();
    const keys = [{ name: "rob", role: "read-only", hash: reader.hash }] as const;
    await using browser = await openBrowser();
    await using stage = await openFullDashboard(browser, { keys });
    await using opened = await stage.open("/queues");
    const { page } = opened;
    await page.getByLabel("API key").fill(reader.key);
    await page.keyboard.press("Enter");
    for (const [path, name] of [
      ["/queues", "Pause"],
      ["/workers", "Quiet…"],
      ["/crons", "Run now…"],
      ["/dead-letters", "Retry all…"],
      ["/limits", "Override…"],
      ["/timeouts", "Revoke…"],
      ["/system", "Begin maintenance…"],
    ] as const) {
      await page.goto(stage.url + path);
      const button = page.getByRole("button", { name, exact: true }).first();
      await button.waitFor();
      expect(await button.isDisabled(), path).toBe(true);
      expect(await button.getAttribute("title"), path).toBe("Your role read-only may not operate.");
    }
  });
});
