import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/server/access/auth.ts";
import { type FullStage, openFullDashboard } from "./full-stage.ts";
import { chargeSchema } from "./seed-settings.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { type OpenedPage, openDashboard, settled } from "./stage.ts";

const REASON = "said in the test, für alle";

let browser: Browser;
beforeAll(async () => {
  if (hasBrowser) browser = await openBrowser();
});
afterAll(() => browser?.close());

describe.skipIf(!hasBrowser)("webhooks, schemas, calendars, tenants and fair turns", () => {
  let stage: FullStage;
  let opened: OpenedPage | undefined;
  beforeAll(async () => {
    stage = await openFullDashboard(browser);
  });
  afterEach(async () => {
    expect(opened?.problems ?? []).toEqual([]);
    await opened?.[Symbol.asyncDispose]();
    opened = undefined;
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
  });

  const open = async (path: string): Promise<Page> => {
    opened = await stage.open(path);
    await settled(opened.page);
    return opened.page;
  };
  const confirm = async (page: Page, button: string | RegExp, said: string | RegExp) => {
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason, for the audit").fill(REASON);
    await dialog.getByRole("button", { name: button }).click();
    await page.locator(".toast", { hasText: said }).last().waitFor();
  };
  const lastEntry = async (action: string) => {
    const { entries } = await stage.test.engine.audit.read({ limit: 1, action });
    return entries[0];
  };

  it("an endpoint is subscribed, called once, given a new secret, switched off and deleted", async () => {
    const { webhooks } = stage.test.engine;
    const page = await open("/webhooks");
    await page.getByRole("button", { name: "Subscribe…" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("URL").fill("https://new.example.com/hooks");
    await form.getByRole("combobox", { name: /^Events/ }).fill("job.failed queue.*");
    await form.getByLabel("Only of queues").fill("mail");
    await confirm(page, "Subscribe", "Events are sent to it");
    const secret = (await page.locator(".secret").textContent()) ?? "";
    expect(secret.trim().length).toBeGreaterThan(16);
    await page.getByRole("button", { name: "I have it" }).click();
    await page.getByRole("heading", { level: 1, name: "new.example.com/hooks" }).waitFor();
    const id = decodeURIComponent(page.url().split("/").at(-1) ?? "");
    expect(await webhooks.get(id)).toMatchObject({ events: ["job.failed", "queue.*"], queues: ["mail"] });
    await page.getByRole("button", { name: "Call it once" }).click();
    await page.getByText("It answered 200").waitFor();
    await page.getByRole("button", { name: "New secret…" }).click();
    await confirm(page, "Make a new secret", "There is a new secret");
    expect(await page.locator(".secret").textContent()).not.toBe(secret);
    await page.getByRole("button", { name: "I have it" }).click();
    await page.getByRole("button", { name: "Switch off…" }).click();
    await confirm(page, "Switch it off", "Nothing is sent to it");
    await page.locator(".badge.pill", { hasText: "Off" }).waitFor();
    expect(await lastEntry("webhook.update")).toMatchObject({ reason: REASON });
    await page.getByRole("button", { name: "Delete…" }).click();
    await confirm(page, "Delete it", "is deleted");
    await page.waitForURL("**/webhooks");
    expect(await webhooks.get(id)).toBeNull();
    // Beyond ASCII too, though a deletion has no body.
    expect(await lastEntry("webhook.delete")).toMatchObject({ reason: REASON });
  });

  it("a URL that the server refuses stays in the form, in the server's words", async () => {
    const page = await open("/webhooks");
    await page.getByRole("button", { name: "Subscribe…" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("URL").fill("http://127.0.0.1/x");
    await form.getByRole("button", { name: "Subscribe" }).click();
    expect(await form.getByRole("alert").textContent()).toContain("url");
    expect(await form.getByLabel("URL").inputValue()).toBe("http://127.0.0.1/x");
    if (opened) opened.problems.length = 0;
  });

  it("a delivery that was given up is found by its state and sent again", async () => {
    const page = await open(`/webhooks/${stage.pages.brokenWebhook}?status=dead`);
    const row = page.locator("table[aria-label=Deliveries] tbody tr[data-id]").first();
    await row.getByText("Dead").waitFor();
    expect(await row.textContent()).toContain("500");
    await row.getByRole("button", { name: /^Send again/ }).click();
    await confirm(page, "Send it again", "It is sent again");
    expect(await lastEntry("job.retry")).toMatchObject({ reason: REASON });
  });

  it("a list of endpoints shows no token, and says which one is in trouble", async () => {
    const page = await open("/webhooks");
    expect(await page.locator("main").textContent()).not.toContain("secret-1");
    const good = page.locator(`tr[data-id="${stage.pages.webhook}"]`);
    expect(await good.textContent()).toContain("order.fetch");
    await good.getByText("Delivers").waitFor();
    const broken = page.locator(`tr[data-id="${stage.pages.brokenWebhook}"]`);
    expect(await broken.textContent()).toMatch(/Failing|Resting|Trying again/);
  });

  it("arguments are checked against a schema, and a version that breaks is refused", async () => {
    const page = await open("/schemas/card.charge");
    await page.getByText("args[0].cents", { exact: true }).waitFor();
    await page.getByLabel("Arguments of a job, as JSON").fill('[{ "cents": 0 }]');
    await page.getByRole("button", { name: "Check them" }).click();
    await page.getByText("args[0].cents: must be >= 1").waitFor();
    await page.getByLabel("Arguments of a job, as JSON").fill('[{ "cents": 3 }]');
    await page.getByRole("button", { name: "Check them" }).click();
    await page.getByText("A job with these arguments is taken.").waitFor();
    await page.getByRole("button", { name: "New version…" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("JSON Schema of args").fill("{ no");
    await form.getByText("This is not JSON").waitFor();
    await form.getByLabel("JSON Schema of args").fill(JSON.stringify(chargeSchema("<b>bold</b>")));
    await form.getByRole("button", { name: "What would it break?" }).click();
    await form.getByText("backward: args[0].cents").waitFor();
    await form.getByRole("button", { name: "Publish it" }).click();
    await form.getByRole("alert").waitFor();
    if (opened) opened.problems.length = 0;
    await form.getByRole("button", { name: "Back" }).click();
    await page.getByRole("button", { name: "Rules…" }).click();
    await page.getByLabel("The next version must be").selectOption("none");
    await confirm(page, "Set the rules", "has new rules");
    await page.getByText("none: anything goes").waitFor();
    expect(await lastEntry("schema.configure")).toMatchObject({ reason: REASON });
  });

  it("a calendar shows its closed days, says what a time means, and is changed", async () => {
    const page = await open("/calendars/frankfurt?month=2026-12");
    const eve = page.locator(".open-day.own", { hasText: "24" });
    expect(await eve.getAttribute("title")).toBe("Thu, 24 Dec 2026, Christmas Eve, 09:00-12:00");
    await page.getByRole("link", { name: "Next month" }).click();
    await page.getByRole("heading", { name: "January 2027" }).waitFor();
    await page.getByRole("textbox", { name: "Working days" }).fill("2");
    await page.getByRole("button", { name: "Count from now" }).click();
    await page.getByText("in Europe/Berlin,").waitFor();
    await page.getByRole("button", { name: "Change…" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Saturday").fill("10-14");
    expect(await form.getByRole("button", { name: "Change it" }).isDisabled()).toBe(true);
    await form.getByLabel("Saturday").fill("10:00-14:00");
    await confirm(page, "Change it", "Calendar frankfurt is stored.");
    await page.getByText("Sa 10:00-14:00").first().waitFor();
    expect((await stage.test.engine.calendars.get("frankfurt"))?.days).toHaveLength(2);
  });

  it("a tenant's limits are shown beside what it uses, and changed", async () => {
    const page = await open("/tenants");
    const row = page.locator('tr[data-id="acme"]');
    await row.getByText("4 of 4").waitFor();
    await row.getByRole("button", { name: "Limits of acme" }).click();
    await page.getByRole("dialog").getByLabel("Jobs that may wait").fill("10");
    await confirm(page, "Set the limits", "Tenant acme has these limits.");
    await row.getByText("4 of 10").waitFor();
    await row.getByText("60 per 1m").waitFor();
    await row.getByRole("button", { name: "Remove acme" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove it" }).click();
    expect(await page.getByRole("dialog").getByRole("alert").textContent()).toContain("jobs");
    if (opened) opened.problems.length = 0;
  });

  it("a queue takes turns, with the weights of its keys, and stops doing so", async () => {
    const page = await open("/queues/offers");
    const keys = page.getByRole("table", { name: "Fair keys" });
    const row = keys.locator("tr", { hasText: "enterprise" });
    expect(await row.textContent()).toContain("60 %");
    await page.getByRole("region", { name: "Fair turns" }).getByRole("button", { name: "Change…" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel(/^Weights/).fill("enterprise many");
    expect(await form.getByRole("button", { name: "Let them take turns" }).isDisabled()).toBe(true);
    await form.getByLabel(/^Weights/).fill("enterprise 8");
    await confirm(page, "Let them take turns", "takes jobs in turn");
    await row.getByText("80 %").waitFor();
    await page.getByRole("region", { name: "Fair turns" }).getByRole("button", { name: "Change…" }).click();
    await form.getByLabel("Who is next").selectOption("off");
    await confirm(page, "First come, first served", "is first come, first served");
    await page.getByText("If one customer may fill this queue").waitFor();
  });

  it("every page is walked with the keyboard alone", async () => {
    const page = await open("/schemas");
    await page.locator("tbody tr").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/schemas/card.charge");
    await page.goto(`${stage.url}/webhooks`);
    await settled(page);
    await page.keyboard.press("]");
    await page.waitForURL("**/webhooks?tab=deliveries");
    await page.keyboard.press("g");
    await page.keyboard.press("b");
    await page.getByRole("heading", { level: 1, name: "Calendars" }).waitFor();
    await page.locator("tbody tr").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("o");
    await page.waitForURL("**/calendars/frankfurt");
  });
});

describe.skipIf(!hasBrowser)("roles and tenants on these pages", () => {
  const admin = createKey();
  const reader = createKey();
  const KEYS = [
    { name: "ana", role: "admin", hash: admin.hash },
    { name: "rob", role: "read-only", hash: reader.hash },
  ] as const;
  const logIn = async (page: Page, key: string) => {
    await page.getByLabel("API key").fill(key);
    await page.keyboard.press("Enter");
  };

  it("a reader is not led to endpoints and tenants, and changes nothing", async () => {
    await using stage = await openFullDashboard(browser, { keys: KEYS });
    await using opened = await stage.open("/schemas/card.charge");
    const { page } = opened;
    await logIn(page, reader.key);
    await settled(page);
    const pages = page.getByRole("navigation", { name: "Pages" });
    expect(await pages.getByRole("link", { name: "Webhooks" }).count()).toBe(0);
    expect(await pages.getByRole("link", { name: "Tenants" }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "New version…" }).isDisabled()).toBe(true);
    await page.goto(`${stage.url}/webhooks`);
    await page.getByText("The list could not be read.").waitFor();
    expect(await page.locator("main").textContent()).not.toContain("example.com");
    await page.goto(`${stage.url}/calendars/frankfurt`);
    await settled(page);
    expect(await page.getByRole("button", { name: "Change…" }).isDisabled()).toBe(true);
  });

  it("an operator looks at the pages of a tenant, which show nothing of the others", async () => {
    await using stage = await openFullDashboard(browser, { keys: KEYS });
    await using opened = await stage.open("/tenants");
    const { page } = opened;
    await logIn(page, admin.key);
    await page.getByRole("button", { name: "Look at it: acme" }).click();
    // The choice goes to the overview by itself. Another navigation meanwhile would be aborted.
    await page.waitForURL(`${stage.url}/`);
    await page.goto(`${stage.url}/webhooks`);
    await page.getByText("No endpoint receives events").waitFor();
    const pages = page.getByRole("navigation", { name: "Pages" });
    expect(await pages.getByRole("link", { name: "Tenants" }).count()).toBe(0);
  });
});

describe.skipIf(!hasBrowser)("where there is nothing yet", () => {
  it("these pages teach the next command", async () => {
    await using stage = await openDashboard(browser, { isEmpty: true });
    await using opened = await stage.open("/");
    const { page, problems } = opened;
    for (const [path, command] of [
      ["webhooks", "curfew webhooks add"],
      ["schemas", "curfew schemas publish"],
      ["calendars", "curfew calendars put"],
      ["tenants", "curfew keys new"],
    ]) {
      await page.goto(`${stage.url}/${path}`);
      await page.locator(".empty .code", { hasText: command as string }).waitFor();
    }
    expect(problems).toEqual([]);
  });
});
