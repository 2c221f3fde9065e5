import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { dueAtOf, type JobRow } from "../../src/core/job/job.ts";
import {
  defineJob,
  type Engine,
  openEngine,
  processor,
  silentLogger,
  type UniqueOptions,
  unchecked,
} from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { storeAddresses } from "./support/addresses.ts";
import { killChild } from "./support/kill-child.ts";
import { program } from "./support/program.ts";

const CHILD = program(new URL("./paced/child.ts", import.meta.url));
const HOUR = 3_600_000;
/** `npm run test:long -- paced` runs more. */
const ROUNDS = Number(process.env.CURFEW_PACED_ROUNDS ?? 12);
const CALLS = 20;

const { sqliteAddress, postgresAddress } = storeAddresses("paced");
const STORES = [
  ["SQLite", sqliteAddress],
  ["PostgreSQL", postgresAddress],
] as const;
const children = new Set<ChildProcess>();

afterEach(async () => {
  for (const child of children) await killChild(child);
  children.clear();
});

async function start(store: string, rule: UniqueOptions, name: string): Promise<ChildProcess> {
  const child = fork(CHILD, [store, JSON.stringify(rule), name], { execArgv: [] });
  children.add(child);
  await once(child, "message");
  return child;
}

/** Both processes enqueue the key at once. Answers the ids that all calls were answered. */
async function race(both: readonly ChildProcess[], key: string): Promise<string[]> {
  const answers = both.map((child) => once(child, "message") as Promise<[string[]]>);
  for (const child of both) child.send({ key, calls: CALLS });
  return (await Promise.all(answers)).flatMap(([ids]) => ids);
}

const keyOf = ({ payload }: JobRow) => (JSON.parse(payload) as { key: string }).key;

/** Follows a job to the one that replaced it last. Null if one of them is not in the store. */
function lastOf(rows: ReadonlyMap<string, JobRow>, id: string): JobRow | null {
  let row = rows.get(id);
  while (row?.state === "cancelled") row = rows.get(row.options?.replacedBy ?? "");
  return row ?? null;
}

/** What is left of a key: no call was lost, and the last one of a process stands. */
async function leftOf(engine: Engine, key: string, ids: readonly string[]): Promise<JobRow[]> {
  const all = await jobsOf(engine.store, { type: "test.paced" });
  const rows = all.filter((row) => keyOf(row) === key);
  const left = rows.filter(({ state }) => state !== "cancelled");
  const byId = new Map(rows.map((row) => [row.id, row]));
  expect(ids).toHaveLength(2 * CALLS);
  for (const id of ids) expect(left).toContain(lastOf(byId, id));
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(ids));
  const [last] = left.toSorted((a, b) => dueAtOf(b.rank) - dueAtOf(a.rank));
  expect(JSON.parse(last?.payload ?? "{}")).toMatchObject({ nth: CALLS - 1 });
  return left.toSorted((a, b) => dueAtOf(a.rank) - dueAtOf(b.rank));
}

describe("4.8 two processes that enqueue one key at once", () => {
  it.each(STORES)("leave one debounced job on %s, the last one", async (_name, address) => {
    const store = await address();
    const engine = await openEngine({ store, logger: silentLogger });
    const rule: UniqueOptions = { debounce: { quiet: "1h" } };
    const both = [await start(store, rule, "a"), await start(store, rule, "b")];
    for (let round = 0; round < ROUNDS; round++) {
      const left = await leftOf(engine, `${round}`, await race(both, `${round}`));
      expect(left.map(({ state }) => state)).toEqual(["scheduled"]);
    }
    await engine.close();
  });

  it.each(STORES)("leave one throttled job per period on %s", async (_name, address) => {
    const store = await address();
    const engine = await openEngine({ store, logger: silentLogger });
    const rule: UniqueOptions = { throttle: "1h" };
    const both = [await start(store, rule, "a"), await start(store, rule, "b")];
    for (let round = 0; round < ROUNDS; round++) {
      const left = await leftOf(engine, `${round}`, await race(both, `${round}`));
      expect(left.map(({ state }) => state)).toEqual(["available", "scheduled"]);
      const [first, second] = left.map(({ rank }) => dueAtOf(rank)) as [number, number];
      expect(second - first).toBe(HOUR);
    }
    await engine.close();
  });

  const UNIQUE: readonly UniqueOptions[] = [{}, { period: "1h" }, { states: ["available", "scheduled"] }];

  it.each(STORES)("leave the first of unique jobs on %s", async (_name, address) => {
    const store = await address();
    const engine = await openEngine({ store, logger: silentLogger });
    for (const [nth, rule] of UNIQUE.entries()) {
      const both = [await start(store, rule, "a"), await start(store, rule, "b")];
      for (let round = 0; round < ROUNDS / 4; round++) {
        const key = `${nth} ${round}`;
        const ids = await race(both, key);
        const rows = await jobsOf(engine.store, { type: "test.paced" });
        const left = rows.filter((row) => keyOf(row) === key);
        expect(left.map(({ id, state }) => [id, state])).toEqual([[ids[0], "available"]]);
        expect(new Set(ids).size).toBe(1);
      }
      for (const child of both) await killChild(child);
    }
    await engine.close();
  });

  it.each(STORES)("run one job per period on %s, also if one of them is killed", async (_name, address) => {
    const store = await address();
    const engine = await openEngine({ store, logger: silentLogger });
    const entered: string[] = [];
    const definition = defineJob({ type: "test.paced", payload: unchecked<unknown>() });
    engine.work({ processors: [processor(definition, ({ id }) => void entered.push(id))] });
    const rule: UniqueOptions = { throttle: "200ms" };
    const both = [await start(store, rule, "a"), await start(store, rule, "b")];
    const acknowledged: string[] = [];
    // All rounds have one key, so that periods end in the middle of a round.
    for (let round = 0; round < ROUNDS; round++) {
      acknowledged.push(...(await race(both, "one")));
      if (round % 5 !== 4) continue;
      const [victim] = both.splice(round % 2, 1) as [ChildProcess];
      victim.send({ key: "one", calls: CALLS });
      await killChild(victim);
      children.delete(victim);
      both.push(await start(store, rule, `c${round}`));
    }
    for (const child of both) await killChild(child);
    await expect.poll(async () => (await engine.queues.depth()).scheduled).toBe(0);
    const rows = await jobsOf(engine.store, { type: "test.paced" });
    const ran = rows.filter(({ state }) => state !== "cancelled");
    await expect.poll(() => entered.length).toBe(ran.length);
    expect(new Set(entered)).toEqual(new Set(ran.map(({ id }) => id)));
    const dueAts = ran.map(({ rank }) => dueAtOf(rank)).toSorted((a, b) => a - b);
    expect(dueAts.length).toBeGreaterThan(1);
    for (const [index, dueAt] of dueAts.slice(1).entries())
      expect(dueAt - (dueAts[index] as number)).toBeGreaterThanOrEqual(200);
    const byId = new Map(rows.map((row) => [row.id, row]));
    // A replaced job is kept for a minute. On a machine that needs longer its row is gone, and nothing is known about it.
    for (const id of acknowledged.filter((one) => byId.has(one))) expect(ran).toContain(lastOf(byId, id));
    await engine.close();
  });
});
