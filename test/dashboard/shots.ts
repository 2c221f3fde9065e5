/**
 * `npm run dashboard:shots [folder] [name…]`: screenshots of every page, light, dark and on a phone. Look at them when
 * you have changed how something looks.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { hasChromium } from "./chromium.ts";
import { type FullStage, openFullDashboard } from "./full-stage.ts";
import { openBrowser, type PageOptions, settled } from "./stage.ts";

/** Every page by the name of its picture. */
const PAGES: readonly (readonly [name: string, path: (stage: FullStage) => string])[] = [
  ["overview", () => "/"],
  ["jobs", () => "/jobs"],
  ["jobs-filtered", () => "/jobs?state=discarded&queue=billing"],
  ["job-running", ({ seeded }) => `/jobs/${seeded.running}`],
  ["job-killed", ({ seeded }) => `/jobs/${seeded.killed}`],
  ["job-completed", ({ seeded }) => `/jobs/${seeded.completed}`],
  ["job-scheduled", ({ seeded }) => `/jobs/${seeded.scheduled}`],
  ["job-expired", ({ seeded }) => `/jobs/${seeded.expired}`],
  ["job-extend", ({ seeded }) => `/jobs/${seeded.running}?form=extend`],
  ["job-dead-letter", ({ seeded }) => `/jobs/${seeded.deadLetter}`],
  ["queues", () => "/queues"],
  ["queue", () => "/queues/billing"],
  ["workers", () => "/workers"],
  ["crons", () => "/crons"],
  ["cron", () => "/crons/monthly%20statement"],
  ["workflows", () => "/workflows"],
  ["workflow", ({ pages }) => `/workflows/${pages.workflow}`],
  ["sagas", () => "/sagas"],
  ["saga", () => "/sagas/order/o-77310"],
  ["timeouts", () => "/timeouts"],
  ["timeouts-dead", () => "/timeouts?tab=dead"],
  ["dead-letters", () => "/dead-letters"],
  ["events", () => "/events"],
  ["audit", () => "/audit"],
  ["advice", () => "/advice?type=image.thumb"],
  ["limits", () => "/limits"],
  ["unique-keys", () => "/unique-keys"],
  ["system", () => "/system"],
];

const LOOKS: readonly (readonly [suffix: string, options: PageOptions])[] = [
  ["", {}],
  ["-dark", { dark: true }],
  ["-phone", { width: 390, height: 844, scale: 2 }],
];

if (!hasChromium) {
  console.error("No chromium here: set CURFEW_CHROMIUM to one. No screenshots were made.");
  process.exit(1);
}
const [folder = join(import.meta.dirname, "..", "..", ".cache", "shots"), ...names] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await openBrowser();
const stage = await openFullDashboard(browser);
for (const [name, path] of PAGES) {
  for (const [suffix, options] of LOOKS) {
    if (names.length > 0 && !names.includes(name) && !names.includes(name + suffix)) continue;
    await using opened = await stage.open(path(stage), options);
    await settled(opened.page);
    // Plots are drawn once their program is there.
    await opened.page.waitForLoadState("load");
    await new Promise((resolve) => setTimeout(resolve, 700));
    await opened.page.screenshot({ path: join(folder, `${name}${suffix}.png`), fullPage: true });
    for (const problem of opened.problems) console.error(`${name}${suffix}: ${problem}`);
    console.log(`${name}${suffix}.png`);
  }
}
await stage[Symbol.asyncDispose]();
await browser.close();
