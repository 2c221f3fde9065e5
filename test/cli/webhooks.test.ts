import { expect, it, onTestFinished } from "vitest";
import { defineJob, openEngine, silentLogger } from "../../src/index.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { openReceiver } from "../server/webhook-receiver.ts";
import { answer, curfew } from "./stage.ts";

it("webhooks are added, tested, sent again, rotated and removed by commands", async () => {
  await using receiver = await openReceiver();
  const engine = await openEngine({
    store: "memory:",
    logger: silentLogger,
    webhooks: { allow: ["127.0.0.1"] },
  });
  const listening = await listen(createServer(engine), { port: 0 });
  onTestFinished(async () => {
    await listening.close();
    await engine.close();
  });
  const on = ["--url", listening.url];
  const made = await answer([
    "webhooks",
    "add",
    receiver.url,
    "--event",
    "job.enqueued",
    "--queue",
    "mail",
    ...on,
  ]);
  expect(made).toMatchObject({ url: receiver.url, events: ["job.enqueued"], filter: { queues: ["mail"] } });
  expect(made.secret).toMatch(/^whsec_/);
  const id = String(made.id);
  expect(await answer(["webhooks", "test", id, ...on])).toMatchObject({ success: true, status_code: 200 });
  await engine.enqueue(defineJob({ type: "mail.send", queue: "mail" }));
  const types = () => receiver.received.map(({ headers }) => headers["x-ojs-event-type"]);
  await expect.poll(types).toEqual(["webhook.test", "job.enqueued"]);
  // The receiver has it before its answer is stored.
  const delivered = async () =>
    (await answer(["webhooks", "deliveries", id, "--status", "delivered", ...on])).items;
  await expect
    .poll(delivered)
    .toMatchObject([{ subscription_id: id, event_types: ["job.enqueued"], status: "delivered" }]);
  await answer(["webhooks", "redeliver", String((await delivered())[0]?.id), ...on]);
  await expect.poll(types).toHaveLength(3);
  const rotated = await answer(["webhooks", "rotate", id, "--overlap", "1h", ...on]);
  expect(rotated.secret).not.toBe(made.secret);
  const listed = await curfew(["webhooks", "ls", ...on]);
  expect(listed.stdout).toContain(id);
  expect(listed.stdout).not.toContain("whsec_");
  await answer(["webhooks", "rm", id, ...on]);
  expect(await engine.webhooks.list()).toEqual([]);
  const refused = await curfew(["webhooks", "add", "http://10.0.0.1/", "--event", "*", ...on]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("url: ") });
});
