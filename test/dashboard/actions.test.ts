import { text } from "node:stream/consumers";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { rowOf } from "../../src/testing/read-store.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { type DashboardStage, type OpenedPage, openDashboard, settled } from "./stage.ts";

describe.skipIf(!hasBrowser)("what can be done in the dashboard", () => {
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
  const state = async (id: string) => (await stage.test.engine.load(id))?.state;

  it("filters stand in the URL, and a loaded URL shows the same", async () => {
    const page = await open("/jobs");
    await page.getByRole("link", { name: /^Discarded/ }).click();
    await page.keyboard.press("f");
    await page.getByLabel("Filter by").selectOption("type");
    await page.getByLabel("is", { exact: true }).fill("card.charge");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/jobs?state=discarded&type=card.charge");
    await page.locator("tbody tr").nth(5).waitFor();
    const ids = await page.locator("tbody .id").allTextContents();
    expect(ids).toHaveLength(6);
    await page.reload();
    await page.locator("tbody tr").nth(5).waitFor();
    expect(await page.locator("tbody .id").allTextContents()).toEqual(ids);
    await page.getByRole("link", { name: "Remove the filter type" }).click();
    await page.waitForURL("**/jobs?state=discarded");
    await page.goBack();
    await page.waitForURL("**/jobs?state=discarded&type=card.charge");
  });

  it("pages are walked by cursor", async () => {
    const page = await open("/jobs");
    const first = await page.locator("tbody .id").allTextContents();
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForURL("**/jobs?cursor=*");
    await page.getByRole("link", { name: "First page" }).waitFor();
    const second = await page.locator("tbody .id").allTextContents();
    expect(second.some((id) => first.includes(id))).toBe(false);
    expect(first.length + second.length).toBe(83);
  });

  it("chosen jobs are retried after a preview, and the audit has the reason", async () => {
    const page = await open("/jobs?state=discarded&type=card.charge");
    await page.getByLabel("Select all on this page").check();
    await page.getByRole("button", { name: "Retry…" }).click();
    await page.getByText("This means 6 of the chosen jobs.").waitFor();
    await page.getByLabel("Reason, for the audit").fill("the provider is back");
    await page.getByRole("button", { name: "Retry 6 jobs" }).click();
    await page.getByText("6 jobs wait again.").waitFor();
    const { entries } = await stage.test.engine.audit.read({ limit: 10 });
    expect(entries.filter(({ reason }) => reason === "the provider is back")).not.toEqual([]);
    expect(await state(stage.seeded.deadLetter)).not.toBe("discarded");
  });

  it("the list is saved as a file that a spreadsheet can open", async () => {
    const page = await open("/jobs?state=discarded&type=card.charge");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export CSV" }).click(),
    ]);
    const lines = (await text(await download.createReadStream())).trim().split("\r\n");
    expect(lines[0]).toContain("id,type,queue,state");
    expect(lines).toHaveLength(7);
  });

  it("a view is saved under a name, and is there after a reload", async () => {
    const page = await open("/jobs?state=discarded");
    await page.getByRole("button", { name: "Saved views" }).click();
    await page.getByRole("button", { name: "Save this view…" }).click();
    await page.getByLabel("Name").fill("Broken");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.goto(`${stage.url}/jobs`);
    await page.getByRole("button", { name: "Saved views" }).click();
    await page.getByRole("link", { name: "Broken" }).click();
    await page.waitForURL("**/jobs?state=discarded");
  });

  it("a running job is extended, with its new limits drawn first", async () => {
    const page = await open(`/jobs/${stage.seeded.running}`);
    await page.locator(".tl").waitFor();
    await page.keyboard.press("e");
    await page.getByLabel("attempt", { exact: true }).fill("5m");
    await page.waitForURL("**?form=extend&attempt=5m");
    await page.locator(".seg-preview").waitFor();
    expect(await page.locator(".extend p").textContent()).toContain("signal 16:11:20");
    await page.getByLabel("Reason, for the audit").fill("large month");
    await page.getByRole("button", { name: "Extend attempt to 5m" }).click();
    await page.getByText("The limits are changed.").waitFor();
    const row = await rowOf(stage.test.engine.store, stage.seeded.running);
    expect(row?.policy?.attempt).toBe(300_000);
    await page.locator(".tl-row.next .len", { hasText: "5m" }).waitFor();
  });

  it("a job is cancelled, and what the page shows is what the server says", async () => {
    const page = await open(`/jobs/${stage.seeded.running}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await page.locator(".badge.pill", { hasText: "Cancelled" }).waitFor();
    expect(await state(stage.seeded.running)).toBe("cancelled");
  });

  it("a discarded job is retried, and a copy of it is enqueued", async () => {
    const page = await open(`/jobs/${stage.seeded.killed}`);
    await page.keyboard.press("r");
    await page.getByRole("button", { name: "Retry the job" }).click();
    await page.locator(".badge.pill", { hasText: /Waiting|Running/ }).waitFor();
    await page.getByRole("button", { name: "Copy and enqueue…" }).click();
    await page.getByRole("button", { name: "Enqueue the copy" }).click();
    await page.getByText("A new job is enqueued.").waitFor();
    expect(page.url()).not.toContain(stage.seeded.killed);
  });

  it("a refusal is shown in the server's words, and the form stays", async () => {
    const page = await open(`/jobs/${stage.seeded.running}?form=extend&attempt=1s`);
    await page.getByRole("button", { name: "Extend attempt to 1s" }).click();
    await page.locator(".extend .callout").waitFor();
    expect(await page.getByLabel("attempt", { exact: true }).inputValue()).toBe("1s");
    opened.problems.length = 0;
  });

  it("everything can be reached with keys", async () => {
    const page = await open("/");
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.waitForURL("**/jobs");
    await page.locator("tbody tr").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    expect(await page.locator('tr[aria-selected="true"]').getAttribute("data-id")).toBe(
      await page.locator("tbody tr").nth(1).getAttribute("data-id"),
    );
    await page.keyboard.press("Escape");
    expect(await page.locator('tr[aria-selected="true"]').count()).toBe(0);
    await page.keyboard.press("Enter");
    await page.locator(".tl").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(stage.seeded.completed);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/jobs/${stage.seeded.completed}`);
  });

  it("says that what it shows is old when nothing is heard, and recovers", async () => {
    const page = await open("/");
    await page.getByText("Live").waitFor();
    stage.clock.stop();
    await page.getByText(/Stale since/).waitFor({ timeout: 30_000 });
    stage.clock.go();
    await page.getByText("Live", { exact: true }).waitFor({ timeout: 45_000 });
    opened.problems.length = 0;
  });
});
