import type { Browser, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FullStage, openFullDashboard } from "./full-stage.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";

/** A full run loads every page in both orders of the replies. */
const IS_FULL = process.env.CURFEW_FULL_DASHBOARD_TESTS === "1";
/** A share of the window times a share of the way across it. A line of text that moves by its height is 0.005. */
const MOST_SHIFT = 0.01;

const pagesOf = ({ seeded, pages }: FullStage) => [
  "/",
  "/jobs",
  "/jobs?state=discarded&queue=billing",
  "/jobs?tab=timeouts",
  "/jobs?tab=near-misses",
  "/jobs?search=customer-1",
  `/jobs/${seeded.deadLetter}`,
  `/jobs/${seeded.running}`,
  `/jobs/${seeded.running}?form=extend&attempt=5m`,
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
  "/events",
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

/** In the page: paints what it has, and says whether it waits for more. */
const IS_SETTLED = `(async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return document.querySelector("h1") !== null && document.querySelector('[role="status"][aria-label="Loading"]') === null;
})()`;

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

/** Holds what the page asks the server for, until it is let through. The live line is not held. */
async function holdReplies(page: Page): Promise<Route[]> {
  const held: Route[] = [];
  await page.route(/\/ojs\/v1\//, async (route) => {
    if (route.request().resourceType() === "eventsource") await route.continue();
    else held.push(route);
  });
  return held;
}

/**
 * Lets one reply after the other through, and the page paint each, as a slow server does. So what moves does not depend
 * on how fast this machine is.
 */
async function answerOneByOne(page: Page, held: Route[], order: "first" | "last"): Promise<void> {
  for (let isDone = false; !isDone; ) {
    const route = order === "first" ? held.shift() : held.pop();
    if (route) {
      await route.continue();
      await (await route.request().response())?.finished();
    }
    isDone = Boolean(await page.evaluate(IS_SETTLED)) && held.length === 0;
  }
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

  const desk = { width: 1440, height: 1000 };
  const phone = { width: 390, height: 844 };
  it.each([
    ["a desk, the first question answered first", desk, "first"],
    ["a phone, the last question answered first", phone, "last"],
    ...(IS_FULL
      ? ([
          ["a desk, the last question answered first", desk, "last"],
          ["a phone, the first question answered first", phone, "first"],
        ] as const)
      : []),
  ] as const)("stays where it is, on %s", async (_name, size, order) => {
    await using opened = await stage.open("/health", {
      ...size,
      prepare: async (context) => void (await context.addInitScript(WATCH)),
    });
    const { page } = opened;
    // Nothing new happens while the pages load: news may move what is below it.
    stage.clock.stop();
    const held = await holdReplies(page);
    const found: string[] = [];
    const paints: number[] = [];
    for (const path of pagesOf(stage)) {
      await page.goto(stage.url + path, { waitUntil: "commit" });
      await answerOneByOne(page, held, order);
      const { shift, moved, paint, width } = await look(page);
      paints.push(paint);
      if (width > size.width) found.push(`${path} is ${width} px wide`);
      if (shift > MOST_SHIFT) found.push(`${path} moved by ${shift.toFixed(4)}: ${moved}`);
    }
    stage.clock.go();
    // The goal is a second on a quiet machine. Beside other tests the time says nothing, and is only printed.
    paints.sort((a, b) => a - b);
    const [half, last] = [paints[Math.floor(paints.length / 2)], paints.at(-1)].map((time) =>
      Math.round(time ?? 0),
    );
    console.log(`${paints.length} pages, half of them painted after ${half} ms, all after ${last} ms`);
    expect(found).toEqual([]);
    expect(opened.problems).toEqual([]);
  });
});
