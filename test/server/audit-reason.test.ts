import { expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

const entries = async (stage: Stage) =>
  (await stage.get("/admin/audit")).body.items.map(
    ({ action, actor, reason }: { action: string; actor: string; reason: string | null }) => [
      action,
      actor,
      reason,
    ],
  );

it("the audit keeps the reason of the body, else of the header", async () => {
  await using stage = await openStage();
  const { id } = await stage.enqueue();
  await stage.call("POST", "/queues/default/pause", undefined, { "X-Audit-Reason": "storage is full" });
  await stage.call(
    "POST",
    "/queues/default/resume",
    { reason: "größer gemacht" },
    { "X-Audit-Reason": "no" },
  );
  await stage.call("DELETE", `/jobs/${id}`, undefined, { "X-Audit-Reason": "not wanted" });
  await stage.post("/queues/default/pause");
  expect(await entries(stage)).toEqual([
    ["queue.pause", "local", null],
    ["job.cancel", "local", "not wanted"],
    ["queue.resume", "local", "größer gemacht"],
    ["queue.pause", "local", "storage is full"],
  ]);
});

it("keeps it with each job of a bulk action", async () => {
  await using stage = await openStage();
  const jobs = [await stage.enqueue(), await stage.enqueue()];
  const body = { job_ids: jobs.map(({ id }) => id), confirm: true, reason: "all wrong" };
  await stage.post("/admin/jobs/bulk/cancel", body);
  const kept = await entries(stage);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.every(([, , reason]: string[]) => reason === "all wrong")).toBe(true);
});

it.each([
  ["a header that is too long", undefined, { "X-Audit-Reason": "x".repeat(501) }],
  ["a header beyond ASCII", undefined, { "X-Audit-Reason": "gr\u00f6\u00dfer" }],
  ["a text that is too long", { reason: "x".repeat(501) }, {}],
  ["two lines", { reason: "a\nb" }, {}],
  ["half of a character", { reason: "\ud800" }, {}],
  ["something else", { reason: 7 }, {}],
])("refuses %s, and changes nothing", async (_name, body, headers) => {
  await using stage = await openStage();
  const answered = await stage.call("POST", "/queues/default/pause", body, headers);
  expect([answered.status, answered.body.error.message]).toEqual([400, expect.stringContaining("reason")]);
  expect((await stage.get("/queues/default")).body.paused).toBe(false);
});

it("routes that read, enqueue or work take no audit reason", async () => {
  await using stage = await openStage();
  const headers = { "X-Audit-Reason": "x".repeat(501) };
  expect((await stage.call("GET", "/queues", undefined, headers)).status).toBe(200);
  expect((await stage.call("POST", "/jobs", { type: "a", args: [] }, headers)).status).toBe(201);
});
