import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { createKey } from "../../src/server/access/auth.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { openDashboard, settled } from "./stage.ts";

const CARD = "4111 2222 3333 4444";
const secret = defineJob({ type: "secret.keep", queue: "vault", redact: ["payload.card"] });

describe.skipIf(!hasBrowser)("what the dashboard hides", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  it("is revealed to an admin with a reason, and gone after a reload", async () => {
    await using stage = await openDashboard(browser);
    const { id } = await stage.test.engine.enqueue(secret, { order: "A-7", card: CARD });
    await using opened = await stage.open(`/jobs/${id}`);
    const { page } = opened;
    await settled(page);
    const body = page.locator("body");
    await page.getByText("Hidden from view: payload.card").waitFor();
    expect(await body.textContent()).not.toContain(CARD);
    await page.getByRole("button", { name: "Reveal…" }).click();
    await page.getByLabel("Reason").fill("a refund");
    await page.getByRole("button", { name: "Reveal it to me" }).click();
    await page.getByText(CARD).waitFor();
    const [entry] = (await stage.test.engine.audit.read()).entries;
    expect(entry).toMatchObject({ action: "job.reveal", job: id, reason: "a refund" });
    await page.reload();
    await page.getByText("Hidden from view: payload.card").waitFor();
    expect(await body.textContent()).not.toContain(CARD);
    expect(opened.problems).toEqual([]);
  });

  it("is copied into a new job without being seen", async () => {
    await using stage = await openDashboard(browser);
    const { id } = await stage.test.engine.enqueue(secret, { order: "A-7", card: CARD });
    await using opened = await stage.open(`/jobs/${id}?form=copy`);
    const { page } = opened;
    const text = page.getByLabel("The new job");
    await text.waitFor();
    const shown = await text.inputValue();
    expect(shown).toContain('"[redacted]"');
    await text.fill(shown.replace("A-7", "A-8"));
    await page.getByRole("button", { name: "Enqueue the copy" }).click();
    await page.waitForURL((url) => !url.pathname.endsWith(id));
    const copy = page.url().split("/").at(-1)?.split("?")[0] as string;
    const [row] = await stage.test.engine.store.jobs.load([copy]);
    expect(JSON.parse(row?.payload ?? "null")).toEqual({ order: "A-8", card: CARD });
    await page.getByText("Hidden from view: payload.card").waitFor();
    expect(opened.problems).toEqual([]);
  });

  it("stays hidden from a reader, who is told why", async () => {
    const reader = createKey();
    const keys = [{ name: "rob", role: "read-only" as const, hash: reader.hash }];
    await using stage = await openDashboard(browser, { keys });
    const { id } = await stage.test.engine.enqueue(secret, { order: "A-7", card: CARD });
    await using opened = await stage.open(`/jobs/${id}`);
    const { page } = opened;
    await page.getByLabel("API key").fill(reader.key);
    await page.keyboard.press("Enter");
    const button = page.getByRole("button", { name: "Reveal…" });
    await button.waitFor();
    expect(await button.isDisabled()).toBe(true);
    expect(await button.getAttribute("title")).toContain("Your role read-only may not");
  });

  it("is not found by a search, and the foot says how to search all jobs", async () => {
    await using stage = await openDashboard(browser);
    await stage.test.engine.enqueue(secret, { order: "A-7", card: CARD });
    await using opened = await stage.open("/jobs?search=4111");
    await opened.page.getByText("0 found; all jobs were searched.").waitFor();
    await using found = await stage.open("/jobs?search=A-7");
    await found.page.getByText("1 found; all jobs were searched.").waitFor();
    expect(found.problems).toEqual([]);
  });
});
