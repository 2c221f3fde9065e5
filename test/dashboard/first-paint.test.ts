import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FullStage, openFullDashboard } from "./full-stage.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { settled } from "./stage.ts";

/** The goal is a second on a quiet machine. Beside other tests the time says nothing, and is only printed. */
const IS_FULL = process.env.CURFEW_FULL_DASHBOARD_TESTS === "1";
const SLOWEST_PAINT = IS_FULL ? 1_000 : Number.POSITIVE_INFINITY;
/** A slow machine brings news while a page loads, which moves what is below it: there, only a page that jumps is found. */
const MOST_SHIFT = IS_FULL ? 0.005 : 0.25;

/** Left out: the events, which are a tail whose newest line is at the top. */
const pagesOf = ({ seeded, pages }: FullStage) => [
  "/",
  "/jobs",
  "/jobs?tab=timeouts",
  "/jobs?tab=near-misses",
  `/jobs/${seeded.deadLetter}`,
  "/queues",
  "/queues/images",
  "/workers",
  "/crons",
  "/crons/monthly%20statement",
  "/workflows",
  `/workflows/${pages.workflow}`,
  "/sagas",
  "/sagas/order/o-77310",
  "/timeouts",
  "/timeouts?tab=dead",
  "/webhooks",
  "/webhooks?tab=deliveries",
  `/webhooks/${pages.webhook}`,
  "/dead-letters",
  "/audit",
  "/advice",
  "/limits",
  "/unique-keys",
  "/schemas",
  "/schemas/card.charge",
  "/calendars",
  "/calendars/frankfurt",
  "/tenants",
  "/system",
];

/** In the page, before its own program. What moves after a press is meant. */
const WATCH = `globalThis.shifts = [];
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) shifts.push([value, sources.map(({ node }) => node?.className || node?.nodeName || "").join(" ")]);
  }).observe({ type: "layout-shift", buffered: true })`;

interface Seen {
  readonly shift: number;
  readonly moved: string;
  readonly paint: number;
  /** How wide the page is: a phone zooms out of one that is wider than its window. */
  readonly width: number;
}

async function look(page: Page): Promise<Seen> {
  const shifts = (await page.evaluate("globalThis.shifts")) as [number, string][];
  const paint = await page.evaluate(
    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0",
  );
  return {
    shift: shifts.reduce((sum, [value]) => sum + value, 0),
    moved: shifts.map(([value, what]) => `${value.toFixed(4)} ${what}`).join("; "),
    paint: Number(paint),
    width: Number(await page.evaluate("Math.max(innerWidth, document.documentElement.scrollWidth)")),
  };
}

describe.skipIf(!hasBrowser)("what is seen first", () => {
  let browser: Browser;
  let stage: FullStage;
  beforeAll(async () => {
    browser = await openBrowser();
    stage = await openFullDashboard(browser);
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await browser?.close();
  });

  it.each([
    ["a desk", { width: 1440, height: 1000 }],
    ["a phone", { width: 390, height: 844 }],
  ])("comes soon and stays where it is, on %s", { timeout: 120_000 }, async (_name, size) => {
    await using opened = await stage.open("/health", {
      ...size,
      prepare: async (context) => void (await context.addInitScript(WATCH)),
    });
    const { page } = opened;
    const found: string[] = [];
    const paints: number[] = [];
    const visit = async (path: string) => {
      await page.goto(stage.url + path);
      await settled(page);
      // What was read late has come by the time the live line speaks.
      await page.getByText("Live", { exact: true }).first().waitFor();
      return look(page);
    };
    const paths = pagesOf(stage);
    for (const path of paths) {
      const first = await visit(path);
      // News may come meanwhile and move what is below it; it does not come twice.
      const { shift, moved, paint, width } = first.shift > MOST_SHIFT ? await visit(path) : first;
      paints.push(paint);
      if (width > size.width) found.push(`${path} is ${width} px wide`);
      if (shift > MOST_SHIFT) found.push(`${path} moved by ${shift.toFixed(4)}: ${moved}`);
      if (paint > SLOWEST_PAINT) found.push(`${path} was painted after ${Math.round(paint)} ms`);
    }
    console.log(`${paths.length} pages, the slowest first paint after ${Math.round(Math.max(...paints))} ms`);
    expect(found).toEqual([]);
    expect(opened.problems).toEqual([]);
  });
});
