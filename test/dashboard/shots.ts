/**
 * `npm run dashboard:shots [folder] [name…]`: screenshots of every page of the demo, light, dark and on a phone. It
 * starts the demo on a store of its own and waits until there is something on every page, some minutes. Look at them
 * when you have changed how something looks. `--docs` makes the pictures of the guide. `--url <url>` takes a demo that runs already.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import { hasChromium, launchOptions } from "./chromium.ts";
import { openPage, type PageOptions, settled } from "./stage.ts";

/** A page of the demo. Where it needs a thing of its own, it names the list and chooses from what is there. */
interface Shot {
  readonly name: string;
  readonly path: string;
  /** A list of the HTTP interface, and which item of it; `path` has `*` where its id goes. */
  readonly from?: string;
  readonly which?: (item: Item) => boolean;
  /** How much of it the guide shows, in pixels from the top. */
  readonly docs?: number;
}

interface Item {
  readonly id?: string;
  readonly state: string;
  readonly attempt?: number;
  readonly error?: { readonly forced?: boolean };
  readonly [name: string]: unknown;
}

/** Its second attempt began within the last seconds, so it still runs when the picture is made. */
function hasJustBegunAgain({ attempt, started_at }: Item): boolean {
  return attempt === 2 && Date.now() - Date.parse(String(started_at)) < 4_000;
}

const ofType = (type: string, more = "") => `/admin/jobs?per_page=100&type=${type}${more}`;

const SHOTS: readonly Shot[] = [
  {
    name: "job-killed",
    path: "/jobs/*",
    from: ofType("report.render"),
    which: ({ state, error }) => state === "discarded" && error?.forced === true,
    docs: 1_140,
  },
  { name: "overview", path: "/", docs: 800 },
  { name: "jobs", path: "/jobs", docs: 640 },
  { name: "jobs-filtered", path: "/jobs?state=discarded&queue=reports" },
  { name: "jobs-timeouts", path: "/jobs?tab=timeouts" },
  { name: "jobs-near-misses", path: "/jobs?tab=near-misses", docs: 560 },
  {
    name: "job-running",
    path: "/jobs/*",
    from: ofType("search.index", "&state=active"),
    which: hasJustBegunAgain,
    docs: 600,
  },
  {
    name: "job-extend",
    path: "/jobs/*?form=extend&attempt=5m",
    from: ofType("search.index", "&state=active"),
    which: hasJustBegunAgain,
  },
  { name: "job-stuck", path: "/jobs/*", from: ofType("backup.upload", "&state=discarded") },
  { name: "job-retried", path: "/jobs/*", from: ofType("webhook.deliver", "&state=retryable") },
  { name: "job-completed", path: "/jobs/*", from: ofType("mail.send", "&state=completed") },
  { name: "job-scheduled", path: "/jobs/*", from: ofType("newsletter.send", "&state=scheduled") },
  { name: "job-expired", path: "/jobs/*", from: ofType("offer.send", "&state=discarded") },
  { name: "queues", path: "/queues" },
  { name: "queue", path: "/queues/reports" },
  { name: "workers", path: "/workers" },
  { name: "crons", path: "/crons" },
  { name: "cron", path: "/crons/demo%3A%20send%20the%20daily%20digest" },
  { name: "workflows", path: "/workflows" },
  {
    name: "workflow",
    path: "/workflows/*",
    from: "/workflows",
    which: ({ state }) => state === "running",
  },
  { name: "sagas", path: "/sagas" },
  { name: "saga", path: "/sagas/order/*", from: "/admin/sagas" },
  { name: "timeouts", path: "/timeouts", docs: 760 },
  { name: "timeouts-dead", path: "/timeouts?tab=dead" },
  { name: "dead-letters", path: "/dead-letters" },
  { name: "events", path: "/events" },
  { name: "audit", path: "/audit" },
  { name: "advice", path: "/advice?type=image.resize" },
  { name: "limits", path: "/limits" },
  { name: "unique-keys", path: "/unique-keys" },
  { name: "system", path: "/system" },
  { name: "webhooks", path: "/webhooks" },
  { name: "webhook", path: "/webhooks/*", from: "/webhooks/subscriptions" },
  { name: "schemas", path: "/schemas" },
  { name: "schema", path: "/schemas/card.charge" },
  { name: "calendars", path: "/calendars" },
  { name: "calendar", path: "/calendars/demo%3A%20shop%20hours" },
  { name: "tenants", path: "/tenants" },
  { name: "queue-fair", path: "/queues/offers" },
];

const LIGHT: readonly [suffix: string, options: PageOptions] = ["", {}];
const LOOKS: readonly (readonly [suffix: string, options: PageOptions])[] = [
  LIGHT,
  ["-dark", { dark: true }],
  ["-phone", { width: 390, height: 844, scale: 2 }],
];

/** Plots need some minutes' worth of counts, and the list of a demo that has just begun is short. */
const WARM_UP = 120_000;
const PATIENCE = 120_000;

async function startDemo(folder: string): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const main = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
  const store = `sqlite:${join(folder, "demo.db")}`;
  const child = spawn(process.execPath, [main, "serve", "--demo", "--port", "0", "--store", store], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NO_COLOR: "1" },
  });
  let said = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // It is read to the end: what writes into a pipe that nobody reads any more is ended.
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    const url = /http:\/\/[^\s"]+:\d+/.exec(said)?.[0];
    if (url) resolve(url);
  });
  child.once("close", () => reject(new Error(`the demo ended: ${said}`)));
  return { url: await promise, child };
}

/** The address of a page, once the demo has what it shows. */
async function addressOf(url: string, { path, from, which = () => true }: Shot): Promise<string> {
  if (from === undefined) return url + path;
  const until = performance.now() + PATIENCE;
  while (performance.now() < until) {
    const found = (await itemsOf(`${url}/ojs/v1${from}`)).find(which);
    if (found) return url + path.replace("*", encodeURIComponent(String(found.id)));
    await rest(500);
  }
  throw new Error(`${path}: nothing in ${from} within ${PATIENCE / 1_000} s`);
}

/** Nothing where the server did not answer: a busy machine drops a connection now and then. */
async function itemsOf(address: string): Promise<Item[]> {
  try {
    const body = (await (await fetch(address)).json()) as Record<string, unknown>;
    return (Object.values(body).find(Array.isArray) as Item[] | undefined) ?? [];
  } catch {
    return [];
  }
}

function rest(span: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, span));
}

async function shoot(page: Page, { docs }: Shot, name: string, width: number): Promise<void> {
  // Plots are drawn once their program is there.
  await page.waitForLoadState("load");
  await rest(700);
  // As high as what it shows, since the bars of a phone stand at the edges of the window.
  const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
  const size = isForDocs ? { width: 1280, height: docs ?? height } : { width, height: Math.max(height, 600) };
  await page.setViewportSize(size);
  await rest(700);
  await page.screenshot({ path: join(folder, isForDocs ? `dashboard-${name}.png` : `${name}.png`) });
}

/** One picture. What one page does not have yet must not cost all the others. */
async function take(browser: Browser, shot: Shot, name: string, options: PageOptions): Promise<boolean> {
  try {
    await using opened = await openPage(browser, await addressOf(url, shot), options);
    await settled(opened.page);
    await shoot(opened.page, shot, name, options.width ?? 1280);
    for (const problem of opened.problems) console.error(`${name}: ${problem}`);
    console.log(`${name}.png`);
    return true;
  } catch (error) {
    console.error(`${name}: no picture: ${String(error)}`);
    return false;
  }
}

if (!hasChromium) {
  console.error("No chromium here: set CURFEW_CHROMIUM to one. No screenshots were made.");
  process.exit(1);
}
const ROOT = join(import.meta.dirname, "..", "..");
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: "string" }, docs: { type: "boolean", default: false } },
});
const isForDocs = values.docs;
const [given = join(ROOT, ".cache", "shots"), ...others] = positionals;
const folder = isForDocs ? join(ROOT, "docs", "guides", "images") : given;
const names = isForDocs ? positionals : others;
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "curfew-shots-"));
const missing: string[] = [];
const demo = values.url === undefined ? await startDemo(scratch) : { url: values.url, child: undefined };
const { url } = demo;
try {
  await using browser = await chromium.launch(launchOptions);
  if (demo.child) await rest(WARM_UP);
  for (const shot of SHOTS) {
    if (isForDocs && shot.docs === undefined) continue;
    for (const [suffix, options] of isForDocs ? [LIGHT] : LOOKS) {
      const name = `${shot.name}${suffix}`;
      if (names.length > 0 && !names.includes(shot.name) && !names.includes(name)) continue;
      if (!(await take(browser, shot, name, options))) missing.push(name);
    }
  }
} finally {
  if (demo.child) {
    demo.child.kill("SIGTERM");
    await once(demo.child, "close");
  }
  rmSync(scratch, { recursive: true, force: true });
}
if (missing.length > 0) {
  console.error(`${missing.length} pictures are missing: ${missing.join(", ")}`);
  process.exitCode = 1;
}
