import { existsSync } from "node:fs";

export const CHROMIUM = process.env.CURFEW_CHROMIUM ?? "/usr/bin/chromium";
/** Where there is no browser, the tests are left out, and say so. */
export const hasChromium = existsSync(CHROMIUM);

export const launchOptions = {
  executablePath: CHROMIUM,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
  ],
};
