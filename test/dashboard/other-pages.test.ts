import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { defineSaga } from "../../src/core/saga/saga-definition.ts";
import { violations, violationsOfBothThemes } from "./axe.ts";
import { beat, type FullStage, openFullDashboard } from "./full-stage.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { follow, openDashboard, settled } from "./stage.ts";

const LISTS = [
  ["/queues", "Queues"],
  ["/workers", "Workers"],
  ["/crons", "Crons"],
  ["/workflows", "Workflows"],
  ["/sagas", "Sagas"],
  ["/timeouts", "Timeouts"],
  ["/timeouts?tab=dead", "Timeouts"],
  ["/dead-letters", "Dead letters"],
  ["/events", "Events"],
  ["/audit", "Audit"],
  ["/advice", "Advice"],
  ["/advice?type=image.thumb&timeout=1000", "Advice"],
  ["/limits", "Limits"],
  ["/unique-keys", "Unique keys"],
  ["/system", "System"],
  ["/webhooks", "Webhooks"],
  ["/webhooks?tab=deliveries", "Webhooks"],
  ["/schemas", "Schemas"],
  ["/calendars", "Calendars"],
  ["/tenants", "Tenants"],
] as const;

const single = ({ pages }: FullStage): readonly (readonly [string, string])[] => [
  ["/queues/images", "images"],
  ["/crons/monthly%20statement", "monthly statement"],
  [`/workflows/${pages.workflow}`, "order 7"],
  [`/workflows/${pages.failedWorkflow}`, pages.hostile],
  ["/sagas/order/o-77310", "o-77310"],
  [`/webhooks/${pages.webhook}`, "good.example.com/hooks"],
  [`/webhooks/${pages.brokenWebhook}`, "broken.example.com/hooks"],
  ["/schemas/card.charge", "card.charge"],
  ["/schemas/card.charge?version=1", "card.charge"],
  ["/calendars/frankfurt?month=2026-12", "frankfurt"],
  ["/queues/offers", "offers"],
];

const parcel = defineSaga({
  type: "parcel",
  state: z.object({ id: z.string() }),
  messages: { sent: z.object({ id: z.string() }) },
  timeouts: { lost: z.object({ id: z.string() }) },
  correlate: { sent: ({ id }) => id },
  startedBy: "sent",
  start({ id }, self) {
    self.request("lost", { after: "2h" }, { id });
    return { id };
  },
  on: {},
  onTimeout: { lost: (state) => state },
});

describe.skipIf(!hasBrowser)("the other pages", () => {
  let browser: Browser;
  let stage: FullStage;
  beforeAll(async () => {
    browser = await openBrowser();
    stage = await openFullDashboard(browser);
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await browser?.close();
  });

  it.each([
    ["light and dark", violationsOfBothThemes, {}],
    ["on a phone", violations, { width: 390, height: 844 }],
  ])("are readable for everybody, %s, and nothing goes wrong on them", async (_name, look, options) => {
    await using opened = await stage.open("/", options);
    const { page, problems } = opened;
    const found: string[] = [];
    for (const [path, title] of [...LISTS, ...single(stage)]) {
      await follow(page, path);
      await settled(page);
      const heading = (await page.locator("h1").first().textContent()) ?? "";
      if (!heading.includes(title)) found.push(`${path}: is headed ${heading}`);
      found.push(...(await look(page)).map((text) => `${path}: ${text}`));
      found.push(...problems.splice(0).map((text) => `${path}: ${text}`));
      const wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      if (wider !== 0) found.push(`${path}: scrolls sideways by ${wider}`);
      const narrow = await page.evaluate(
        "[...document.querySelectorAll('main .card')].filter(({ offsetWidth }) => offsetWidth < 200).length",
      );
      if (narrow !== 0) found.push(`${path}: ${narrow} cards are too narrow to read`);
      const styled = await page.locator("[style]:not(.uplot, .uplot *)").count();
      if (styled > 0) found.push(`${path}: ${styled} elements have a style`);
    }
    expect(found).toEqual([]);
  });

  it("are reached from the navigation and with two keys each", async () => {
    await using opened = await stage.open("/");
    const { page } = opened;
    await settled(page);
    const keys = {
      q: "Queues",
      w: "Workers",
      c: "Crons",
      f: "Workflows",
      s: "Sagas",
      t: "Timeouts",
      d: "Dead letters",
      e: "Events",
      a: "Audit",
      v: "Advice",
      l: "Limits",
      u: "Unique keys",
      y: "System",
      h: "Webhooks",
      m: "Schemas",
      b: "Calendars",
      n: "Tenants",
    };
    for (const [key, title] of Object.entries(keys)) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
      await page
        .getByRole("navigation", { name: "Pages" })
        .getByRole("link", { name: title, exact: true })
        .waitFor();
    }
  });

  it("queues say who works on them, what is wrong, and lead to their jobs", async () => {
    await using opened = await stage.open("/queues");
    const { page } = opened;
    await page.getByText("No worker takes this queue.").first().waitFor();
    await page.getByText("Paused").first().waitFor();
    await page.getByText("provider incident").waitFor();
    const crm = page.locator("tr", { hasText: "crm" }).first();
    expect(await crm.textContent()).toContain("2 of 2");
    await page.getByRole("img", { name: "About how many jobs images had in the last hour" }).waitFor();
    await page.locator('tr[data-id="scans"]').getByRole("link", { name: "6", exact: true }).click();
    await page.waitForURL("**/jobs?queue=scans&state=available");
  });

  it("workers say what they run and which of them are over HTTP", async () => {
    await beat(stage.url, "http-worker-1");
    await using opened = await stage.open("/workers");
    const { page } = opened;
    await page.getByRole("link", { name: "order.pack" }).waitFor();
    const row = page.locator('tr[data-id="http-worker-1"]');
    expect(await row.textContent()).toContain("over HTTP");
    await page.goto(`${stage.url}/workers?queue=images`);
    await page.locator("tbody tr").first().waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
  });

  it("a cron says its next five instants in its zone, with the change of the clocks marked", async () => {
    await using opened = await stage.open("/crons/monthly%20statement");
    const { page } = opened;
    await page.getByText("At 09:00 on day 1 of each month").waitFor();
    const rows = page.locator(".next > li");
    expect(await rows.count()).toBe(5);
    expect(await rows.first().textContent()).toContain("Tue 1 Dec, 09:00");
    expect(await page.locator(".dst").allTextContents()).toEqual(["clocks change before: +1 h"]);
    expect(await rows.last().textContent()).toContain("clocks change");
  });

  it("the page of a step shows its workflow, in which every other step leads to its job", async () => {
    const steps = await stage.test.engine.workflows.get(stage.pages.workflow).steps({ limit: 10 });
    const idOf = (type: string) => steps.find((row) => row?.type === type)?.id ?? "";
    await using opened = await stage.open(`/jobs/${idOf("order.pack")}`);
    const { page, problems } = opened;
    const graph = page.getByRole("region", { name: "Graph of the steps" });
    await graph.waitFor();
    expect(await graph.locator("[aria-current]").textContent()).toContain("order.pack");
    await graph.locator("a", { hasText: "order.bill" }).click();
    await page.waitForURL(`**/jobs/${idOf("order.bill")}`);
    await graph.locator("[aria-current]", { hasText: "order.bill" }).waitFor();
    await page.getByRole("link", { name: "Open it" }).click();
    await page.waitForURL(`**/workflows/${stage.pages.workflow}`);
    expect(problems).toEqual([]);
  });

  it("a workflow is drawn with its states, and follows them", async () => {
    await using opened = await stage.open(`/workflows/${stage.pages.workflow}`);
    const { page } = opened;
    await page.locator(".graph a", { hasText: "order.pack" }).filter({ hasText: "Running, 40 %" }).waitFor();
    expect(await page.locator(".node").count()).toBe(4);
    const { engine } = stage.test;
    const steps = await engine.workflows.get(stage.pages.workflow).steps({ limit: 10 });
    const bill = steps.find((row) => row?.type === "order.bill");
    await engine.cancel(bill?.id ?? "", { actor: "test" });
    await page.locator(".graph a", { hasText: "order.bill" }).filter({ hasText: "Cancelled" }).waitFor();
  });

  it("events come in as they happen, can be held and filtered", async () => {
    await using opened = await stage.open("/events?types=queue.*");
    const { page, problems } = opened;
    await page.getByText(/Live: new events/).waitFor();
    await stage.test.engine.queues.pause("live-queue", { actor: "test" });
    const line = page.locator(".evt", { hasText: "live-queue" });
    await line.waitFor();
    expect(await page.locator(".evt", { hasText: "job." }).count()).toBe(0);
    await page.keyboard.press("p");
    await page.getByText("Held: new events wait.").waitFor();
    await stage.test.engine.queues.resume("live-queue", { actor: "test" });
    await page.getByRole("button", { name: /Go on with 1/ }).waitFor();
    expect(await line.count()).toBe(1);
    await page.keyboard.press("p");
    await page.locator(".evt", { hasText: "queue.resumed" }).filter({ hasText: "live-queue" }).waitFor();
    await line.first().locator("summary").click();
    await line.first().locator(".tree").waitFor();
    expect(problems).toEqual([]);
  });

  it("advice counts what another limit would have cut off, and keeps it in the URL", async () => {
    await using opened = await stage.open("/advice");
    const { page } = opened;
    await page.getByRole("link", { name: "image.thumb" }).click();
    await page.waitForURL("**/advice?type=image.thumb");
    await page.getByLabel("attempt", { exact: true }).fill("1s");
    await page.getByText(/With 1s, 4 of 150 successful runs would have been cut off/).waitFor();
    await page.waitForURL("**timeout=1000");
    const slider = page.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("End");
    await page.getByText(/none of 150 successful runs would have been cut off/).waitFor();
    expect(await page.getByLabel("attempt", { exact: true }).inputValue()).not.toBe("1s");
    // A limit that follows the runs is replayed on the same history. It needs more runs than there were.
    await page.getByLabel("floor").fill("1s");
    await page.getByLabel("ceiling").fill("2m");
    await page.getByText(/It would still be at its ceiling of 2m: it needs 200 runs/).waitFor();
    await page.getByLabel("floor").fill("3m");
    await page.getByText("The floor must not be above the ceiling").waitFor();
  });

  it("timeouts stand in a calendar, and a day leads to what is due on it", async () => {
    await using opened = await stage.open("/timeouts");
    const { page } = opened;
    await page.getByRole("link", { name: "Monday 2 November, 7 timeouts" }).waitFor();
    expect(await page.locator(".agenda").first().textContent()).toContain("7 due, 5 still to come");
    await page.getByRole("link", { name: "Monday 9 November, 4 timeouts" }).click();
    await page.waitForURL("**day=2026-11-09**");
    expect(await page.locator(".agenda").first().textContent()).toContain("paymentLate");
    await page.getByRole("link", { name: "Next month" }).click();
    await page.getByRole("heading", { name: "December 2026" }).waitFor();
  });
});

describe.skipIf(!hasBrowser)("a server whose store has no sagas and timeouts", () => {
  it("says that there are none", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    await using opened = await stage.open("/sagas");
    const { page } = opened;
    await page.getByText("No sagas yet").waitFor();
    await page.goto(`${stage.url}/timeouts`);
    await page.getByText("Nothing is due in this month").first().waitFor();
  });
});

describe.skipIf(!hasBrowser)("pages of an empty store", () => {
  it("teach the next command", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    await using opened = await stage.open("/queues");
    const { page, problems } = opened;
    for (const [path, text] of [
      ["/queues", "engine.enqueue"],
      ["/workers", "engine.work"],
      ["/crons", "engine.crons.put"],
      ["/workflows", "engine.workflows.start"],
      ["/dead-letters", 'onExhausted: "dead-letter"'],
      ["/limits", "concurrency"],
      ["/unique-keys", "unique:"],
      ["/events", "events:"],
    ] as const) {
      await page.goto(stage.url + path);
      await page.locator(".empty .code").waitFor();
      expect(await page.locator(".empty .code").textContent(), path).toContain(text);
    }
    for (const [path, text] of [
      ["/audit", "Nobody has done anything yet"],
      ["/advice", "No attempt has ended yet"],
    ] as const) {
      await page.goto(stage.url + path);
      await page.getByText(text).waitFor();
    }
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)("hostile names and payloads on the other pages", () => {
  const HOSTILE = '"><img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>{{7*7}}‮';

  it("are only ugly", async () => {
    await using browser = await openBrowser();
    await using stage = await openFullDashboard(browser, { hostile: HOSTILE });
    await using opened = await stage.open("/");
    const { page, problems } = opened;
    const name = encodeURIComponent(HOSTILE);
    const paths = [
      ...[...LISTS, ...single(stage)].map(([path]) => path),
      `/crons/${encodeURIComponent(HOSTILE.slice(0, 60))}`,
      `/sagas/order/${name}`,
      `/queues/${name}`,
      `/workflows/${name}`,
      `/workers?worker=${name}`,
      `/events?types=${name}`,
      `/audit?actor=${name}`,
      `/timeouts?destination=${name}&day=${name}&month=${name}`,
      `/advice?type=${name}&timeout=${name}`,
      `/webhooks/${name}?status=${name}`,
      `/schemas/${name}?version=${name}`,
      `/schemas/card.charge?version=${name}`,
      `/calendars/${name}`,
      `/calendars/frankfurt?month=${name}`,
    ];
    for (const path of paths) {
      await follow(page, path);
      await page.locator("main h1, main .callout, main .empty").first().waitFor();
      await page.locator('[role="status"][aria-label="Loading"]').first().waitFor({ state: "detached" });
      for (const detail of await page
        .locator(".evt > summary")
        .all()
        .then((all) => all.slice(0, 3)))
        await detail.click();
      const isHacked = await page.evaluate(
        '"hacked" in globalThis || document.querySelector("img, main script") !== null',
      );
      expect(isHacked, path).toBe(false);
    }
    expect(problems.filter((text) => !/status of (?:400|404)/.test(text))).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)("a saga whose steps are older than the newest 5,000 events", () => {
  it("says how far back it was searched, and finds them on request", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    const { engine } = stage.test;
    engine.host([parcel]);
    await engine.send(parcel, "sent", { id: "p-1" });
    await expect.poll(() => engine.saga(parcel, "p-1").load()).not.toBeNull();
    const job = defineJob({ type: "later" });
    const many = Array.from({ length: 1_000 }, () => null);
    for (let nth = 0; nth < 12; nth++) await engine.enqueueMany(job, many);
    await using opened = await stage.open("/sagas/parcel/p-1");
    const { page, problems } = opened;
    await page.getByText("0 steps found among 5,000 events of all kinds").waitFor();
    await page.getByRole("button", { name: "Look further back" }).click();
    await page.getByText("started by the message").waitFor();
    expect(await page.locator(".steps > li").count()).toBe(2);
    expect(await page.getByRole("button", { name: "Look further back" }).count()).toBe(0);
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)("lists that are longer than a page", () => {
  it("of sagas are walked, and a calendar counts each timeout once", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    const { engine } = stage.test;
    engine.host([parcel]);
    for (let count = 0; count < 130; count++) await engine.send(parcel, "sent", { id: `p-${count}` });
    await using opened = await stage.open("/timeouts");
    const { page, problems } = opened;
    await page.locator(".agenda").first().getByText("130 due").waitFor();
    await page.goto(`${stage.url}/sagas`);
    const seen = new Set<string>();
    for (const count of [50, 100, 130]) {
      const rows = page.locator("tbody tr");
      const look = async () => {
        for (const name of await rows.locator("td a").allTextContents()) seen.add(name);
        return seen.size;
      };
      await expect.poll(look).toBe(count);
      if (count < 130) await page.getByRole("link", { name: "Next" }).click();
    }
    expect(problems).toEqual([]);
  });
});
