import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CHROMIUM, hasChromium } from "./dashboard/chromium.ts";

const folder = join(import.meta.dirname, "dashboard");

/** Builds the dashboard if its sources are newer than the build: the tests look at what users get. */
export default function setup(): void {
  const script = join(import.meta.dirname, "..", "scripts", "build-dashboard.ts");
  execFileSync(process.execPath, [script, "--if-old"], { stdio: "inherit" });
  if (hasChromium) return;
  const tests = readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .flatMap((name) => [...readFileSync(join(folder, name), "utf8").matchAll(/^ +it[.(]/gm)]);
  const line = "!".repeat(100);
  console.warn(
    `${line}\nSKIPPED: about ${tests.length} tests of the dashboard need a browser, and there is none at ${CHROMIUM}.\n` +
      `Install chromium, or set CURFEW_CHROMIUM.\n${line}`,
  );
}
