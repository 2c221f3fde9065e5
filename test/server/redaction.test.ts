import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { createKey } from "../../src/server/access/auth.ts";
import { openStage, type Stage } from "./stage.ts";

const CARD = "4111 1111 1111 1111";
const TOKEN = "tok_98765";
const charge = defineJob({
  type: "card.charge",
  payload: z.object({
    order: z.string(),
    card: z.object({ number: z.string().meta({ redact: true }), expires: z.string() }),
    items: z.array(z.object({ name: z.string(), pin: z.number() })),
  }),
  result: z.object({ token: z.string().meta({ redact: true }), ok: z.boolean() }),
  redact: ["payload.items.*.pin", "meta.session"],
  retry: { attempts: 1, onExhausted: "dead-letter" },
});
const payload = {
  order: "A-1042",
  card: { number: CARD, expires: "12/30" },
  items: [{ name: "tea", pin: 123456 }],
};

const roles = () => {
  const made = (["admin", "read-only", "worker", "producer"] as const).map((role) => {
    const { key, hash } = createKey();
    return { role, hash, name: `the-${role}`, headers: { Authorization: `Bearer ${key}` } };
  });
  const headers = Object.fromEntries(made.map((one) => [one.role, one.headers]));
  return { keys: made.map(({ role, hash, name }) => ({ role, hash, name })), headers };
};

/** Fails if a reply has any of the hidden values. */
function expectClean(body: unknown): void {
  const text = JSON.stringify(body);
  for (const secret of [CARD, "4111", TOKEN, "123456", "s-secret"]) expect(text).not.toContain(secret);
}

async function ended(stage: Stage, id: string): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    await stage.advance("1s");
    const [row] = await stage.engine.store.jobs.load([id]);
    if (row?.finishedAt != null) return;
  }
  throw new Error("the job did not end");
}

describe("redaction", () => {
  it("hides marked fields from every role that reads, and gives workers the real ones", async () => {
    const { keys, headers } = roles();
    await using stage = await openStage({}, { keys });
    const { id } = await stage.engine.enqueue(charge, payload, { meta: { session: "s-secret", shop: "1" } });
    const reads = [
      `/jobs/${id}`,
      `/admin/jobs/${id}`,
      "/jobs",
      "/admin/jobs",
      "/admin/jobs?search=A-1042",
      "/events?types=job.*",
      `/events/${id}/history`,
    ];
    for (const path of reads)
      for (const role of ["admin", "read-only", "producer", "worker"]) {
        const { status, body } = await stage.call("GET", path, undefined, headers[role]);
        expect(status, path).toBe(200);
        expectClean(body);
      }
    const { body } = await stage.call("GET", `/jobs/${id}`, undefined, headers["read-only"]);
    expect(body.job.args).toEqual([
      {
        order: "A-1042",
        card: { number: "[redacted]", expires: "12/30" },
        items: [{ name: "tea", pin: "[redacted]" }],
      },
    ]);
    expect(body.job.meta).toEqual({ session: "[redacted]", shop: "1" });
    expect(body.job.redacted).toContain("payload.card.number");
    const fetched = await stage.call(
      "POST",
      "/workers/fetch",
      { queues: ["default"], worker_id: "w", count: 1 },
      headers.worker,
    );
    expect(fetched.body.jobs[0].args).toEqual([payload]);
    const done = await stage.call(
      "POST",
      "/workers/ack",
      { job_id: id, worker_id: "w", result: { token: TOKEN, ok: true } },
      headers.worker,
    );
    expect(done.status).toBe(200);
    for (const path of [`/jobs/${id}`, `/events/${id}/history`]) {
      const after = await stage.call("GET", path, undefined, headers["read-only"]);
      expectClean(after.body);
      expect(JSON.stringify(after.body)).toContain('"ok":true');
    }
  });

  it("keeps the values out of errors, logs and progress that a handler writes", async () => {
    await using stage = await openStage();
    stage.engine.work({
      processors: [
        {
          definition: charge,
          handler: async (job) => {
            const { card, items } = job.payload as typeof payload;
            job.log(`charging ${card.number}`, { pin: items[0]?.pin ?? 0, again: card.number });
            job.progress(0.5, { card: card.number });
            throw new Error(`declined: ${card.number}`, { cause: new Error(`pin ${items[0]?.pin}`) });
          },
        },
      ],
    });
    const { id } = await stage.engine.enqueue(charge, payload);
    await ended(stage, id);
    const replies = [
      `/admin/jobs/${id}`,
      `/jobs/${id}/logs`,
      `/jobs/${id}/progress`,
      `/jobs/${id}/why`,
      "/dead-letter",
      "/events?types=job.*",
    ];
    for (const path of replies) {
      const { status, body } = await stage.get(path);
      expect(status, path).toBe(200);
      expectClean(body);
    }
    expect((await stage.job(id)).error.message).toBe("declined: [redacted]");
    expect(JSON.stringify((await stage.get(`/jobs/${id}/logs`)).body)).toContain("charging [redacted]");
  });

  it("a search finds what is visible and is no oracle for what is hidden", async () => {
    await using stage = await openStage();
    const { id } = await stage.engine.enqueue(charge, payload);
    await stage.engine.enqueue(defineJob({ type: "other.job" }), { note: "4111 elsewhere" });
    const found = async (text: string, more = "") =>
      (await stage.get(`/admin/jobs?search=${encodeURIComponent(text)}${more}`)).body;
    expect((await found("A-1042")).items.map((job: { id: string }) => job.id)).toEqual([id]);
    expect((await found(CARD)).items).toEqual([]);
    expect((await found("123456")).items).toEqual([]);
    // The reply to a hit on a hidden value and to a miss are the same, page by page.
    for (const more of ["", "&per_page=1"])
      expect(await found(CARD, more)).toEqual(await found("4999 9999 9999 9999", more));
    const preview = (text: string) => stage.engine.bulk.cancel({ text }, { dryRun: true });
    expect((await preview("A-1042")).matched).toBe(1);
    expect(await preview(CARD)).toEqual(await preview("4999 9999 9999 9999"));
  });

  it("only an admin reveals, and the audit says who and why", async () => {
    const { keys, headers } = roles();
    await using stage = await openStage({}, { keys });
    const { id } = await stage.engine.enqueue(charge, payload);
    for (const role of ["read-only", "producer", "worker"])
      expect((await stage.call("POST", `/admin/jobs/${id}/reveal`, {}, headers[role])).status).toBe(403);
    const seen = await stage.call("POST", `/admin/jobs/${id}/reveal`, { reason: "a refund" }, headers.admin);
    expect(seen.body.job.args).toEqual([payload]);
    const audit = await stage.call("GET", "/admin/audit", undefined, headers.admin);
    expect(audit.body.items).toMatchObject([
      { action: "job.reveal", job_id: id, actor: "the-admin", reason: "a refund" },
    ]);
    expectClean(audit.body);
    const exported = await stage.call("GET", "/admin/export", undefined, headers["read-only"]);
    expect(exported.status).toBe(403);
    expect(
      (await stage.call("GET", "/admin/export", undefined, headers.admin)).body.lines[0].payload,
    ).toContain(CARD);
  });

  it("a copy gets the real values and hides what its source hides", async () => {
    await using stage = await openStage();
    const { id } = await stage.engine.enqueue(charge, payload);
    const shown = await stage.job(id);
    const made = await stage.post(`/admin/jobs/${id}/copy`, {
      type: "card.charge",
      args: [{ ...shown.args[0], order: "A-1043", note: "[redacted]" }],
      options: { redact: [] },
    });
    expect(made.status).toBe(201);
    expectClean(made.body);
    const [row] = await stage.engine.store.jobs.load([made.body.job.id]);
    expect(JSON.parse(row?.payload ?? "")).toEqual({ ...payload, order: "A-1043", note: "[redacted]" });
  });

  it("hides the results that a workflow hands on", async () => {
    await using stage = await openStage();
    const after = defineJob({ type: "card.after" });
    stage.engine.work({
      processors: [
        { definition: charge, handler: async () => ({ token: TOKEN, ok: true }) },
        { definition: after, handler: async (job) => job.parentResults.length },
      ],
    });
    const { chain, step } = await import("../../src/core/workflow/node.ts");
    const flow = await stage.engine.workflows.start(chain([step(charge, payload), step(after, null)]));
    for (let tries = 0; tries < 20 && (await flow.view())?.state !== "completed"; tries++)
      await stage.advance("1s");
    const jobs = (await stage.get("/admin/jobs")).body;
    expectClean(jobs);
    const second = jobs.items.find(({ type }: { type: string }) => type === "card.after");
    expect(second.parent_results).toBe("[redacted]");
    expect(second.result).toBe(1);
  });

  it("an enqueue over HTTP can name paths, and a cron and a delayed job hide them too", async () => {
    await using stage = await openStage();
    const job = await stage.enqueue({ redact: ["payload.secret"] }, { args: [{ secret: CARD, a: 1 }] });
    expect(job.args).toEqual([{ secret: "[redacted]", a: 1 }]);
    const list = await stage.enqueue({ redact: ["payload"] }, { args: [CARD, "b"] });
    expect(list.args).toEqual(["[redacted]", "[redacted]"]);
    await stage.engine.crons.put("nightly", { cron: "0 3 * * *", job: charge, payload });
    expectClean((await stage.get("/cron/nightly")).body);
    expectClean((await stage.get("/cron")).body);
    expect(
      (await stage.post("/jobs", { type: "a.b", args: [1], options: { redact: ["card"] } })).status,
    ).toBe(400);
  });
});
