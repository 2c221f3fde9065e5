import type { Browser, BrowserContext, Page } from "playwright-core";
import type { ServerOptions } from "../../src/server/app.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { openTestEngine, type TestEngine } from "../../src/testing/test-engine.ts";
import { type Seeded, seed } from "./seed.ts";
import { senderOf } from "./seed-settings.ts";

/** A page with everything that must not happen on it. */
export interface OpenedPage extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors on the console, errors of scripts, reports of the policy, failed requests. All tests end with none. */
  readonly problems: string[];
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  readonly scale?: number;
  /** Called before the page is loaded. */
  readonly prepare?: (context: BrowserContext) => Promise<void>;
}

/** A server on a memory store with a busy afternoon behind it, whose virtual time moves as the real one does. */
export interface DashboardStage extends AsyncDisposable {
  readonly url: string;
  readonly test: TestEngine;
  readonly seeded: Seeded;
  /** Virtual time: while it stands still, the server says nothing. */
  readonly clock: { stop(): void; go(): void };
  open(path: string, options?: PageOptions): Promise<OpenedPage>;
}

export interface StageOptions extends ServerOptions {
  readonly hostile?: string;
  readonly isEmpty?: boolean;
}

const START = "2026-11-02T14:30:00Z";
const NOTHING: Seeded = {
  running: "",
  killed: "",
  completed: "",
  scheduled: "",
  expired: "",
  deadLetter: "",
  hostile: "",
};

export async function openDashboard(browser: Browser, options: StageOptions = {}): Promise<DashboardStage> {
  const { hostile, isEmpty = false, ...serverOptions } = options;
  const sender = senderOf(hostile ?? "ok");
  const test = await openTestEngine({ startAt: START, events: "durable", webhooks: { sender } });
  const server = createServer(test.engine, serverOptions);
  const seeded = isEmpty ? NOTHING : await seed(test, hostile);
  const listening = await listen(server, { port: 0 });
  const time = moveTime(test);
  const contexts = new Set<BrowserContext>();
  return {
    url: listening.url,
    test,
    seeded,
    clock: time,
    async open(path, pageOptions) {
      const opened = await openPage(browser, `${listening.url}${path}`, pageOptions);
      contexts.add(opened.context);
      return opened;
    },
    async [Symbol.asyncDispose]() {
      for (const context of contexts) await context.close();
      await time.end();
      await listening.close();
      await test.close();
    },
  };
}

const STEP = 20;

/** Lets virtual time pass as real time does: the server answers and counts down as it would outside of a test. */
export function moveTime(test: TestEngine) {
  let isOver = false;
  let isStopped = false;
  const run = async () => {
    let before = performance.now();
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, STEP));
      const now = performance.now();
      if (!isStopped) await test.system.advance(now - before);
      before = now;
    }
  };
  const running = run();
  return {
    stop: () => {
      isStopped = true;
    },
    go: () => {
      isStopped = false;
    },
    end: () => {
      isOver = true;
      return running;
    },
  };
}

export async function openPage(
  browser: Browser,
  url: string,
  options: PageOptions = {},
): Promise<OpenedPage> {
  const { width = 1440, height = 1000, dark = false, scale = 1 } = options;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    deviceScaleFactor: scale,
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
    reducedMotion: "reduce",
    ...(width < 500 && { hasTouch: true, isMobile: true }),
  });
  await options.prepare?.(context);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("console", (message) => {
    // A page asks for what a server may not have, and shows nothing where it has not.
    if (message.location().url.endsWith("/why")) return;
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.addInitScript(
    'addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective + " " + event.blockedURI))',
  );
  await page.goto(url);
  return { page, context, problems, [Symbol.asyncDispose]: () => context.close() };
}

/**
 * Goes to another page as a link does: the program stays, which takes a third of the time of loading it again. It goes
 * by way of a page that is not there, so that nothing of the last page is taken for the next one.
 */
export async function follow(page: Page, path: string): Promise<void> {
  await page.evaluate(`(async () => {
    for (const to of ["/nowhere", ${JSON.stringify(path)}]) {
      history.pushState(null, "", to);
      dispatchEvent(new Event("popstate"));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }
  })()`);
}

/** Waits until a page shows what it has read: its heading is there and nothing is being loaded. */
export async function settled(page: Page): Promise<void> {
  await page.locator("h1").first().waitFor();
  await page.locator('[role="status"][aria-label="Loading"]').first().waitFor({ state: "detached" });
}
