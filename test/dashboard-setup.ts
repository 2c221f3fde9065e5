import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { CHROMIUM, hasChromium, launchOptions } from "./dashboard/chromium.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Where the browser of the tests listens; empty where there is none. */
    browserUrl: string;
  }
}

const folder = join(import.meta.dirname, "dashboard");

/**
 * Builds the dashboard if its sources are newer than the build: the tests look at what users get. All of them share one
 * browser, because starting one takes 1.6 s of CPU.
 */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const script = join(import.meta.dirname, "..", "scripts", "build-dashboard.ts");
  execFileSync(process.execPath, [script, "--if-old"], { stdio: "inherit" });
  if (hasChromium) {
    const browser = await chromium.launchServer(launchOptions);
    project.provide("browserUrl", browser.wsEndpoint());
    return () => browser.close();
  }
  project.provide("browserUrl", "");
  const tests = readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .flatMap((name) => [...readFileSync(join(folder, name), "utf8").matchAll(/^ +it[.(]/gm)]);
  const line = "!".repeat(100);
  console.warn(
    `${line}\nSKIPPED: about ${tests.length} tests of the dashboard need a browser, and there is none at ${CHROMIUM}.\n` +
      `Install chromium, or set CURFEW_CHROMIUM.\n${line}`,
  );
  return undefined;
}
