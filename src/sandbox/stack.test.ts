import { describe, expect, it } from "vitest";
import { stackOf } from "./stack.ts";

describe("the stack of code that hangs", () => {
  it("begins with its own code, though Node was telling that the debugger opens", () => {
    const stack = [
      "Error",
      "    at <anonymous>:1:56",
      "    at process.emit (node:events:489:44)",
      "    at spin (/app/work.ts:9:3)",
      "    at process.emit (node:events:489:44)",
    ].join("\n");
    expect(stackOf(stack)).toBe(
      "It hung here:\n    at spin (/app/work.ts:9:3)\n    at process.emit (node:events:489:44)",
    );
  });

  it("begins with its own code, though others have wrapped the function that tells it", () => {
    const stack = [
      "Error",
      "    at process.emit (node:events:489:44)",
      "    at process.emit (/app/node_modules/runner/suppress-warnings.cjs:15:25)",
      "    at process.traced [as emit] (/app/node_modules/agent/index.js:7:9)",
      "    at spin (/app/work.ts:9:3)",
    ].join("\n");
    expect(stackOf(stack)).toBe("It hung here:\n    at spin (/app/work.ts:9:3)");
  });

  it("keeps other code of Node, which says what it waits for", () => {
    const stack = "Error\n    at spawnSync (node:internal/child_process:1:2)\n    at run (/app/work.ts:1:2)";
    expect(stackOf(stack)).toContain("here:\n    at spawnSync (node:internal/child_process:1:2)\n");
  });

  it("is refused if it has no frames", () => {
    expect(() => stackOf("Error: nothing")).toThrow("its answer is not a stack");
  });
});
