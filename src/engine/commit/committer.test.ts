import { describe, expect, it } from "vitest";
import type { Outcome, Unit } from "../../ports/store.ts";
import { createDeferred } from "../../testing/index.ts";
import { Committer } from "./committer.ts";

function unit(name: string): Unit {
  return { effects: [{ event: name }] };
}

describe("the committer", () => {
  it("gathers what comes while calls are under way into the next one, and answers each", async () => {
    const calls: { units: readonly Unit[]; done: (outcomes: Outcome[]) => void }[] = [];
    const commit = (units: readonly Unit[]) => {
      const { promise, resolve } = createDeferred<Outcome[]>();
      calls.push({ units, done: resolve });
      return promise;
    };
    const committer = new Committer(commit);
    const answers = ["a", "b", "c", "d"].map((name) => committer.commit(unit(name)));
    expect(calls.map(({ units }) => units.length)).toEqual([1, 1]);
    calls[0]?.done([{ ok: true }]);
    await answers[0];
    await Promise.resolve();
    expect(calls[2]?.units).toEqual([unit("c"), unit("d")]);
    calls[1]?.done([{ ok: true }]);
    calls[2]?.done([{ ok: true }, { ok: false, because: "conflict", at: null }]);
    expect(await Promise.all(answers)).toEqual([
      { ok: true },
      { ok: true },
      { ok: true },
      { ok: false, because: "conflict", at: null },
    ]);
  });

  it("a call that fails is repeated unit by unit: one bad unit hurts no other", async () => {
    const commit = async (units: readonly Unit[]): Promise<Outcome[]> => {
      await Promise.resolve();
      if (units.some(({ effects }) => JSON.stringify(effects).includes("bad"))) throw new Error("no");
      return units.map(() => ({ ok: true }));
    };
    const committer = new Committer(commit);
    const names = ["a", "b", "c", "bad", "e"];
    const ends = await Promise.allSettled(names.map((name) => committer.commit(unit(name))));
    expect(ends.map(({ status }) => status)).toEqual(
      names.map((name) => (name === "bad" ? "rejected" : "fulfilled")),
    );
  });
});
