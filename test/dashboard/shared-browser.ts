import { type Browser, chromium } from "playwright-core";
import { inject } from "vitest";

/** Decided once for the whole run, also if a browser is installed meanwhile. */
export const hasBrowser = inject("browserUrl") !== "";

/** The browser of all tests; `test/dashboard-setup.ts` starts it. Closing it closes only what was opened by it. */
export function openBrowser(): Promise<Browser> {
  return chromium.connect(inject("browserUrl"));
}
