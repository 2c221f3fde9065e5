import { describe, expect, it } from "vitest";
import { openStage } from "./stage.ts";

const large = (bytes: number) => "x".repeat(bytes);

describe("the documentLimit of an engine, over HTTP", () => {
  it("a payload above it is refused, wherever a request has one", async () => {
    await using stage = await openStage({ documentLimit: 1_000 });
    const job = { type: "test.job", args: [large(2_000)] };
    const template = { name: "nightly", cron: "0 3 * * *", job_template: job };
    const workflow = { type: "chain", name: "two steps", steps: [job] };
    const requests: [path: string, body: object][] = [
      ["/jobs", job],
      ["/jobs/batch", { jobs: [job] }],
      ["/cron", template],
      ["/workflows", workflow],
    ];
    for (const [path, body] of requests) {
      const answer = await stage.post(path, body);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 413, "payload_too_large"]);
    }
  });

  it("a result above it is refused, and the attempt can still end with a smaller one", async () => {
    await using stage = await openStage({ documentLimit: 1_000 });
    const { id } = await stage.enqueue();
    const { fence } = await stage.fetch();
    const ack = (result: string) => stage.post("/workers/ack", { job_id: id, fence, result });
    expect((await ack(large(2_000))).status).toBe(413);
    const many = { jobs: [{ job_id: id, fence, result: large(2_000) }] };
    expect((await stage.post("/workers/ack/batch", many)).body.results[0].error.code).toBe(
      "payload_too_large",
    );
    expect((await ack("small")).status).toBe(200);
  });

  it("a message to a saga above it is refused", async () => {
    await using stage = await openStage({ documentLimit: 1_000 });
    const message = { saga: "order", name: "paid", to: "7", payload: large(2_000) };
    await expect(stage.engine.sagaRecords.send(message)).rejects.toMatchObject({ code: "too_large" });
  });

  it("one above the default lets larger payloads and results in", async () => {
    await using stage = await openStage({ documentLimit: 2_000_000 });
    const { id } = await stage.enqueue({}, { args: [large(1_500_000)] });
    const { fence } = await stage.fetch();
    const ack = { job_id: id, fence, result: large(1_500_000) };
    expect((await stage.post("/workers/ack", ack)).status).toBe(200);
  });
});
