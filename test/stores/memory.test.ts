import { describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { storeConformance } from "../../src/testing/index.ts";

storeConformance({
  name: "memory",
  runner: { describe, it },
  async open() {
    const store = createMemoryStore({ clock: () => Date.now() });
    return { store };
  },
});
