import assert from "node:assert/strict";
import { imageOf } from "../../core/job/decision.ts";
import type { Capabilities, Hint, Store } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, type TestBed } from "./test-bed.ts";

export function skipWithoutHints({ hints }: Capabilities): string | undefined {
  return hints === "poll" ? "the store gives no hints across handles, only polling finds work" : undefined;
}

/** Runs something on one handle and waits until another one was told of it; hints may come doubled and among others. */
export async function heard(bed: TestBed, expected: Hint, run: () => Promise<unknown>): Promise<void> {
  const listener = (await bed.handles(2))[1] as Store;
  const text = JSON.stringify(expected);
  let tell!: () => void;
  const told = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const listening = await listener.listen((hint) => {
    if (JSON.stringify(hint) === text) tell();
  });
  try {
    await run();
    await told;
  } finally {
    await listening[Symbol.asyncDispose]();
  }
}

const cases: ConformanceCase[] = [
  {
    name: "an enqueue tells that its queue is ready",
    skip: skipWithoutHints,
    run: (bed) => heard(bed, { ready: "default" }, () => bed.add()),
  },
  {
    name: "a sweep that promoted tells that its queue is ready",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add({ dueAt: bed.now + 1_000, queue: "later" });
      await heard(bed, { ready: "later" }, () => bed.sweep(bed.now + 1_000));
    },
  },
  {
    name: "a release and an admission tell that their queue is ready",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add();
      const held = await bed.claimOne();
      await heard(bed, { ready: "default" }, () => bed.write(held, { type: "release" }));
      await bed.add({ limitKey: "limitKey", queue: "gated" });
      await heard(bed, { ready: "gated" }, () => bed.effect({ admit: "limitKey", count: 1 }));
      await heard(bed, { ready: "named" }, () => bed.effect({ ready: "named" }));
    },
  },
  {
    name: "the end of a job is told, kept or dropped",
    skip: skipWithoutHints,
    async run(bed) {
      const kept = await bed.add();
      await heard(bed, { settled: kept.id }, () => bed.write(kept, { type: "cancel" }, { outsider: true }));
      const { id, fence, rev } = await bed.add();
      const { image } = bed.unit({ ...kept, id, fence, rev }, { type: "cancel" }).job ?? {};
      assert(image);
      await heard(bed, { settled: id }, () => bed.commit({ job: { id, fence, rev, image, drop: true } }));
    },
  },
  {
    name: "an outsider who voids an attempt tells that it is lost",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add();
      const held = await bed.claimOne();
      await heard(bed, { lost: held.id }, () => bed.write(held, { type: "cancel" }, { outsider: true }));
    },
  },
  {
    name: "an outsider who changes an attempt and wants its holder to hear of it is heard",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add();
      const { id, fence, rev } = await bed.start(await bed.claimOne());
      const changed = {
        id,
        fence,
        rev,
        image: imageOf(found(await bed.load(id))),
        notifyHolder: true as const,
      };
      await heard(bed, { lost: id }, () => bed.commit({ job: changed }));
    },
  },
  {
    name: "who stopped listening is told nothing more, and others are",
    skip: skipWithoutHints,
    async run(bed) {
      const told: Hint[] = [];
      const listening = await bed.store.listen((hint) => told.push(hint));
      await listening[Symbol.asyncDispose]();
      await heard(bed, { ready: "default" }, () => bed.add());
      assert.deepEqual(told, []);
    },
  },
];

export const hinting: ConformanceSection = { name: "hints", cases };
