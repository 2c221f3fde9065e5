import { expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openStage, type Stage } from "./stage.ts";

const quick = defineJob({ type: "test.quick" });

/** A machine so busy that the process stands still for this long during every call of the store. */
function starve(store: Store, halt: () => void): Store {
  const { claim, beat } = store.jobs;
  return {
    ...store,
    jobs: {
      ...store.jobs,
      async claim(request) {
        const rows = await claim(request);
        halt();
        return rows;
      },
      async beat(request) {
        const answers = await beat(request);
        halt();
        return answers;
      },
    },
  };
}

it.each([400, 900, 2_000])(
  "3.1 a worker that stands still for %i ms at each call still runs jobs",
  async (length) => {
    let stage: Stage | undefined;
    const halt = () => stage?.system.pause(length);
    stage = await openStage({ store: (clock) => starve(createMemoryStore({ clock }), halt) });
    const { engine } = stage;
    await engine.enqueueMany(quick, Array.from({ length: 50 }));
    stage.work([processor(quick, () => "done")], { queues: { default: { concurrency: 5 } } });
    await stage.advance("5m");
    expect(await engine.queues.depth()).toMatchObject({ completed: 50, available: 0, active: 0 });
  },
);
