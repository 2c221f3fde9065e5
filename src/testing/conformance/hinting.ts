import assert from "node:assert/strict";
import { imageOf } from "../../core/job/decide/decision.ts";
import type { Capabilities, Hint, Store } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, type TestBed } from "./test-bed.ts";

export function skipWithoutHints({ hints }: Capabilities): string | undefined {
  return hints === "poll" ? "the store gives no hints across handles, only polling finds work" : undefined;
}

/**
 * Runs something on one handle and waits until another one gets the hint. Hints may be repeated and mixed with
 * others.
 */
export async function heard(bed: TestBed, expected: Hint, run: () => Promise<unknown>): Promise<void> {
  const listener = (await bed.handles(2))[1] as Store;
  const text = JSON.stringify(expected);
  let hear!: () => void;
  const arrived = new Promise<void>((resolve) => {
    hear = resolve;
  });
  const listening = await listener.listen((hint) => {
    if (JSON.stringify(hint) === text) hear();
  });
  try {
    await run();
    await arrived;
  } finally {
    await listening[Symbol.asyncDispose]();
  }
}

const cases: ConformanceCase[] = [
  {
    name: "an enqueue sends a hint that its queue is ready",
    skip: skipWithoutHints,
    run: (bed) => heard(bed, { ready: "default" }, () => bed.add()),
  },
  {
    name: "a sweep that promotes sends a hint that the queue is ready",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add({ dueAt: bed.now + 1_000, queue: "later" });
      await heard(bed, { ready: "later" }, () => bed.sweep(bed.now + 1_000));
    },
  },
  {
    name: "a release and an admission send a hint that their queue is ready",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add();
      const claimed = await bed.claimOne();
      await heard(bed, { ready: "default" }, () => bed.write(claimed, { type: "release" }));
      await bed.add({ limitKey: "limitKey", queue: "limited" });
      await heard(bed, { ready: "limited" }, () => bed.effect({ admit: "limitKey", count: 1 }));
      await heard(bed, { ready: "named" }, () => bed.effect({ ready: "named" }));
    },
  },
  {
    name: "the end of a job sends a hint, kept or dropped",
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
    name: "an outsider that voids an attempt sends a hint that it is lost",
    skip: skipWithoutHints,
    async run(bed) {
      await bed.add();
      const claimed = await bed.claimOne();
      await heard(bed, { lost: claimed.id }, () =>
        bed.write(claimed, { type: "cancel" }, { outsider: true }),
      );
    },
  },
  {
    name: "an outsider's change with notifyHolder sends the holder a hint",
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
    name: "a caller that stopped listening gets no more hints, and others do",
    skip: skipWithoutHints,
    async run(bed) {
      const heardHints: Hint[] = [];
      const listening = await bed.store.listen((hint) => heardHints.push(hint));
      await listening[Symbol.asyncDispose]();
      await heard(bed, { ready: "default" }, () => bed.add());
      assert.deepEqual(heardHints, []);
    },
  },
];

export const hinting: ConformanceSection = { name: "hints", cases };
