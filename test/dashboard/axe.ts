import axe from "axe-core";
import type { Page } from "playwright-core";

/** Every rule of WCAG 2.2 AA that axe knows. */
const ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** The rules that look at colours. The dark theme changes nothing but colours, so no other rule can differ there. */
const COLOURS = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

/** Every violation of WCAG 2.2 AA that axe finds on the page, as one line each. */
export async function violations(page: Page): Promise<string[]> {
  // Not as a script of the page, which its policy would refuse. It stays while the program of the page does.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe.source);
  return run(page, ALL);
}

/** As `violations`, in the light theme and then in the dark one. The page is left light. */
export async function violationsOfBothThemes(page: Page): Promise<string[]> {
  const light = await violations(page);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await run(page, COLOURS);
  await page.emulateMedia({ colorScheme: "light" });
  return [...light, ...dark.map((text) => `dark: ${text}`)];
}

async function run(page: Page, runOnly: unknown): Promise<string[]> {
  const options = JSON.stringify({ runOnly, resultTypes: ["violations"], iframes: false, preload: false });
  const found = await page.evaluate(
    `axe.run(document, ${options}).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ target, failureSummary }) => target.join(" ") + " (" + failureSummary + ")").join("; ")))`,
  );
  return found as string[];
}
