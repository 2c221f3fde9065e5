import assert from "node:assert/strict";
import { createIdSource } from "../core/ids.ts";
import type { JobRow } from "../core/job/job.ts";
import { seededRandom } from "../core/random.ts";
import type { Store } from "../ports/store.ts";
import { drawOperations, type Operation, prepare, unversioned, type World } from "./random-operations.ts";
import { readTimeouts } from "./random-timeouts.ts";
import { depthOf, jobsOf, logOf } from "./read-store.ts";

export interface Comparison {
  /** Opens new, empty stores. Called again for each attempt at a shorter list. */
  readonly model: () => Promise<Store>;
  readonly subject: () => Promise<Store>;
  readonly seed: number;
  readonly steps: number;
}

const START = 1_800_000_000_000;
/** Each attempt to shorten a failure opens two stores, which is slow for a real database. */
const MOST_TRIMS = 200;
const MOST_REMEMBERED = 40;

/**
 * Runs the same random operations on two stores and compares every answer and every row. A failure is trimmed to a
 * short list of operations and thrown with its seed, which replays it.
 */
export async function compareStores(comparison: Comparison): Promise<void> {
  const operations = drawOperations(comparison.seed, comparison.steps);
  const failure = await firstDifference(comparison, operations);
  if (!failure) return;
  const trimmed = await trim(comparison, operations.slice(0, failure.step + 1));
  const last = (await firstDifference(comparison, trimmed)) ?? failure;
  const list = trimmed.map(({ kind, seed }, index) => `  ${index}. ${kind} ${seed}`).join("\n");
  throw new assert.AssertionError({
    message: `seed ${comparison.seed}: the stores differ after\n${list}\n${last.error.message}`,
  });
}

interface Difference {
  readonly step: number;
  readonly error: Error;
}

async function firstDifference(
  { model, subject, seed }: Comparison,
  operations: readonly Operation[],
): Promise<Difference | null> {
  const stores = [await model(), await subject()] as const;
  try {
    const world = createWorld(seed);
    for (const [step, operation] of operations.entries()) {
      try {
        await compareStep(stores, operation, world);
      } catch (error) {
        return { step, error: error as Error };
      }
    }
    return null;
  } finally {
    for (const store of stores) await store.close();
  }
}

function createWorld(seed: number): World {
  const random = seededRandom(seed);
  const fill = (bytes: Uint8Array) => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = random() * 256;
  };
  const world: World = {
    now: START,
    ids: [],
    remembered: [],
    timeoutIds: [],
    owners: [],
    nextId: createIdSource(() => world.now, fill),
  };
  return world;
}

async function compareStep(
  [model, subject]: readonly [Store, Store],
  operation: Operation,
  world: World,
): Promise<void> {
  const ask = prepare(operation, world);
  const expected = await ask(model);
  assert.deepEqual(await ask(subject), expected, `${operation.kind}: another answer`);
  const state = await readAll(model, world);
  assert.deepEqual(await readAll(subject, world), state, `${operation.kind}: another state`);
  remember(world, expected);
  remember(world, state.rows.slice(-3));
}

/** Everything that is visible from outside. */
async function readAll(store: Store, { ids, now }: World) {
  const rows: (JobRow | null)[] = [];
  for (let from = 0; from < ids.length; from += 1_000) {
    rows.push(...(await store.jobs.load(ids.slice(from, from + 1_000))));
  }
  return {
    rows,
    listed: await jobsOf(store, { queue: "a" }),
    depth: await depthOf(store),
    live: (await store.inspect.live()).map((count) => JSON.stringify(count)).sort(),
    newest: (await store.inspect.page({ filter: {}, after: null, newestFirst: true }, 20)).jobs,
    dead: (await store.inspect.page({ filter: { deadLetter: true }, after: null }, 20)).jobs,
    timeouts: await readTimeouts(store, now),
    records: await Promise.all(
      ["kit", "pause", "worker", "saga"].map(async (kind) =>
        (await store.records.list(kind, null, 50)).map(unversioned),
      ),
    ),
    lastRecords: (await store.records.list("kit", null, 3, "desc")).map(unversioned),
    events: await readEvents(store),
    logs: await Promise.all(ids.slice(-3).map((id) => logOf(store, id))),
  };
}

const MOST_LOOKS = 200;

/** Reads again while older transactions of the same database keep committed events from being read. */
async function readEvents(store: Store) {
  for (let looks = 1; ; looks++) {
    const { events, isIncomplete } = await store.inspect.events(null, 1_000);
    if (!isIncomplete || looks === MOST_LOOKS) return events;
  }
}

/** Remembers rows from an answer. The oldest are forgotten. */
function remember(world: World, answer: unknown): void {
  const rows = Array.isArray(answer) ? answer : ((answer as { jobs?: unknown[] } | null)?.jobs ?? []);
  for (const row of rows) if (row && typeof row === "object" && "fence" in row) world.remembered.push(row);
  world.remembered.splice(0, Math.max(0, world.remembered.length - MOST_REMEMBERED));
}

/** Leaves out smaller and smaller parts of the list, while what remains still fails. */
async function trim(comparison: Comparison, failing: readonly Operation[]): Promise<readonly Operation[]> {
  let shortest = failing;
  let trims = 0;
  for (let size = failing.length >> 1; size >= 1; size >>= 1) {
    for (let from = 0; from < shortest.length && trims < MOST_TRIMS; trims++) {
      const shorter = shortest.toSpliced(from, size);
      if (await firstDifference(comparison, shorter)) shortest = shorter;
      else from += size;
    }
  }
  return shortest;
}
