import { describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { storeConformance } from "../../src/testing/index.ts";

storeConformance({
  name: "memory with 4 homes",
  runner: { describe, it },
  async open() {
    return { store: createMemoryStore({ clock: () => Date.now(), homes: 4 }) };
  },
});
