import { existsSync } from "node:fs";

export const CHROMIUM = process.env.CURFEW_CHROMIUM ?? "/usr/bin/chromium";
/** Where there is no browser, the tests are left out, and say so. */
export const hasChromium = existsSync(CHROMIUM);
