import { describe, expect, it } from "vitest";
import { hidePassword } from "../../src/open.ts";
import { createKey } from "../../src/server/access/auth.ts";
import { openStage, type Stage } from "./stage.ts";

const KEYS = { one: createKey(), two: createKey(), web: createKey(), reader: createKey() };
const keys = [
  { name: "one", role: "worker", hash: KEYS.one.hash },
  { name: "two", role: "worker", hash: KEYS.two.hash },
  { name: "web", role: "producer", hash: KEYS.web.hash },
  { name: "ops", role: "admin", hash: KEYS.reader.hash },
] as const;
const by = (name: keyof typeof KEYS) => ({ Authorization: `Bearer ${KEYS[name].key}` });
const job = { type: "a.b", args: [] };

async function fetched(stage: Stage) {
  await stage.call("POST", "/jobs", job, by("web"));
  const { body } = await stage.call("POST", "/workers/fetch", { queues: ["default"] }, by("one"));
  return body.jobs[0] as { id: string; fence: number };
}

describe("reports without a fence", () => {
  it.each([
    ["an ack", "POST", "/workers/ack", {}],
    ["a nack", "POST", "/workers/nack", { error: { message: "no" } }],
    ["progress", "POST", "/workers/progress", { percentage: 1 }],
  ])("%s counts from the key that fetched the job, and from no other", async (_name, method, path, more) => {
    await using stage = await openStage({}, { keys });
    const { id } = await fetched(stage);
    const report = { job_id: id, ...more };
    const refused = await stage.call(method, path, report, by("two"));
    expect([refused.status, refused.body.error.details.fence]).toEqual([409, undefined]);
    expect((await stage.call(method, path, report, by("one"))).status).toBe(200);
  });

  it("a beat of another key renews nothing", async () => {
    await using stage = await openStage({}, { keys });
    const { id } = await fetched(stage);
    const beat = { worker_id: "w", active_jobs: [id] };
    const directive = async (name: "one" | "two") =>
      (await stage.call("POST", "/workers/heartbeat", beat, by(name))).body.jobs[0].directive;
    expect([await directive("two"), await directive("one")]).toEqual(["lost", "continue"]);
  });

  it("a report with the fence counts from another key", async () => {
    await using stage = await openStage({}, { keys });
    const { id, fence } = await fetched(stage);
    expect((await stage.call("POST", "/workers/ack", { job_id: id, fence }, by("two"))).status).toBe(200);
  });

  it("without keys every report counts, and with requireFence none does", async () => {
    await using open = await openStage();
    await open.enqueue();
    expect((await open.post("/workers/ack", { job_id: (await open.fetch()).id })).status).toBe(200);
    await using strict = await openStage({}, { requireFence: true });
    await strict.enqueue();
    const { id, fence } = await strict.fetch();
    const refused = await strict.post("/workers/ack", { job_id: id });
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringMatching(/^fence: /)]);
    expect((await strict.post("/workers/ack", { job_id: id, fence })).status).toBe(200);
  });

  it("a 409 repeats the fence only to a sender that named it", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    const { id, fence } = await stage.fetch();
    await stage.post("/workers/ack", { job_id: id, fence });
    const details = async (more: object) =>
      (await stage.post("/workers/nack", { job_id: id, error: { message: "no" }, ...more })).body.error
        .details;
    expect(await details({})).not.toHaveProperty("fence");
    expect(await details({ fence: fence + 1 })).not.toHaveProperty("fence");
    expect(await details({ fence })).toMatchObject({ fence });
  });
});

describe("workflows", () => {
  it.each(["DELETE /workflows/:id", "POST /workflows/:id/cancel"])(
    "%s needs the right to cancel, and the audit has it",
    async (route) => {
      await using stage = await openStage({}, { keys });
      const made = await stage.call("POST", "/workflows", { type: "chain", steps: [job, job] }, by("one"));
      const [method, path] = route.replace(":id", made.body.workflow.id).split(" ") as [string, string];
      const cancel = (name: keyof typeof KEYS) =>
        stage.call(method, `${path}?reason=wrong+order`, method === "POST" ? {} : undefined, by(name));
      expect((await cancel("one")).status).toBe(403);
      expect((await cancel("web")).status).toBe(200);
      const { body } = await stage.call("GET", "/admin/audit", undefined, by("reader"));
      expect(body.items).toContainEqual(
        expect.objectContaining({ actor: "web", action: "workflow.cancel", reason: "wrong order" }),
      );
    },
  );
});

it("routes without a body take the reason for the audit from the query", async () => {
  await using stage = await openStage();
  await stage.post("/cron", { name: "c", expression: "* * * * *", job_template: job });
  await stage.call("PUT", "/rate-limits/k", { concurrency: 1 });
  expect((await stage.call("DELETE", "/cron/c?reason=zu%20oft")).status).toBe(200);
  expect((await stage.call("DELETE", "/rate-limits/k?reason=größer")).status).toBe(200);
  expect((await stage.call("DELETE", `/rate-limits/k?reason=${"x".repeat(501)}`)).status).toBe(400);
  const reasons = (await stage.get("/admin/audit")).body.items.map(
    ({ reason }: { reason: string }) => reason,
  );
  expect(reasons).toEqual(expect.arrayContaining(["zu oft", "größer"]));
});

describe("a mounted server without keys", () => {
  it.each([
    ["a foreign Host", { Host: "jobs.example.org" }, 421],
    ["a foreign Origin", { Host: "localhost", Origin: "https://evil.example" }, 403],
    ["Sec-Fetch-Site: cross-site", { Host: "localhost", "Sec-Fetch-Site": "cross-site" }, 403],
    ["Sec-Fetch-Site: same-site", { Host: "localhost", "Sec-Fetch-Site": "same-site" }, 403],
    [
      "its own page",
      { Host: "localhost:8080", Origin: "http://localhost:8080", "Sec-Fetch-Site": "same-origin" },
      200,
    ],
    ["an address that was typed in", { Host: "127.0.0.1", "Sec-Fetch-Site": "none" }, 200],
  ])("%s is answered with the right status", async (_name, headers, status) => {
    await using stage = await openStage();
    const reply = await stage.server.app.request("http://localhost/ojs/v1/jobs", { headers });
    expect(reply.status).toBe(status);
  });
});

it.each([
  ["postgres://u:secret@h/db", "postgres://***@h/db"],
  ["postgres://u:se@cr/et@h:5432/db", "postgres://***@h:5432/db"],
  ["postgres://u:se?cret@h/db", "postgres://***@h/db"],
  ["postgres://h/db?user=u&password=secret&x=1", "postgres://h/db?user=u&password=***&x=1"],
  ["postgres://h/db?sslpassword=secret", "postgres://h/db?sslpassword=***"],
  ["sqlite:jobs.db", "sqlite:jobs.db"],
])("hidePassword(%j) is %j", (address, shown) => {
  expect(hidePassword(address)).toBe(shown);
});
