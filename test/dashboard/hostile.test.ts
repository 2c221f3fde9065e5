import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { constant } from "../../src/core/job/policy/retry.ts";
import { defineSaga } from "../../src/core/saga/saga-definition.ts";
import { step } from "../../src/core/workflow/node.ts";
import { type AttemptContext, processor } from "../../src/engine/attempt/processor.ts";
import type { TestEngine } from "../../src/testing/test-engine.ts";
import { HOSTILE } from "./hostile-strings.ts";
import { hasBrowser, openBrowser } from "./shared-browser.ts";
import { follow, openDashboard, settled } from "./stage.ts";

/** A full run takes every string through every parameter of an address: minutes, not seconds. */
const IS_FULL = process.env.CURFEW_FULL_DASHBOARD_TESTS === "1";
const STRINGS_OF_A_JOB = 10;

type Hostile = { readonly text: string };

const fails = defineJob({
  type: "hostile.fails",
  queue: "hostile",
  payload: z.record(z.string(), z.unknown()),
  retry: { attempts: 1, backoff: constant({ first: "1s" }), onExhausted: "dead-letter" },
});
/** Fails once with each of its strings. */
const failsAgain = defineJob({
  type: "hostile.again",
  queue: "hostile",
  payload: z.object({ texts: z.array(z.string()) }),
  retry: {
    attempts: STRINGS_OF_A_JOB,
    backoff: constant({ first: "1s", jitter: false }),
    onExhausted: "dead-letter",
  },
});
const limited = defineJob({
  type: "hostile.limited",
  queue: "nobody",
  payload: z.object({ text: z.string() }),
  limit: { key: ({ text }: Hostile) => text, concurrency: 1 },
  unique: { payload: ["text"] },
});
const saga = defineSaga({
  type: "hostile",
  state: z.object({ text: z.string() }),
  messages: { begin: z.object({ text: z.string() }) },
  timeouts: { later: z.object({ text: z.string() }) },
  correlate: { begin: ({ text }) => text },
  startedBy: "begin",
  start({ text }, self) {
    self.request("later", { after: "2h" }, { text }, { key: text });
    return { text };
  },
  on: {},
  onTimeout: { later: (state) => state },
});

const fair = defineJob({ type: "hostile.fair", queue: "fair", payload: z.object({ text: z.string() }) });

/** Rules that take free text: names of holidays, descriptions of fields, metadata, keys of fair turns. */
async function fillRules({ engine }: TestEngine): Promise<string[]> {
  const properties = Object.fromEntries(
    HOSTILE.map((text, index) => [`${index}${text.slice(0, 40)}`, { type: "string", description: text }]),
  );
  await engine.schemas.put("hostile.schema", 1, {
    type: "array",
    prefixItems: [{ type: "object", properties }],
  });
  const dateOf = (index: number) => new Date(Date.UTC(2027, 0, 1 + index)).toISOString().slice(0, 10);
  const days = HOSTILE.map((text, index) => ({
    date: dateOf(index),
    name: text.slice(0, 100).replace(/\p{Cc}/gu, "") || "x",
  }));
  await engine.calendars.put("hostile", { zone: "UTC", week: { mon: "09:00-17:00" }, days });
  const metadata = Object.fromEntries(
    HOSTILE.slice(0, 20).map((text, index) => [`${index}${text.slice(0, 60)}`, text]),
  );
  const { webhook } = await engine.webhooks.create({
    url: `https://hooks.example.com/${encodeURIComponent("<img src=x>'\"")}`,
    events: ["job.dead"],
    metadata,
  });
  await engine.queues.configure("fair", { fair: {} });
  for (const text of HOSTILE) await engine.enqueue(fair, { text }, { fairKey: text.slice(0, 255) });
  return [
    "/schemas/hostile.schema",
    "/calendars/hostile?month=2027-03",
    `/webhooks/${webhook.id}`,
    "/queues/fair",
  ];
}

async function failWith(
  text: string,
  { progress, checkpoint }: Pick<AttemptContext<unknown>, "progress" | "checkpoint">,
): Promise<Error> {
  progress(0.5, text);
  await checkpoint({ [`.${text}`]: text });
  return Object.assign(new Error(text, { cause: new Error(text) }), { code: text });
}

/** Puts every string into every place that takes free text. */
async function fill({ engine, advance }: TestEngine): Promise<{ readonly jobs: readonly string[] }> {
  engine.host([saga]);
  engine.work({
    queues: { hostile: { concurrency: 50 } },
    processors: [
      processor(fails, async ({ payload, log, progress, checkpoint }) => {
        const texts = Object.keys(payload).map((key) => key.slice(1));
        for (const text of texts) log(text, { [`.${text}`]: text });
        throw await failWith(texts[0] as string, { progress, checkpoint });
      }),
      processor(failsAgain, async ({ payload, attempt, log, progress, checkpoint }) => {
        const text = payload.texts[attempt - 1] as string;
        log(text, { [`.${text}`]: text });
        throw await failWith(text, { progress, checkpoint });
      }),
    ],
  });
  for (const [index, text] of HOSTILE.entries()) {
    await engine.enqueue(
      fails,
      { [`.${text}`]: text, list: [text] },
      { meta: { [`.${text.slice(0, 60)}`]: text } },
    );
    await engine.enqueue(limited, { text });
    await engine.send(saga, "begin", { text });
    await engine.workflows.start(step(limited, { text: `${index} ${text}` }), {
      name: text.slice(0, 200),
      meta: { text },
    });
    await engine.crons.put(`${index} ${text}`.slice(0, 60), {
      cron: "0 0 1 1 *",
      job: fails,
      payload: { [`.${text}`]: text },
    });
    await engine.timeouts.insert({
      destination: text,
      dueAt: { after: "1h" },
      key: text,
      payload: { [`.${text}`]: text },
    });
    const by = { actor: text.slice(0, 100).replace(/\p{Cc}/gu, ""), reason: text.replace(/\p{Cc}/gu, "") };
    await engine.queues.pause("hostile-paused", by);
  }
  const all = await engine.enqueue(fails, Object.fromEntries(HOSTILE.map((text) => [`.${text}`, text])));
  const jobs = [all.id];
  for (let from = 0; from < HOSTILE.length; from += STRINGS_OF_A_JOB) {
    const texts = HOSTILE.slice(from, from + STRINGS_OF_A_JOB);
    const meta = Object.fromEntries(texts.map((text, index) => [`${index}${text.slice(0, 60)}`, text]));
    jobs.push((await engine.enqueue(failsAgain, { texts }, { meta })).id);
  }
  await advance("30s");
  return { jobs };
}

/** Lists, each with the way to its next page. */
const LISTS = [
  "/jobs",
  "/jobs?state=discarded",
  "/jobs?state=pending",
  "/jobs?tab=timeouts",
  "/jobs?tab=near-misses",
  "/dead-letters",
  "/workflows",
  "/crons",
  "/sagas",
  "/timeouts",
  "/limits",
  "/unique-keys",
  "/events",
  "/audit",
  "/queues",
  "/workers",
  "/advice",
  "/system",
  "/webhooks",
  "/webhooks?tab=deliveries",
  "/schemas",
  "/calendars",
  "/tenants",
  "/",
];

/** Every string as the name of a saga, and in one parameter of the list of jobs; in a full run in all of them. */
function addresses(): string[] {
  const at = (index: number) => encodeURIComponent(HOSTILE[index % HOSTILE.length] as string);
  return HOSTILE.flatMap((_, index) => {
    const saga = index % 2 === 0 ? [`/sagas/${at(index)}/${at(index + 1)}`] : [];
    if (!IS_FULL && index % 4 !== 0) return saga;
    return [
      ...saga,
      `/jobs?search=${at(index)}&queue=${at(index + 1)}&type=${at(index + 2)}&tab=${at(index + 3)}`,
    ];
  });
}

async function harm(page: Page): Promise<unknown> {
  return page.evaluate(
    '"hacked" in globalThis ? "a script ran" : document.querySelector("main :is(img, script, iframe, object, embed, base, meta, link, video, form[action])")?.outerHTML ?? null',
  );
}

const NEXT_PAGE = 'main .foot a.btn[href*="cursor="]';

/** What a reply brought is drawn by then. */
const NEXT_FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";

/** Opens what is closed, so that it is rendered as well. */
async function unfold(page: Page): Promise<void> {
  await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true');
}

describe.skipIf(!hasBrowser)("200 hostile strings", () => {
  it("are different", () => expect(new Set(HOSTILE).size).toBe(200));

  it("run nowhere and load nothing, in every field of every page", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    stage.clock.stop();
    const { jobs } = await fill(stage.test);
    const rules = await fillRules(stage.test);
    stage.clock.go();
    await using opened = await stage.open("/");
    const { page, problems } = opened;
    const seen = new Set<string>();
    const look = async (where: string) => {
      await settled(page);
      await unfold(page);
      expect(await harm(page), where).toBeNull();
      const text = await page.locator("main").innerText();
      for (const one of HOSTILE) if (text.includes(one.slice(0, 20))) seen.add(one);
    };
    for (const list of LISTS) {
      await follow(page, list);
      for (let count = 1; count <= 5; count++) {
        await look(`${list}, page ${count}`);
        const next = page.locator(NEXT_PAGE).last();
        if ((await next.count()) === 0) break;
        const before = (await next.getAttribute("href")) ?? "";
        const isNextPage = (reply: { url(): string }) => /[?&]cursor=/.test(reply.url());
        await Promise.all([page.waitForResponse(isNextPage), next.click()]);
        // The next page has another link, or none.
        await page.locator(`${NEXT_PAGE}[href="${before}"]`).waitFor({ state: "detached" });
        await page.evaluate(NEXT_FRAME);
      }
    }
    // Lists shorten what they show; what a page never showed at all would be no test.
    expect(seen.size).toBeGreaterThan(150);
    seen.clear();
    for (const path of rules) {
      await follow(page, path);
      await look(path);
    }
    expect(seen.size).toBeGreaterThan(150);
    seen.clear();
    for (const id of jobs) {
      await follow(page, `/jobs/${id}`);
      await page.locator(".att").first().waitFor();
      await look(`job ${id}`);
    }
    expect(seen.size).toBeGreaterThan(150);
    expect(problems).toEqual([]);
  });

  it("run nowhere as addresses", async () => {
    await using browser = await openBrowser();
    await using stage = await openDashboard(browser, { isEmpty: true });
    await using opened = await stage.open("/");
    const { page, problems } = opened;
    await settled(page);
    for (const path of addresses()) {
      await follow(page, path);
      await page.locator("main h1, main .callout, main .empty").first().waitFor();
      expect(await harm(page), path).toBeNull();
    }
    // What the server refuses or does not find is said by the browser too; a report of the policy is another thing.
    expect(problems.filter((problem) => !/status of (?:400|404)/.test(problem))).toEqual([]);
  });
});
