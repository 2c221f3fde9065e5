import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openStage } from "./stage.ts";

describe("4.3 a sweep on a server", () => {
  it("a checkpoint that comes while a sweep judges the job does not put off its next deadline", async () => {
    let onSweep: (() => Promise<unknown>) | undefined;
    await using stage = await openStage({
      store: (clock) => {
        const store = createMemoryStore({ clock });
        const { jobs } = store;
        // Between the sweep that takes a row and the verdict on it, somebody else writes.
        const sweep: typeof jobs.sweep = async (request) => {
          const swept = await jobs.sweep(request);
          if (swept.jobs.length > 0) await onSweep?.();
          return swept;
        };
        return { ...store, jobs: { ...jobs, sweep } };
      },
    });
    const { id } = await stage.enqueue({ heartbeat_timeout: 2, timeout: 60 });
    await stage.fetch();
    onSweep = async () => {
      onSweep = undefined;
      expect(await stage.engine.service.notes.checkpoint(id, {}, { page: 1 })).toMatchObject({ ok: true });
    };
    await stage.advance("2s");
    expect(await stage.job(id)).toMatchObject({ state: "active", checkpoint: { state: { page: 1 } } });
    await stage.advance("2500ms");
    expect(await stage.job(id)).toMatchObject({ error: { type: "stalled" } });
  });
});
