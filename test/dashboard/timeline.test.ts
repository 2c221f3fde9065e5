import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { constant } from "../../src/core/job/policy/retry.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import { violations } from "./axe.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { openDashboard, settled } from "./stage.ts";

const stubborn = defineJob({
  type: "hook.call",
  queue: "hooks",
  retry: { attempts: 14, backoff: constant({ first: "10s", jitter: false }) },
});

describe.skipIf(!hasBrowser)("the timeline of a job", () => {
  it("folds old attempts, and arrow keys move between its moments", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    const { engine } = stage.test;
    stage.clock.stop();
    engine.work({
      queues: { hooks: { concurrency: 1 } },
      processors: [
        processor(stubborn, () => {
          throw new Error("refused");
        }),
      ],
    });
    const { id } = await engine.enqueue(stubborn);
    await stage.test.advance("5m");
    stage.clock.go();
    await using opened = await stage.open(`/jobs/${id}`);
    const { page, problems } = opened;
    await settled(page);
    await page.locator("rect.seg-folded").waitFor();
    expect(await page.locator(".tl-moments").textContent()).toContain("attempts 1 to 9");
    // The five newest are drawn one by one, and every attempt is in the list below.
    expect(await page.locator(".tl-moments rect.seg-run").count()).toBe(5);
    expect(await page.locator(".att").count()).toBe(14);

    const lane = page.getByRole("slider", { name: "Moments of this job" });
    await lane.focus();
    await page.locator(".tl-moment", { hasText: "created" }).waitFor();
    await page.keyboard.press("ArrowRight");
    await page.locator(".tl-moment", { hasText: "attempt 10 failed: refused" }).waitFor();
    expect(await lane.getAttribute("aria-valuetext")).toMatch(/attempt 10 failed: refused, .* UTC$/);
    await page.keyboard.press("End");
    await page.locator(".tl-moment", { hasText: "attempt 14 failed" }).waitFor();
    await page.keyboard.press("Home");
    await page.locator(".tl-moment", { hasText: "created" }).waitFor();
    expect(await violations(page)).toEqual([]);

    await page.locator('.kv a[href*="workers?worker="]').click();
    await page.waitForURL("**/workers?worker=*");
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody tr[data-id]").count()).toBe(1);
    expect(problems).toEqual([]);
  });
});
