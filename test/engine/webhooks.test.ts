import { describe, expect, it } from "vitest";
import { WEBHOOK_QUEUE } from "../../src/core/job/internal-queue.ts";
import { DELIVERY } from "../../src/engine/webhooks/delivery-jobs.ts";
import { type Duration, defineJob, type JournalEvent, toCloudEvent } from "../../src/index.ts";
import { faultyStore } from "../../src/testing/faulty-store.ts";
import { openStage, shared } from "./stage.ts";
import { BROKEN, fakeSender, OK, openWebhookStage, URL } from "./webhook-stage.ts";

const LATER = defineJob({ type: "test.later" });

describe("deliveries of webhooks (SEMANTICS 11)", () => {
  it("one call carries one wanted event, with the id of its delivery and the secret to sign with", async () => {
    const stage = await openWebhookStage();
    const { webhook, secret } = await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
    const [job] = await stage.run(1);
    expect(stage.sent()).toEqual(["job.completed"]);
    const [call] = stage.calls;
    expect(call).toMatchObject({ url: URL, subscription: webhook.id, secrets: [secret], isBatch: false });
    expect(call?.events[0]?.job).toBe(job);
    const { deliveries } = await stage.engine.webhooks.deliveries({ subscription: webhook.id });
    expect(deliveries).toMatchObject([
      { id: call?.delivery, state: "delivered", answer: { status: 200, text: "ok" }, attempts: 1 },
    ]);
    await stage.advance("3s");
    expect(await stage.engine.webhooks.get(webhook.id)).toMatchObject({ delivered: 1, dead: 0 });
  });

  it("filters by event, queue and type, and sends nothing about its own jobs", async () => {
    const stage = await openWebhookStage();
    const { webhooks } = stage.engine;
    await webhooks.create({ url: URL, events: ["*"], queues: ["other"] });
    await webhooks.create({ url: URL, events: ["job.*"], types: ["other.type"] });
    const { webhook } = await webhooks.create({ url: URL, events: ["*"], types: ["test.job"] });
    await stage.run(1);
    await stage.advance("1m");
    expect(stage.sent()).toEqual(["job.enqueued", "job.started", "job.completed"]);
    expect(new Set(stage.calls.map(({ subscription }) => subscription))).toEqual(new Set([webhook.id]));
    expect(stage.names().filter((name) => name.includes("webhook"))).toEqual([]);
    expect(stage.counters().started).toBe(1);
  });

  it("a failed call is repeated under the same delivery id by the schedule, and ends as a dead letter", async () => {
    const stage = await openWebhookStage(() => BROKEN);
    const retry = { attempts: 3, delays: ["30s", "2m"] } as const;
    const { webhook } = await stage.engine.webhooks.create({ url: URL, events: ["job.completed"], retry });
    await stage.run(1);
    expect(stage.calls).toHaveLength(1);
    await stage.advance("46s");
    expect(stage.calls).toHaveLength(2);
    await stage.advance("4m");
    expect(new Set(stage.calls.map(({ delivery }) => delivery)).size).toBe(1);
    const { deliveries } = await stage.engine.webhooks.deliveries({ state: "dead" });
    expect(deliveries[0]?.errors.map(({ code, message }) => [code, message])).toEqual(
      new Array(3).fill(["http_500", "the endpoint answered 500"]),
    );
    expect((await stage.engine.deadLetters.list({ queue: WEBHOOK_QUEUE })).jobs).toHaveLength(1);
    const { events } = await stage.engine.journal.read({ types: ["webhook.*"], limit: 100 });
    expect(events.map(({ name }) => name)).toEqual([
      "webhook.subscription.created",
      "webhook.failed",
      "webhook.failed",
      "webhook.dead",
    ]);
    const { data } = toCloudEvent(events[1] as JournalEvent);
    expect(data).toMatchObject({
      subscription: webhook.id,
      next_attempt_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(data).not.toHaveProperty("dueAt");
    expect(await stage.engine.webhooks.get(webhook.id)).toMatchObject({
      failed: 2,
      dead: 1,
      lastError: "the endpoint answered 500",
    });
  });

  it("4xx is not repeated, and 429 is put off for as long as it asks", async () => {
    const stage = await openWebhookStage((_, nth) =>
      nth === 1 ? { ...OK, status: 404 } : nth === 2 ? { ...OK, status: 429, retryAfter: 120_000 } : OK,
    );
    await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
    await stage.run(1);
    await stage.advance("10m");
    expect(stage.calls).toHaveLength(1);
    expect((await stage.engine.webhooks.deliveries({ state: "dead" })).deliveries).toHaveLength(1);
    await stage.run(1);
    await stage.advance("110s");
    expect(stage.calls).toHaveLength(2);
    await stage.advance("20s");
    expect(stage.calls).toHaveLength(3);
    expect(stage.calls[2]?.delivery).toBe(stage.calls[1]?.delivery);
  });

  it("an ordered subscription sends the events of a job in order, though calls fail", async () => {
    const stage = await openWebhookStage((_, nth) => (nth % 3 === 0 ? OK : BROKEN));
    const retry = { attempts: 20, delays: ["1s"] } as const;
    await stage.engine.webhooks.create({ url: URL, events: ["job.*"], ordered: true, retry });
    const jobs = await stage.run(20);
    await stage.advance("30m");
    const { deliveries } = await stage.engine.webhooks.deliveries({ state: "delivered" });
    expect(deliveries).toHaveLength(60);
    const ended = deliveries.toSorted(
      (a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0) || (a.id < b.id ? -1 : 1),
    );
    for (const job of jobs)
      expect(
        ended.flatMap(({ events }) => events.filter((e) => e.job === job).map(({ name }) => name)),
      ).toEqual(["job.enqueued", "job.started", "job.completed"]);
  });

  it("a batch waits for its size or its time, and is one call", async () => {
    const stage = await openWebhookStage();
    await stage.engine.webhooks.create({
      url: URL,
      events: ["job.completed"],
      batch: { size: 10, within: "5s" },
    });
    await stage.run(25);
    expect(stage.calls.map(({ events, isBatch }) => [events.length, isBatch])).toEqual([
      [10, true],
      [10, true],
    ]);
    await stage.advance("5s");
    expect(stage.calls.map(({ events }) => events.length)).toEqual([10, 10, 5]);
    expect(new Set(stage.calls.flatMap(({ events }) => events.map(({ id }) => id))).size).toBe(25);
  });

  it("an open circuit holds calls back, lets one through after its pause, and closes when that one is answered", async () => {
    let isUp = false;
    const stage = await openWebhookStage(() => (isUp ? OK : BROKEN));
    const { webhook } = await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
    const state = async () => (await stage.engine.webhooks.get(webhook.id))?.circuit.state;
    await stage.run(40);
    expect(await state()).toBe("open");
    const before = stage.calls.length;
    expect(before).toBeLessThan(40);
    await stage.advance("25s");
    expect(stage.calls).toHaveLength(before);
    await stage.advance("1m");
    expect(stage.calls.length - before).toBeLessThanOrEqual(2);
    isUp = true;
    await stage.advance("20m");
    expect(await state()).toBe("closed");
    const { deliveries } = await stage.engine.webhooks.deliveries({ state: "delivered" });
    expect(deliveries).toHaveLength(40);
  });

  it("a delivery is sent again by hand: a dead one under its id, a delivered one as a second delivery", async () => {
    const stage = await openWebhookStage((_, nth) => (nth === 1 ? { ...OK, status: 410 } : OK));
    await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
    await stage.run(1);
    const [dead] = (await stage.engine.webhooks.deliveries()).deliveries;
    expect(dead?.state).toBe("dead");
    await stage.engine.webhooks.as({ actor: "ann" }).redeliver(dead?.id as string);
    await stage.advance("1s");
    expect((await stage.engine.webhooks.delivery(dead?.id as string))?.state).toBe("delivered");
    const repeated = await stage.engine.webhooks.as({ actor: "ann" }).redeliver(dead?.id as string);
    await stage.advance("1s");
    expect(repeated).toMatchObject({ repeats: dead?.id });
    expect(new Set(stage.calls.map(({ delivery }) => delivery))).toEqual(new Set([dead?.id]));
    expect(stage.calls).toHaveLength(3);
    const { entries } = await stage.engine.audit.read({ actor: "ann" });
    expect(entries.map(({ action }) => action).sort()).toEqual(["job.retry", "webhook.redeliver"]);
  });
});

describe("the cursor of a subscription", () => {
  it("neither loses nor repeats an event when the commit of deliveries fails or its reply is lost", async () => {
    let faults = 0;
    const stage = await openWebhookStage(
      () => OK,
      (store) => {
        const failing = faultyStore(store, (call) =>
          call === "commit" ? (["drop", "lose-reply"] as const)[faults++ % 2] : undefined,
        );
        return {
          ...store,
          commit: (units, options) => {
            const isDeliveries = units.some(({ effects = [] }) =>
              effects.some((effect) => "enqueue" in effect && effect.enqueue.queue === WEBHOOK_QUEUE),
            );
            return isDeliveries && faults < 12
              ? failing.commit(units, options)
              : store.commit(units, options);
          },
        };
      },
    );
    await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
    const jobs = await stage.run(150);
    await stage.advance("5m");
    expect(faults).toBeGreaterThan(3);
    expect(stage.calls.map(({ events }) => events[0]?.job).sort()).toEqual([...jobs].sort());
  });

  it("is continued by another process: at once after a close, after the lease if it died", async () => {
    const test = await openStage({ events: "durable" });
    const { engine, system } = test;
    const { Engine } = await import("../../src/engine/engine.ts");
    const { silentLogger } = await import("../../src/ports/log.ts");
    const open = async () => {
      const { calls, sender } = fakeSender();
      const store = shared(engine.store);
      const other = await Engine.open({ store, system, logger: silentLogger, webhooks: { sender } });
      return { calls, other };
    };
    const first = await open();
    const second = await open();
    await engine.webhooks.create({ url: URL, events: ["job.scheduled"] });
    await test.advance("10s");
    const later = { at: new Date(test.now() + 86_400_000) };
    for (let count = 0; count < 10; count++) await engine.enqueue(LATER, null, later);
    await test.advance("5s");
    const both = () => [...first.calls, ...second.calls].length;
    expect(both()).toBe(10);
    const closing = first.other.close({ drain: "0s" });
    await test.advance("10s");
    await closing;
    for (let count = 0; count < 10; count++) await engine.enqueue(LATER, null, later);
    await test.advance("20s");
    expect(both()).toBe(20);
    const end = second.other.close({ drain: "0s" });
    await test.advance("10s");
    await end;
  });
});

it("an engine that is closed when it has just found its first subscription logs no failure", async () => {
  const test = await openStage({ events: "durable" });
  const { Engine } = await import("../../src/engine/engine.ts");
  const { silentLogger } = await import("../../src/ports/log.ts");
  const failures: unknown[] = [];
  const logger = { ...silentLogger, error: (fields: unknown) => void failures.push(fields) };
  const { sender } = fakeSender();
  const { engine, system } = test;
  const other = await Engine.open({ store: shared(engine.store), system, logger, webhooks: { sender } });
  await other.webhooks.create({ url: URL, events: ["job.scheduled"] });
  const closing = other.close({ drain: "0s" });
  await test.advance("10s");
  await closing;
  expect(failures).toEqual([]);
});

describe("subscriptions", () => {
  it("are listed without their secret, changed, and deleted with their deliveries", async () => {
    const stage = await openWebhookStage(() => BROKEN);
    const { webhooks } = stage.engine;
    const secret = "a-secret-of-my-own-choice";
    const created = await webhooks
      .as({ actor: "ann" })
      .create({ url: URL, events: ["job.completed"], secret });
    expect(created.secret).toBeNull();
    const { id } = created.webhook;
    await webhooks.as({ actor: "ann" }).update(id, { metadata: { owner: "ops" }, timeout: "5s" });
    await stage.run(3);
    const seen = JSON.stringify([
      await webhooks.list(),
      await webhooks.get(id),
      await webhooks.deliveries(),
      (await stage.engine.audit.read()).entries,
      (await stage.engine.journal.read({ limit: 1_000 })).events,
      (await stage.engine.exportJobs({ all: true }, { ended: true })).lines,
      (await stage.engine.find({})).jobs,
    ]);
    expect(seen).toContain(id);
    expect(seen).not.toContain(secret);
    expect(await webhooks.get(id)).toMatchObject({ metadata: { owner: "ops" }, timeout: "5s" });
    expect(await webhooks.as({ actor: "ann" }).delete(id)).toBe(true);
    expect(await webhooks.delete(id)).toBe(false);
    const before = stage.calls.length;
    await stage.advance("2h");
    expect(stage.calls).toHaveLength(before);
    expect((await webhooks.deliveries({ state: "cancelled" })).deliveries).toHaveLength(3);
    const { entries } = await stage.engine.audit.read({ actor: "ann" });
    expect(entries.map(({ action }) => action).sort()).toEqual([
      "webhook.create",
      "webhook.delete",
      "webhook.update",
    ]);
  });

  it("send headers of their own, whose values nobody can read, and never to another origin", async () => {
    const stage = await openWebhookStage();
    const { webhooks } = stage.engine;
    const headers = { Authorization: "Bearer geheim", "X-Team": "mail" };
    const { webhook } = await webhooks.create({ url: URL, events: ["job.completed"], headers });
    expect(webhook.headerNames).toEqual(["Authorization", "X-Team"]);
    await webhooks.test(webhook.id);
    await stage.run(1);
    expect(stage.calls.map((call) => call.headers)).toEqual([headers, headers]);
    const seen = [await webhooks.list(), await webhooks.get(webhook.id), await webhooks.deliveries()];
    const kept = [
      (await stage.engine.audit.read()).entries,
      (await stage.engine.journal.read({ limit: 1_000 })).events,
    ];
    expect(JSON.stringify([seen, kept])).not.toContain("geheim");
    // Another path of the same host is still the same receiver.
    const moved = await webhooks.update(webhook.id, { url: `${URL}/other` });
    expect(moved.headerNames).toEqual(["Authorization", "X-Team"]);
    const elsewhere = await webhooks.update(webhook.id, { url: "https://example.org/hook" });
    expect(elsewhere.headerNames).toEqual([]);
    const given = await webhooks.update(webhook.id, {
      url: "https://example.net",
      headers: { "X-Team": "ops" },
    });
    expect(given.headerNames).toEqual(["X-Team"]);
    expect((await webhooks.update(webhook.id, { headers: null })).headerNames).toEqual([]);
  });

  it("sign with both secrets after a rotation until the overlap is over", async () => {
    const stage = await openWebhookStage();
    const { webhooks } = stage.engine;
    const { webhook, secret: old } = await webhooks.create({ url: URL, events: ["job.completed"] });
    const { secret } = await webhooks.rotate(webhook.id, { overlap: "1h" });
    expect(secret).not.toBe(old);
    await stage.run(1);
    await stage.advance("1h");
    await stage.run(1);
    expect(stage.calls.map(({ secrets }) => secrets)).toEqual([[secret, old], [secret]]);
  });

  it("keep each secret for its overlap: a rotation that is repeated after a lost reply breaks no receiver", async () => {
    const stage = await openWebhookStage();
    const { webhooks } = stage.engine;
    const { webhook, secret: first } = await webhooks.create({ url: URL, events: ["job.completed"] });
    const rotate = (overlap: Duration) => webhooks.rotate(webhook.id, { overlap });
    const { secret: lost } = await rotate("2h");
    const { secret: third } = await rotate("1h");
    await stage.run(1);
    await stage.advance("1h");
    await stage.run(1);
    expect(stage.calls.map(({ secrets }) => secrets)).toEqual([
      [third, lost, first],
      [third, first],
    ]);
    await rotate("1h");
    await rotate("1h");
    await expect(rotate("1h")).rejects.toMatchObject({ code: "invalid_state" });
    const { secret: last } = await rotate("0s");
    await stage.run(1);
    expect(stage.calls.at(-1)?.secrets).toEqual([last]);
  });

  it("send nothing while they are not active", async () => {
    const stage = await openWebhookStage();
    const { webhook } = await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
    await stage.engine.webhooks.update(webhook.id, { active: false });
    await stage.run(2);
    await stage.engine.webhooks.update(webhook.id, { active: true });
    await stage.advance("2s");
    expect(stage.calls).toEqual([]);
    await stage.run(1);
    expect(stage.calls).toHaveLength(1);
  });

  it("are refused with the field and the fix, and a password in a URL is not shown", async () => {
    const { engine } = await openWebhookStage();
    const refused = async (options: object) =>
      engine.webhooks.create({ url: URL, events: ["job.failed"], ...options }).then(
        () => "taken",
        (error: Error) => error.message,
      );
    expect(await refused({ url: "ftp://example.com" })).toMatch(/^url: "ftp:\/\/example.com"/);
    expect(await refused({ url: "https://ann:geheim@example.com" })).not.toContain("geheim");
    expect(await refused({ url: "http://example.com" })).toContain("use https");
    expect(await refused({ url: "https://10.1.2.3" })).toContain("private");
    expect(await refused({ url: "https://0x7f.1/" })).toContain("loopback");
    expect(await refused({ url: "https://[::ffff:127.0.0.1]/" })).toContain("loopback");
    expect(await refused({ url: "https://localhost:8443/" })).toContain("private network");
    expect(await refused({ url: "https://example.com:22/" })).toContain("port 443");
    expect(await refused({ events: [] })).toMatch(/^events/);
    expect(await refused({ events: ["Job Failed"] })).toMatch(/^events\[0\]/);
    expect(await refused({ events: ["webhook.dead"] })).toContain("not sent to webhooks");
    expect(await refused({ secret: "short" })).not.toContain("short");
    expect(await refused({ timeout: "5m" })).toMatch(/^timeout/);
    expect(await refused({ batch: { size: 101 } })).toMatch(/^batch.size/);
    expect(await refused({ queues: ["No Queue"] })).toMatch(/^queues\[0\]/);
    expect(await refused({ metadata: { text: "x".repeat(5_000) } })).toMatch(/^metadata/);
    expect(await refused({ eventz: [] })).toContain("did you mean events?");
    const header = (name: string, value: unknown) => refused({ headers: { [name]: value } });
    expect(await header("X-OJS-Signature", "sha256=0")).toContain("the server sets it itself");
    expect(await header("Content-Length", "0")).toContain("the server sets it itself");
    expect(await header("host", "internal")).toContain("the server sets it itself");
    expect(await header("X A", "b")).toMatch(/^headers: "X A"/);
    const injected = await header("X-A", "geheim\r\nX-B: c");
    expect(injected).toMatch(/^headers\.X-A/);
    expect(injected).not.toContain("geheim");
    expect(await refused({ headers: { "X-A": "b", "x-a": "c" } })).toContain("name each header once");
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, nth) => [`X-${nth}`, "v"]));
    expect(await refused({ headers: many })).toContain("at most 20 headers");
    expect(await refused({ headers: "X-A: b" })).toMatch(/^headers/);
  });
});

it("deliveries are in no list, count, bulk action or export of jobs", async () => {
  const stage = await openWebhookStage(() => ({ ...OK, status: 404 }));
  await stage.engine.webhooks.create({ url: URL, events: ["job.completed"] });
  await stage.run(2);
  const { engine } = stage;
  expect((await engine.webhooks.deliveries({ state: "dead" })).deliveries).toHaveLength(2);
  expect((await engine.queues.list()).map(({ name }) => name)).toEqual(["default"]);
  expect((await engine.queues.depth()).discarded).toBe(0);
  expect((await engine.bulk.delete({ all: true })).done).toBe(2);
  expect((await engine.webhooks.deliveries({ state: "dead" })).deliveries).toHaveLength(2);
  expect((await engine.exportJobs({}, { ended: true })).lines).toEqual([]);
});

it("nobody but the engine can make a delivery: its queue is refused wherever a caller names one", async () => {
  const stage = await openWebhookStage();
  const { engine } = stage;
  const { webhook } = await engine.webhooks.create({ url: URL, events: ["job.failed"] });
  const forged = { subscription: webhook.id, events: [] };
  const inQueue = { queue: WEBHOOK_QUEUE };
  await expect(engine.enqueue(DELIVERY, forged)).rejects.toThrow('begin with "curfew."');
  await expect(engine.enqueue(LATER, null, inQueue)).rejects.toThrow("options.queue");
  await expect(engine.enqueueMany(DELIVERY, [forged])).rejects.toThrow('begin with "curfew."');
  await expect(engine.timeouts.enqueue(DELIVERY, forged, { dueAt: "1s" })).rejects.toThrow("curfew.");
  await expect(engine.crons.put("c", { cron: "* * * * *", job: LATER, options: inQueue })).rejects.toThrow(
    "curfew.",
  );
  const job = await engine.enqueue(LATER, null, { delay: "1h" });
  const { lines } = await engine.exportJobs({});
  expect(lines).toHaveLength(1);
  const line = { ...lines[0], id: job.id.replace(/.$/, "0"), queue: WEBHOOK_QUEUE };
  expect(JSON.stringify(await engine.importJobs([line]))).toContain("curfew.");
  await stage.advance("2m");
  expect(stage.calls).toEqual([]);
});
