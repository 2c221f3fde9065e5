import { expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { openClientStage } from "./client-stage.ts";
import { fits } from "./fits.ts";
import { openStage } from "./stage.ts";

const mail = defineJob({ type: "mail.send", queue: "mail" });

it("the server says why a job does not run, with instants as text", async () => {
  await using stage = await openStage();
  const { engine, get } = stage;
  engine.work({ processors: [processor(mail, () => {})] });
  await engine.queues.pause("mail");
  const { id } = await engine.enqueue(mail);
  await stage.advance("5s");
  for (const path of ["/jobs", "/admin/jobs"]) {
    const answered = await get(`${path}/${id}/why`);
    fits("GET", `${path}/:id/why`, answered);
    const { body } = answered;
    expect(body).toMatchObject({ job_id: id, state: "available", asked_at: "2030-01-01T00:00:05.000Z" });
    expect(body.reasons[0]).toEqual({
      code: "queue_paused",
      sentence: 'Queue "mail" has been paused for 5s, by a program that named no operator.',
      since: "2030-01-01T00:00:00.000Z",
      until: null,
      who: { kind: "queue", id: "mail" },
      link: "docs/guides/troubleshooting.md#queue_paused",
      action: { name: "resume-queue", target: "mail", text: 'Call engine.queues.resume("mail").' },
    });
  }
});

it("the server answers 404 for a job that it does not know", async () => {
  await using stage = await openStage();
  for (const id of ["none", "00000000-0000-7000-8000-000000000000"])
    expect((await stage.get(`/jobs/${id}/why`)).status, id).toBe(404);
});

it("the server lists queues that no live worker takes", async () => {
  await using stage = await openStage();
  stage.engine.work({ processors: [processor(mail, () => {})] });
  await stage.engine.enqueue(mail, null, { queue: "mails" });
  await stage.advance("1s");
  const answered = await stage.get("/admin/unattended-queues");
  fits("GET", "/admin/unattended-queues", answered);
  expect(answered.body).toEqual({
    queues: [{ queue: "mails", waiting: 1, has_more: false, did_you_mean: "mail" }],
  });
});

it("a client gets the same answer as an engine, and its handle says if nothing was added", async () => {
  const { client, engine, settle } = await openClientStage();
  const handle = await client.enqueue(mail);
  await settle();
  const [{ toString: _ours, ...own }, { toString: _theirs, ...theirs }] = [
    await engine.why(handle.id),
    await client.why(handle.id),
  ];
  expect(theirs).toEqual(own);
  expect(String(await handle.why())).toContain("[no_worker]");
  const again = await client.enqueue(mail, null, { id: handle.id });
  expect((await again.why()).reasons.map(({ code }) => code)).toEqual(["unique_key_held", "no_worker"]);
  await expect(client.why("00000000-0000-7000-8000-000000000000")).rejects.toThrow("why");
});

it("a remote worker reports its queues and job types, so that why can name what is missing", async () => {
  const { client, engine, work, advance } = await openClientStage();
  const worker = work([processor(mail, () => {})]);
  expect(worker.queues).toEqual(["mail"]);
  await advance("2s");
  const elsewhere = await client.enqueue(mail, null, { queue: "mials" });
  const unknown = await client.enqueue(defineJob({ type: "mail.sned", queue: "mail" }), null, {
    delay: "1s",
  });
  await advance("100ms");
  expect((await engine.why(elsewhere.id)).reasons[0]).toMatchObject({
    code: "no_worker_for_queue",
    sentence: expect.stringContaining('Did you mean "mail"?'),
  });
  expect((await engine.why(unknown.id)).reasons.map(({ code }) => code)).toEqual([
    "due_later",
    "no_processor",
  ]);
});

it("a local handle says that its enqueue added nothing", async () => {
  const { engine } = await openClientStage();
  const unique = defineJob({ type: "mail.send", unique: {} });
  const first = await engine.enqueue(unique);
  const second = await engine.enqueue(unique);
  expect(second.id).toBe(first.id);
  expect((await second.why()).reasons[0]?.code).toBe("unique_key_held");
  expect((await first.why()).reasons[0]?.code).toBe("no_worker");
});

it("a job in a worker that was asked to be quiet says so", async () => {
  const { engine, client, work, advance } = await openClientStage();
  const worker = work([processor(mail, () => new Promise<never>(() => {}))]);
  const handle = await client.enqueue(mail);
  await advance("3s");
  expect((await engine.why(handle.id)).reasons[0]?.code).toBe("running");
  await engine.service.workers.direct(worker.id, "quiet");
  expect((await engine.why(handle.id)).reasons[0]).toMatchObject({
    code: "worker_stopping",
    who: { kind: "worker", id: worker.id },
  });
});

it("the metrics count enqueues into a queue that no live worker takes", async () => {
  await using stage = await openStage();
  await stage.engine.enqueueMany(mail, [null, null], { queue: "mails" });
  await stage.advance("6m");
  const { body } = await stage.get("http://127.0.0.1/metrics");
  expect(String(body)).toContain('curfew_enqueued_unattended_total{queue="mails"} 2');
});
