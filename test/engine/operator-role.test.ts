import { describe, expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { openTestEngine } from "../../src/testing/index.ts";

const late = defineJob({ type: "test.late", timeouts: { wait: "1m" } });

describe('an engine with role: "operator"', () => {
  it("leaves what is due to others, and does what it is asked for", async () => {
    await using stage = await openTestEngine({ role: "operator" });
    const { engine } = stage;
    const overdue = await engine.enqueue(late);
    const delayed = await engine.enqueue(late, undefined, { delay: "30s" });
    await stage.advance("1h");
    expect((await overdue.load())?.state).toBe("available");
    expect((await delayed.load())?.state).toBe("scheduled");
    expect((await delayed.cancel()).state).toBe("cancelled");
    expect((await engine.find({ type: "test.late" })).jobs).toHaveLength(2);
  });

  it("refuses to run jobs and to serve timeouts, and names the way out", async () => {
    await using stage = await openTestEngine({ role: "operator" });
    const processors = [processor(late, () => undefined)];
    expect(() => stage.engine.work({ processors })).toThrow(
      /role.*"operator".*open an engine without a role/,
    );
    expect(() => stage.engine.timeouts.serve("mail", () => undefined)).toThrow(/"operator"/);
  });
});
