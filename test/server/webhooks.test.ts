import { describe, expect, it } from "vitest";
import type { WebhookAnswer } from "../../src/ports/webhooks.ts";
import { fakeSender, OK } from "../engine/webhook-stage.ts";
import { openStage } from "./stage.ts";

const PATH = "/webhooks/subscriptions";
const URL = "https://example.com/hooks?token=t-0123";
const SECRET = "a-secret-that-nobody-sees";

/** A server whose webhooks are answered as `answer` says. */
async function open(answer: () => WebhookAnswer | Promise<WebhookAnswer> = () => OK) {
  const { calls, sender } = fakeSender(answer);
  const stage = await openStage({ webhooks: { sender } });
  const complete = async () => {
    const { id } = await stage.enqueue();
    await stage.fetch();
    await stage.post("/workers/ack", { job_id: id });
    await stage.advance("3s");
    return id as string;
  };
  return { ...stage, calls, complete, [Symbol.asyncDispose]: stage[Symbol.asyncDispose] };
}

describe("subscriptions of webhooks", () => {
  it("are created, listed, read, changed by PATCH and PUT, and deleted", async () => {
    await using stage = await open();
    const made = await stage.post(PATH, {
      url: URL,
      events: ["job.completed", "job.failed"],
      filter: { queues: ["mail"], job_types: ["mail.send"] },
      batch: { max_events: 10, max_wait: "PT2S" },
      timeout: 5,
      retry: { max_attempts: 3, delays: ["PT10S"] },
      ordered: true,
      metadata: { owner: "ops" },
      headers: { Authorization: "Bearer geheim" },
    });
    expect(made.status).toBe(201);
    expect(JSON.stringify(made.body)).not.toContain("geheim");
    const { id } = made.body.subscription;
    expect(made.headers.get("location")).toBe(`/ojs/v1/webhooks/subscriptions/${id}`);
    expect(made.body.subscription).toMatchObject({
      url: URL,
      active: true,
      filter: { queues: ["mail"], job_types: ["mail.send"] },
      batch: { max_events: 10, max_wait: "PT2S" },
      timeout: 5,
      retry: { max_attempts: 3, delays: ["PT10S"] },
      ordered: true,
      metadata: { owner: "ops" },
      header_names: ["Authorization"],
    });
    const patched = await stage.call("PATCH", `${PATH}/${id}`, { events: ["job.*"], filter: null });
    expect(patched.body.subscription).toMatchObject({ events: ["job.*"], ordered: true });
    expect(patched.body.subscription.filter).toBeUndefined();
    const put = await stage.call("PUT", `${PATH}/${id}`, { active: false });
    expect(put.body.subscription).toMatchObject({ events: ["job.*"], active: false });
    const listed = await stage.get(PATH);
    expect(listed.body.subscriptions).toHaveLength(1);
    expect(listed.body.items).toEqual(listed.body.subscriptions);
    expect((await stage.get(`${PATH}/${id}`)).body.subscription).toEqual(listed.body.items[0]);
    // What was read can be sent back.
    const again = await stage.call("PUT", `${PATH}/${id}`, listed.body.items[0]);
    expect(again.body.subscription).toEqual({ ...listed.body.items[0], updated_at: expect.any(String) });
    expect((await stage.call("DELETE", `${PATH}/${id}`)).body).toEqual({ deleted: true, id });
    expect((await stage.get(`${PATH}/${id}`)).status).toBe(404);
    for (const [method, path] of [
      ["PATCH", `${PATH}/${id}`],
      ["DELETE", `${PATH}/${id}`],
      ["POST", `${PATH}/${id}/test`],
      ["POST", `${PATH}/${id}/rotate-secret`],
      ["POST", "/webhooks/deliveries/del_x/retry"],
    ] as const)
      expect((await stage.call(method, path, method === "DELETE" ? undefined : {})).status, path).toBe(404);
  });

  it("show no secret and no header in a refusal", async () => {
    await using stage = await open();
    const { id } = (await stage.post(PATH, { url: URL, events: ["job.*"] })).body;
    for (const [method, path, body] of [
      ["POST", PATH, { url: URL, events: ["job.*"], secret: "too-short" }],
      ["POST", PATH, { url: URL, events: ["job.*"], secret: ["too-short"] }],
      ["POST", PATH, { url: URL, events: ["job.*"], headers: { Authorization: ["too-short"] } }],
      ["POST", PATH, { url: URL, events: ["job.*"], headers: "too-short" }],
      ["PATCH", `${PATH}/${id}`, { secret: "too-short" }],
    ] as const) {
      const { status, body: said } = await stage.call(method, path, body);
      expect([status, said.error.message]).toEqual([400, expect.stringContaining("(not shown)")]);
      expect(JSON.stringify(said)).not.toContain("too-short");
    }
  });

  it("send a secret back once if the server made it, and never otherwise", async () => {
    await using stage = await open();
    const own = await stage.post(PATH, { url: URL, events: ["job.*"], secret: SECRET });
    const made = await stage.post(PATH, { url: URL, events: ["job.*"] });
    expect(made.body.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
    const { id } = made.body;
    const rotated = await stage.post(`${PATH}/${id}/rotate-secret`, { overlap: "PT1H" });
    expect(rotated.body.new_secret).toMatch(/^whsec_/);
    await stage.post(`${PATH}/${own.body.id}/rotate-secret`, { secret: `${SECRET}-2` });
    await stage.complete();
    const pages = [
      PATH,
      `${PATH}/${id}`,
      "/webhooks/deliveries",
      "/events?limit=200",
      "/admin/audit",
      "/admin/jobs",
      "/admin/config",
    ];
    for (const path of pages) {
      const { body } = await stage.get(path);
      for (const secret of [SECRET, made.body.secret, rotated.body.new_secret])
        expect(JSON.stringify(body), path).not.toContain(secret);
    }
    expect(JSON.stringify(own.body)).not.toContain(SECRET);
    expect(
      (await stage.get("/admin/audit")).body.items.map(({ action }: { action: string }) => action),
    ).toContain("webhook.rotate");
  });

  it("are refused with the field, and warn of events that never come", async () => {
    await using stage = await open();
    for (const [body, field] of [
      [{ url: "http://127.0.0.1/", events: ["job.*"] }, "url"],
      [{ url: URL, events: [] }, "events"],
      [{ url: URL, events: ["job.*"], secret: "short" }, "secret"],
      [{ url: URL, events: ["job.*"], batch: { max_events: 1_000 } }, "batch.max_events"],
      [{ url: URL, events: ["job.*"], timeout: 600 }, "timeout"],
      [{ url: URL, events: ["job.*"], filter: { queues: ["curfew.webhooks"] } }, "filter.queues.0"],
      [{ url: URL, events: ["job.*"], queues: ["mail"] }, "queues"],
      [{ url: URL, events: ["job.*"], types: ["mail.send"] }, "types"],
      [{ url: URL, events: ["job.*"], filters: { queues: ["mail"] } }, "filters"],
      [{ url: URL, events: ["job.*"], filter: { queue: ["mail"] } }, "filter.queue"],
    ] as const) {
      const { status, body: said } = await stage.post(PATH, body);
      expect(status, field).toBe(400);
      expect(said.error.details?.field ?? said.error.message, field).toMatch(new RegExp(`^${field}`));
    }
    const { body } = await stage.post(PATH, { url: URL, events: ["job.compleeted"] });
    expect(body.warnings[0].message).toContain("job.compleeted");
  });
});

describe("deliveries of webhooks", () => {
  it("are listed with their answer, by subscription and status, and sent again", async () => {
    let status = 404;
    await using stage = await open(() => ({ ...OK, status, text: "no" }));
    const { body } = await stage.post(PATH, { url: URL, events: ["job.completed"] });
    const job = await stage.complete();
    const dead = await stage.get(`/webhooks/deliveries?subscription_id=${body.id}&status=dead`);
    expect(dead.body.deliveries).toMatchObject([
      { subscription_id: body.id, status: "dead", event_types: ["job.completed"], events: [{ job_id: job }] },
    ]);
    const [{ id }] = dead.body.deliveries;
    status = 200;
    expect((await stage.post(`/webhooks/deliveries/${id}/retry`)).body.delivery.id).toBe(id);
    await stage.advance("1s");
    const delivered = await stage.get(`/webhooks/deliveries/${id}`);
    expect(delivered.body.delivery).toMatchObject({
      status: "delivered",
      response: { status_code: 200, response_body: "no" },
      errors: [{ code: "http_404" }],
    });
    expect((await stage.post(`/webhooks/deliveries/${id}/redeliver`)).body.redelivery_of).toBe(id);
    expect((await stage.get("/webhooks/deliveries?subscription_id=sub_x")).body.deliveries).toEqual([]);
    await stage.advance("3s");
    expect((await stage.get(`${PATH}/${body.id}`)).body).toMatchObject({ success_count: 2, dead_count: 1 });
    const { body: metrics } = await stage.get("http://127.0.0.1/metrics");
    expect(metrics).toContain('ojs_webhook_delivery_total{event_type="job.completed",status="delivered"} 2');
  });

  it("a test call says what the endpoint answered, or why it did not", async () => {
    let answer: () => WebhookAnswer = () => OK;
    await using stage = await open(() => answer());
    const { body } = await stage.post(PATH, { url: URL, events: ["job.completed"] });
    const test = async () => (await stage.post(`${PATH}/${body.id}/test`)).body;
    expect(await test()).toMatchObject({ success: true, status_code: 200, response_body: "ok", error: null });
    expect(stage.calls[0]?.events[0]).toMatchObject({ name: "webhook.test" });
    answer = () => {
      throw new Error("connect ECONNREFUSED");
    };
    expect(await test()).toMatchObject({ success: false, status_code: null, error: "connect ECONNREFUSED" });
  });

  it("are no jobs that clients can see, enqueue, fetch or change", async () => {
    await using stage = await open(() => ({ ...OK, status: 404 }));
    await stage.post(PATH, { url: URL, events: ["job.completed"] });
    await stage.complete();
    const [{ id }] = (await stage.get("/webhooks/deliveries")).body.deliveries;
    const job = id.replace("del_", "");
    for (const path of ["/admin/jobs", "/dead-letter", "/admin/dead-letter", "/admin/jobs?state=discarded"]) {
      const { body } = await stage.get(path);
      expect(JSON.stringify(body), path).not.toContain(job);
    }
    expect((await stage.get("/dead-letter")).body.pagination.total).toBe(0);
    expect((await stage.get("/rate-limits")).body.items).toEqual([]);
    const internal = { type: "test.job", args: [], options: { queue: "curfew.webhooks" } };
    expect((await stage.post("/jobs", internal)).status).toBe(400);
    expect((await stage.post("/workers/fetch", { queues: ["curfew.webhooks"] })).status).toBe(400);
    for (const [method, path] of [
      ["GET", `/jobs/${job}`],
      ["DELETE", `/jobs/${job}`],
      ["POST", `/admin/jobs/${job}/retry`],
      ["POST", `/dead-letter/${job}/retry`],
      ["DELETE", `/dead-letter/${job}`],
    ] as const)
      expect((await stage.call(method, path, method === "POST" ? {} : undefined)).status, path).toBe(404);
    await stage.call("DELETE", "/dead-letter", { confirm: true });
    expect((await stage.get("/webhooks/deliveries")).body.deliveries).toHaveLength(1);
  });
});
