import { describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { storeConformance } from "../../src/testing/index.ts";

/** The cost of a large table is that of one home, which memory.test.ts measures. */
const runner = {
  describe,
  it: (name: string, run: () => Promise<void>, timeout?: number) =>
    it.skipIf(name.includes("200000"))(name, run, timeout),
};

storeConformance({
  name: "memory with 4 homes",
  runner,
  async open() {
    return { store: createMemoryStore({ clock: () => Date.now(), homes: 4 }) };
  },
});
