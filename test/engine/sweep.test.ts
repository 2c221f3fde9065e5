import { describe, expect, it } from "vitest";
import type { SimSystem } from "../../src/testing/index.ts";
import { jobOf, openOver, sleepOn } from "./stage.ts";

describe("3.11 the sweep", () => {
  it("a deadline that is set during a sweep round is not missed", async () => {
    let system: SimSystem | undefined;
    // The answer of a sweep is on its way for a while, so it knows nothing of what was committed meanwhile.
    const stage = await openOver((store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        async sweep(request) {
          const swept = await store.jobs.sweep(request);
          if (system) await sleepOn(system, 50);
          return swept;
        },
      },
    }));
    system = stage.system;
    const definition = jobOf();
    await stage.engine.enqueue(definition, null, { timeouts: { wait: "1s" } });
    await stage.advance("1020ms");
    const job = await stage.engine.enqueue(definition, null, { timeouts: { wait: "200ms" } });
    await stage.advance("300ms");
    expect((await stage.load(job)).state).toBe("discarded");
  });
});
