import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RECORDED } from "../../src/engine/events/recording-rules.ts";
import { violations, violationsOfBothThemes } from "./axe.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { type DashboardStage, follow, openDashboard, settled } from "./stage.ts";

/** In the page, before its own program: what each line of events listens for. */
const NOTE_LISTENERS = `(() => {
  globalThis.heard = {};
  const Real = globalThis.EventSource;
  globalThis.EventSource = class extends Real {
    addEventListener(name, ...rest) {
      (globalThis.heard[this.url] ??= []).push(name);
      super.addEventListener(name, ...rest);
    }
  };
})()`;

const dist = join(import.meta.dirname, "..", "..", "dist", "dashboard");

it("the first page needs less than 120 kB of JavaScript", () => {
  const page = readFileSync(join(dist, "index.html"), "utf8");
  const first = [...page.matchAll(/assets\/[\w-]+\.js/g)].map(([name]) => name);
  expect(first.length).toBeGreaterThan(0);
  const all = readdirSync(join(dist, "assets")).filter((name) => name.endsWith(".js"));
  const size = (name: string) =>
    gzipSync(readFileSync(join(dist, "assets", name.replace("assets/", "")))).length;
  expect(first.reduce((sum, name) => sum + size(name), 0)).toBeLessThan(120_000);
  // Even with every page and the plots.
  expect(all.reduce((sum, name) => sum + size(name), 0)).toBeLessThan(300_000);
});

describe.skipIf(!hasBrowser)("the dashboard in a browser", () => {
  let browser: Browser;
  let stage: DashboardStage;
  beforeAll(async () => {
    browser = await openBrowser();
    stage = await openDashboard(browser);
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await browser?.close();
  });

  const pages = (): readonly (readonly [string, string])[] => [
    ["/", "Overview"],
    ["/jobs", "Jobs"],
    ["/jobs?state=discarded&queue=billing", "Jobs"],
    ["/jobs?tab=timeouts", "Jobs"],
    ["/jobs?tab=near-misses", "Jobs"],
    ["/jobs?search=customer-1", "Jobs"],
    [`/jobs/${stage.seeded.running}`, "report.render"],
    [`/jobs/${stage.seeded.deadLetter}`, "card.charge"],
    [`/jobs/${stage.seeded.scheduled}`, "statement.mail"],
    [`/jobs/${stage.seeded.running}?form=extend&attempt=5m`, "report.render"],
  ];

  it.each([
    ["light and dark", violationsOfBothThemes, {}],
    ["on a phone", violations, { width: 390, height: 844 }],
  ])(
    "every page is readable for everybody, %s, and nothing goes wrong on it",
    async (_name, look, options) => {
      // One tab for all of them: each new one costs more than what is looked at in it.
      await using opened = await stage.open("/nowhere", options);
      const { page, problems } = opened;
      for (const [path, title] of pages()) {
        await follow(page, path);
        await settled(page);
        expect(await page.locator("h1").first().textContent()).toContain(title);
        expect(await look(page), path).toEqual([]);
        expect(problems, path).toEqual([]);
        const width = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        expect(width, `${path} scrolls sideways`).toBe(0);
        expect(await page.locator("[style]").evaluateAll(ownStyles), path).toEqual([]);
      }
    },
  );

  it("the overview says what needs attention, and leads there", async () => {
    await using opened = await stage.open("/");
    const { page } = opened;
    const row = page.locator(".attn li", { hasText: "Nobody works on queue video" });
    await row.getByRole("link").click();
    await page.waitForURL("**/jobs?state=available&queue=video");
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody tr").count()).toBe(6);
  });

  it("a job shows its attempts, limits and countdown, and moves on by itself", async () => {
    // Time passes on the shared stage, and this attempt is to be seen before its signal.
    await using fresh = await openDashboard(browser);
    await using opened = await fresh.open(`/jobs/${fresh.seeded.running}`);
    const { page } = opened;
    await page.locator(".tl-count .v").waitFor();
    const before = await page.locator(".tl-count .v").textContent();
    await page
      .locator(".tl-count .v")
      .filter({ hasNotText: before ?? "" })
      .waitFor();
    expect(await page.locator(".tl-row.limit").count()).toBe(5);
    expect(await page.locator(".tl-row.next b").first().textContent()).toBe("attempt");
    expect(await page.locator(".att").count()).toBe(2);
    expect(await page.locator(".att").last().textContent()).toContain("Timed out after 2m");
  });

  it("a job's page listens for everything that may happen to a job", async () => {
    const { running } = stage.seeded;
    await using opened = await stage.open(`/jobs/${running}`, {
      prepare: async (context) => void (await context.addInitScript(NOTE_LISTENERS)),
    });
    await settled(opened.page);
    const heard = (await opened.page.evaluate("globalThis.heard")) as Record<string, string[]>;
    const line = Object.keys(heard).find((url) => url.includes(`/jobs/${running}/events`)) ?? "";
    const recorded = Object.entries(RECORDED).flatMap(([name, how]) =>
      typeof how !== "object" && name.startsWith("job.") ? [name] : [],
    );
    expect(recorded).toContain("job.ttl_expired");
    expect(heard[line]?.toSorted()).toEqual(recorded.toSorted());
  });

  it("counts by the server's clock from the first moment on, however wrong the browser's is", async () => {
    await using opened = await stage.open("/jobs?state=available");
    const { page } = opened;
    const first = page.locator("tbody tr").first();
    await first.waitFor();
    // The browser's clock is days ahead of the server's virtual one.
    expect(await first.textContent()).toMatch(/\d+ m( \d+ s)? to begin/);
    expect(await first.textContent()).toMatch(/\d+ m ago/);
  });

  it("the theme is the system's until another one is chosen, which stays", async () => {
    await using opened = await stage.open("/jobs", { dark: true });
    const { page } = opened;
    const isDark = () =>
      page.evaluate('getComputedStyle(document.body).backgroundColor === "rgb(13, 14, 18)"');
    await page.getByRole("button", { name: "Theme: system" }).waitFor();
    expect(await isDark()).toBe(true);
    await page.getByRole("button", { name: "Theme: system" }).click();
    await page.getByRole("button", { name: "Theme: light" }).waitFor();
    expect(await isDark()).toBe(false);
    await page.reload();
    await page.getByRole("button", { name: "Theme: light" }).waitFor();
    expect(await isDark()).toBe(false);
  });

  it("a relative time says the exact one here and in UTC on hover", async () => {
    await using opened = await stage.open("/jobs");
    const time = opened.page.locator("tbody time").first();
    await time.waitFor();
    expect(await time.textContent()).toMatch(/ago$/);
    // The browser is in Berlin, one hour ahead.
    const title = (await time.getAttribute("title")) ?? "";
    const [here, utc] = [...title.matchAll(/(\d\d):\d\d:\d\d/g)].map(([, hour]) => Number(hour));
    expect(title).toContain("UTC");
    expect((here ?? 0) - (utc ?? 0)).toBe(1);
  });

  it("a thing that is not there is said to be not there", async () => {
    await using opened = await stage.open("/jobs/01a19cc9-0000-7000-8000-000000000000");
    await opened.page.getByText("There is no such job").waitFor();
    await opened.page.goto(`${stage.url}/nowhere/at/all`);
    await opened.page.getByText("No such page").waitFor();
  });
});

/** uPlot sets sizes of its canvas through the object model, which the policy allows; nothing else has a style. */
function ownStyles(elements: readonly unknown[]): string[] {
  type Found = { closest(selector: string): unknown; outerHTML: string };
  return (elements as Found[])
    .filter((one) => !one.closest(".uplot"))
    .map((one) => one.outerHTML.slice(0, 100));
}

describe.skipIf(!hasBrowser)("an empty store", () => {
  it("teaches the next command", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    await using opened = await stage.open("/jobs");
    await opened.page.getByText("No jobs yet").waitFor();
    expect(await opened.page.locator(".code").textContent()).toContain("curl");
    await opened.page.goto(stage.url);
    await opened.page.getByText("Nothing needs you").waitFor();
    expect(opened.problems).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)("hostile texts", () => {
  const HOSTILE = '"><img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>{{7*7}}‮';

  it("are only ugly", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { hostile: HOSTILE });
    await using opened = await stage.open(`/jobs/${stage.seeded.hostile}`);
    const { page } = opened;
    await page.locator(".tree").first().waitFor();
    expect(await page.locator(".tree").first().textContent()).toContain("onerror");
    for (const path of [
      `/jobs?queue=${encodeURIComponent(HOSTILE)}`,
      `/jobs?type=${encodeURIComponent(HOSTILE)}`,
      `/${encodeURIComponent(HOSTILE)}`,
      `/jobs/${encodeURIComponent(HOSTILE)}`,
    ]) {
      await page.goto(stage.url + path);
      await page.locator("h1").first().waitFor();
      expect(await isHacked(page), path).toBe(false);
    }
    // Refused filters are answered with 400; a policy report would be another thing.
    expect(opened.problems.filter((text) => !/status of (?:400|404)/.test(text))).toEqual([]);
  });

  const isHacked = (page: Page) =>
    page.evaluate('"hacked" in globalThis || document.querySelector("img") !== null');
});
