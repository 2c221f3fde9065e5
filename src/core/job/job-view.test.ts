import { inspect } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { enqueued, T0 } from "../../../test/support/rows.ts";
import { rankOf } from "./job.ts";
import { jobView } from "./job-view.ts";

const INTERNAL = ["rank", "limitKey", "expiredClaims", "wake", "wakeAt", "needs", "rev", "fence", "options"];

describe("the view of a job", () => {
  it("gives documents as values, and instants in epoch milliseconds", () => {
    const row = enqueued({ enqueue: { priority: 5, delay: "1m", meta: { tenant: "a" } } });
    const view = jobView({
      ...row,
      state: "completed",
      payload: '{"cents":5}',
      result: "[1,2]",
      progress: '{"value":0.5,"note":"half"}',
      checkpoint: '{"page":3}',
      softAt: T0 + 1,
      hardAt: T0 + 2,
    });
    expect(view).toMatchObject({
      id: row.id,
      state: "completed",
      priority: 5,
      payload: { cents: 5 },
      meta: { tenant: "a" },
      result: [1, 2],
      progress: { value: 0.5, note: "half" },
      checkpoint: { page: 3 },
      errors: [],
      createdAt: T0,
      dueAt: T0 + 60_000,
      finishedAt: null,
      deadlines: { wait: null, total: null, soft: T0 + 1, hard: T0 + 2 },
    });
  });

  it("shows nothing that only curfew needs", () => {
    const view = jobView(enqueued());
    for (const name of INTERNAL) expect(view).not.toHaveProperty(name);
  });

  it("tells a document that is missing from one that is null", () => {
    const row = enqueued();
    expect(jobView(row)).toMatchObject({ result: undefined, progress: null, checkpoint: undefined });
    expect(jobView({ ...row, result: "null", checkpoint: "null" })).toMatchObject({
      result: null,
      checkpoint: null,
    });
  });

  it("parses a document when it is first read, and once", () => {
    const parse = vi.spyOn(JSON, "parse");
    const view = jobView({ ...enqueued(), payload: '{"a":1}', result: "2" });
    expect(parse).not.toHaveBeenCalled();
    expect(view.payload).toBe(view.payload);
    expect(parse).toHaveBeenCalledTimes(1);
    parse.mockRestore();
  });

  it("names the remote worker that holds the job, and says when a waiting job is due", () => {
    const row = enqueued();
    const policy = { worker: "remote-1" } as NonNullable<typeof row.policy>;
    expect(jobView({ ...row, worker: "server", policy }).worker).toBe("remote-1");
    expect(jobView({ ...row, worker: "local" }).worker).toBe("local");
    expect(jobView({ ...row, rank: rankOf(-7, T0 + 9) }).dueAt).toBe(T0 + 9);
  });

  it("is printed, copied and written as JSON with its documents", () => {
    const view = jobView({ ...enqueued(), payload: '{"a":1}' });
    expect(inspect(view)).toContain("payload: { a: 1 }");
    expect(JSON.parse(JSON.stringify(view)).payload).toEqual({ a: 1 });
    expect({ ...view }.payload).toEqual({ a: 1 });
    expect(structuredClone(view).payload).toEqual({ a: 1 });
  });
});
