import { expect, test } from "vitest";
import type { JobWrite, Outcome, Unit } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { CommitQueue } from "./commit-queue.ts";

/** A queue over a store that answers each commit when the test says so. */
function setUp({ inProcess = false } = {}) {
  const calls: { readonly ids: string[]; readonly answer: () => void }[] = [];
  const commit = (units: readonly Unit[]) =>
    new Promise<Outcome[]>((resolve) => {
      const ids = units.map(({ job }) => (job as JobWrite).id);
      calls.push({ ids, answer: () => resolve(units.map(() => ({ ok: true }))) });
    });
  const queue = new CommitQueue({
    store: { commit, capabilities: { inProcess } },
    clock: { now: () => 0 },
    system: { soon: (callback: () => void) => void setImmediate(callback) },
  } as unknown as EngineContext);
  const done: string[] = [];
  const push = (id: string, name = id) =>
    queue.push({ id, unit: () => ({ job: { id, fence: 1 } }), done: () => done.push(name) });
  const pushMany = (prefix: string, count: number) => {
    for (let nth = 0; nth < count; nth++) push(`${prefix}${nth}`);
  };
  const turns = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const sizes = () => calls.map(({ ids }) => ids.length);
  return { queue, push, pushMany, turns, calls, sizes, done };
}

test("many writes that come during a commit are sent before it is answered, and a third commit waits", async () => {
  const { push, pushMany, turns, sizes } = setUp();
  push("first");
  await turns();
  pushMany("a", 100);
  await turns();
  expect(sizes()).toEqual([1, 100]);
  pushMany("b", 400);
  await turns();
  expect(sizes()).toEqual([1, 100]);
});

test("few writes wait for the commit under way and share the next one", async () => {
  const { push, pushMany, turns, calls, sizes } = setUp();
  push("first");
  await turns();
  pushMany("a", 99);
  await turns();
  expect(sizes()).toEqual([1]);
  calls[0]?.answer();
  await turns();
  expect(sizes()).toEqual([1, 99]);
});

test("writes that come at once are one commit, with what is too few for a second one after it", async () => {
  const { pushMany, turns, calls, sizes } = setUp();
  pushMany("a", 550);
  await turns();
  expect(sizes()).toEqual([512]);
  calls[0]?.answer();
  await turns();
  expect(sizes()).toEqual([512, 38]);
});

test("a second write of a job waits for the commit of its first, whatever else is sent", async () => {
  const { queue, push, pushMany, turns, calls, done } = setUp();
  push("job", "start");
  await turns();
  push("job", "verdict");
  pushMany("a", 150);
  await turns();
  expect(calls[1]?.ids).not.toContain("job");
  calls[1]?.answer();
  await turns();
  // Nothing else is left, and the verdict still waits.
  expect(calls.length).toBe(2);
  calls[0]?.answer();
  await turns();
  expect(calls[2]?.ids).toEqual(["job"]);
  calls[2]?.answer();
  await queue.flushed();
  expect(done.filter((name) => name === "start" || name === "verdict")).toEqual(["start", "verdict"]);
});

test("the queue is flushed when both commits are answered", async () => {
  const { queue, push, pushMany, turns, calls } = setUp();
  push("first");
  await turns();
  pushMany("a", 100);
  await turns();
  let isFlushed = false;
  const flushed = queue.flushed().then(() => {
    isFlushed = true;
  });
  calls[1]?.answer();
  await turns();
  expect(isFlushed).toBe(false);
  calls[0]?.answer();
  await flushed;
});

test("a store in this process gets one commit at a time", async () => {
  const { push, pushMany, turns, sizes } = setUp({ inProcess: true });
  push("first");
  await turns();
  pushMany("a", 500);
  await turns();
  expect(sizes()).toEqual([1]);
});
