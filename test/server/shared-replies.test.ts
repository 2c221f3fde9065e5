import { describe, expect, it } from "vitest";
import { openStage, type Stage } from "./stage.ts";

const LIST = "/admin/jobs?state=available";

const listed = async (stage: Stage, age?: string, path = LIST) => {
  const headers = age === undefined ? {} : { "Cache-Control": age };
  const { status, body } = await stage.call("GET", path, undefined, headers);
  expect(status).toBe(200);
  return body.items.length as number;
};

describe("a reply to callers that accept an age", () => {
  it("is computed once for all of them while it is young", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    expect(await listed(stage, "max-age=2")).toBe(1);
    await stage.enqueue();
    await stage.advance("2s");
    expect(await listed(stage, "no-transform, max-age=2")).toBe(1);
    expect(await listed(stage, "max-age=2", `${LIST}&order=asc`)).toBe(2);
    expect(await listed(stage, "max-age=1")).toBe(2);
    expect(await listed(stage, "max-age=2")).toBe(2);
  });

  it("is always new to callers that accept none", async () => {
    await using stage = await openStage();
    await stage.enqueue();
    expect(await listed(stage, "max-age=2")).toBe(1);
    await stage.enqueue();
    expect(await listed(stage)).toBe(2);
    expect(await listed(stage, "max-age=0")).toBe(2);
    expect(await listed(stage, "no-cache")).toBe(2);
  });

  it("is dropped when an operator changes something", async () => {
    await using stage = await openStage();
    const job = await stage.enqueue();
    expect(await listed(stage, "max-age=2")).toBe(1);
    expect((await stage.post(`/admin/jobs/${job.id}/cancel`)).status).toBe(200);
    expect(await listed(stage, "max-age=2")).toBe(0);
  });

  it("is shared by callers only after their own right was checked", async () => {
    await using stage = await openStage(
      {},
      { authorize: ({ headers }) => (headers.get("x-user") === "ana" ? "admin" : null) },
    );
    const headers = { "Cache-Control": "max-age=2", "X-User": "ana" };
    expect((await stage.call("GET", LIST, undefined, headers)).status).toBe(200);
    const { status } = await stage.call("GET", LIST, undefined, { "Cache-Control": "max-age=2" });
    expect(status).toBe(401);
  });
});
