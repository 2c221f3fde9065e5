import { describe, expect, it } from "vitest";
import type { Outcome, Unit } from "../../ports/store.ts";
import { createDeferred } from "../../testing/index.ts";
import { Committer } from "./committer.ts";

function unit(name: string): Unit {
  return { effects: [{ event: name }] };
}

/** More microtasks than any chain of promises in these tests has. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await undefined;
}

describe("the committer", () => {
  it("sends units of one turn together, and units that arrive during a call with the next one", async () => {
    const calls: { units: readonly Unit[]; done: (outcomes: Outcome[]) => void }[] = [];
    const commit = (units: readonly Unit[]) => {
      const { promise, resolve } = createDeferred<Outcome[]>();
      calls.push({ units, done: resolve });
      return promise;
    };
    const committer = new Committer(commit);
    const first = ["a", "b"].map((name) => committer.commit(unit(name)));
    await settle();
    const second = committer.commit(unit("c"));
    await settle();
    const third = ["d", "e"].map((name) => committer.commit(unit(name)));
    await settle();
    expect(calls.map(({ units }) => units)).toEqual([[unit("a"), unit("b")], [unit("c")]]);
    calls[0]?.done([{ ok: true }, { ok: false, because: "conflict", at: null }]);
    expect(await Promise.all(first)).toEqual([{ ok: true }, { ok: false, because: "conflict", at: null }]);
    await settle();
    expect(calls[2]?.units).toEqual([unit("d"), unit("e")]);
    calls[1]?.done([{ ok: true }]);
    calls[2]?.done([{ ok: true }, { ok: true }]);
    expect(await Promise.all([second, ...third])).toEqual([{ ok: true }, { ok: true }, { ok: true }]);
  });

  it("repeats a call that fails unit by unit, so that a bad unit fails alone", async () => {
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
