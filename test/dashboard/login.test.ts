import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { openDashboard, settled } from "./stage.ts";

const admin = createKey();
const reader = createKey();
const KEYS = [
  { name: "ana", role: "admin", hash: admin.hash },
  { name: "rob", role: "read-only", hash: reader.hash },
] as const;

describe.skipIf(!hasBrowser)("who looks at the dashboard", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  it("logs in with a key, which stays nowhere in the browser, and logs out", async () => {
    await using stage = await openDashboard(browser, { keys: KEYS });
    await using opened = await stage.open("/jobs?state=discarded");
    const { page, context } = opened;
    await page.getByLabel("API key").fill(createKey().key);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("This key is not known").waitFor();
    await page.getByLabel("API key").fill(admin.key);
    await page.keyboard.press("Enter");
    await page.locator("tbody tr").first().waitFor();
    expect(page.url()).toContain("/jobs?state=discarded");
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])",
    );
    expect(kept).not.toContain(admin.key);
    expect(kept).not.toContain("curfew_session");
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ name: "curfew_session", httpOnly: true, sameSite: "Strict" });
    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    // The browser itself reports each 401 before the login; nothing else may go wrong.
    expect(opened.problems.filter((text) => !text.includes("401"))).toEqual([]);
  });

  it("sees what a role may not do, with the reason", async () => {
    await using stage = await openDashboard(browser, { keys: KEYS });
    await using opened = await stage.open(`/jobs/${stage.seeded.running}`);
    const { page } = opened;
    await page.getByLabel("API key").fill(reader.key);
    await page.keyboard.press("Enter");
    await page.locator(".tl").waitFor();
    for (const name of ["Extend…", "Cancel…", "Copy and enqueue…"]) {
      const button = page.getByRole("button", { name });
      expect(await button.isDisabled(), name).toBe(true);
      expect(await button.getAttribute("title"), name).toContain("Your role read-only may not");
    }
    await page.keyboard.press("e");
    expect(page.url()).not.toContain("form=");
  });

  it("is who the application around it says", async () => {
    await using stage = await openDashboard(browser, {
      authorize: ({ headers }) =>
        headers.get("cookie")?.includes("app=ok") ? { name: "app-user", role: "read-only" } : null,
    });
    await using opened = await stage.open("/");
    await opened.page.getByLabel("API key").waitFor();
    await opened.context.addCookies([{ name: "app", value: "ok", url: stage.url }]);
    await opened.page.reload();
    await settled(opened.page);
    await opened.page.getByText("read-only").waitFor();
  });
});

describe.skipIf(!hasBrowser)("a dashboard under a path", () => {
  it("asks for nothing outside of it, and its links can be opened anew", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { dashboard: { base: "/admin/jobs" }, keys: KEYS });
    await using opened = await stage.open("/admin/jobs/");
    const { page, context } = opened;
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.getByLabel("API key").fill(admin.key);
    await page.keyboard.press("Enter");
    await settled(page);
    await page.getByRole("link", { name: "Jobs" }).first().click();
    await page.waitForURL("**/admin/jobs/jobs");
    await page.locator("tbody tr td a").first().click();
    await page.locator(".tl").waitFor();
    await page.reload();
    await page.locator(".tl").waitFor();
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter((path) => !path.startsWith("/admin/jobs/"))).toEqual([]);
    expect((await context.cookies())[0]?.path).toBe("/admin/jobs/");
    expect(opened.problems.filter((text) => !text.includes("401"))).toEqual([]);
  });
});
