/** What the tests of the engine share: an engine under virtual time, whose events are kept, and handlers that wait. */

import { onTestFinished } from "vitest";
import type { JobRow } from "../../src/core/job/job.ts";
import { Engine } from "../../src/engine/engine.ts";
import {
  type AttemptContext,
  type CounterSnapshot,
  defineJob,
  type EngineEvent,
  type JobHandle,
  type PolicyOptions,
  type Processor,
  processor,
  type WorkOptions,
} from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import {
  createSimSystem,
  openTestEngine,
  type SimSystem,
  type TestEngine,
  type TestEngineOptions,
} from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";

/** The virtual time at which every test begins. */
export const START = Date.UTC(2030, 0, 1);

export interface Stage extends Omit<TestEngine, "sleep"> {
  readonly events: EngineEvent[];
  /** The names of the events of a job, in their order; of all jobs if none is named. */
  names(id?: string): string[];
  /** The last event of that name. */
  told<Name extends EngineEvent["name"]>(name: Name): Extract<EngineEvent, { name: Name }> | undefined;
  load(job: { readonly id: string }): Promise<JobRow>;
  counters(): CounterSnapshot;
  work(processors: readonly Processor[], options?: Omit<WorkOptions, "processors">): WorkerOf;
  sleep(delay: number): Promise<void>;
}

type WorkerOf = ReturnType<TestEngine["engine"]["work"]>;

/** Opens an engine that is closed after the test. */
export async function openStage(options: TestEngineOptions = {}): Promise<Stage> {
  const test = await openTestEngine(options);
  return stageOf(test);
}

function stageOf(test: TestEngine): Stage {
  const { engine, system } = test;
  const events: EngineEvent[] = [];
  const stop = new AbortController();
  void (async () => {
    for await (const event of engine.events(stop.signal)) events.push(event);
  })();
  onTestFinished(async () => {
    await test.close();
    stop.abort();
  });
  return {
    ...test,
    events,
    names: (id) => events.filter((event) => id === undefined || idOf(event) === id).map(({ name }) => name),
    told: (name) => events.findLast((event) => event.name === name) as never,
    load: async ({ id }) => {
      const row = await rowOf(engine.store, id);
      if (!row) throw new Error(`there is no job ${id}`);
      return row;
    },
    counters: () => engine.counters(),
    work: (processors, more) => engine.work({ processors, ...more }),
    sleep: (delay) => sleepOn(system, delay),
  };
}

function idOf(event: EngineEvent): string | undefined {
  return "id" in event ? event.id : undefined;
}

export function sleepOn(system: SimSystem, delay: number): Promise<void> {
  return new Promise((resolve) => void system.after(delay, resolve));
}

/** A processor of a type of its own with these settings. */
export function jobOf(settings: PolicyOptions = {}, type = "test.job") {
  return defineJob({ type, ...settings });
}

type Run = (context: AttemptContext) => unknown;

/** A definition and the processor that runs it. */
export function jobWith(run: Run, settings: PolicyOptions = {}, type = "test.job") {
  const definition = jobOf(settings, type);
  return { definition, processors: [processor(definition, run as never)] };
}

/** A stage on which a worker runs one job with this handler. */
export async function openWithJob(run: Run, settings: PolicyOptions = {}) {
  const stage = await openStage();
  const { definition, processors } = jobWith(run, settings);
  stage.work(processors);
  return { stage, job: await stage.engine.enqueue(definition) };
}

/** A handler that hears nothing and never ends. */
export const deaf = (): Promise<never> => new Promise<never>(() => {});

/** A handler that never ends, and calls back when its signal aborts. */
export function deafWith(onAbort: () => void): Run {
  return ({ signal }) => {
    signal.addEventListener("abort", onAbort);
    return deaf();
  };
}

/** A handler that ends as soon as it is told to. */
export const obedient = ({ signal }: AttemptContext): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

/** The same store for a second engine, whose close leaves it open for the first. */
export function shared(store: Store): Store {
  return { ...store, close: async () => {} };
}

/** A store that tells nobody anything: every engine on it must find out by asking. */
export function silent(store: Store): Store {
  return { ...store, listen: async () => ({ [Symbol.asyncDispose]: async () => {} }) };
}

/** An engine over a store that is wrapped, on one clock with it. */
export async function openOver(
  wrap: (store: Store) => Store,
  options: TestEngineOptions = {},
): Promise<Stage> {
  return openStage({ ...options, store: (clock) => wrap(createMemoryStore({ clock })) });
}

/** A store that takes this long to commit the next starts of attempts, one delay after the other. */
export function slowStarts(store: Store, delays: number[], sleep: (delay: number) => Promise<void>): Store {
  return {
    ...store,
    async commit(units, options) {
      // An extension of a running job writes its options as well.
      const isStart = units.some(
        ({ job }) =>
          job?.image?.state === "active" && job.image.startedAt !== null && !job.documents?.options,
      );
      const delay = isStart ? delays.shift() : undefined;
      if (delay !== undefined) await sleep(delay);
      return store.commit(units, options);
    },
  };
}

/** A memory store on the clock of this machine, for wrapping. */
export function storeOn(system: SimSystem): Store {
  return createMemoryStore({ clock: () => Math.floor(START + system.monotonic()) });
}

/** An engine whose store takes this long to say what time it is, so that it knows the time no better than that. */
export async function openUnsure(delay: number): Promise<{ engine: Engine; system: SimSystem }> {
  const system = createSimSystem({ seed: 5, startAt: START });
  const store = storeOn(system);
  const clock = () => sleepOn(system, delay).then(() => store.clock());
  const opening = Engine.open({ system, store: { ...store, clock }, logger: silentLogger });
  await system.advance(10 * delay);
  const engine = await opening;
  onTestFinished(async () => {
    const closing = engine.close({ drain: "0s" });
    await system.advance(10_000);
    await closing;
  });
  return { engine, system };
}

/** Two machines whose time runs side by side, on one store that keeps the time of the first. */
export interface Pair {
  readonly first: Stage;
  readonly second: Stage;
  /** Lets so much time pass on both, a step at a time. */
  advance(delay: number, step?: number): Promise<void>;
  /** The second stands still while the first goes on; afterwards the second wakes up. */
  pauseSecond(delay: number): Promise<void>;
  /** The second is gone: it neither runs nor hears any more. */
  crashSecond(): void;
}

export async function openPair(wrap: (store: Store) => Store = (store) => store): Promise<Pair> {
  const clock = createSimSystem({ seed: 7, startAt: START });
  const store = wrap(createMemoryStore({ clock: () => Math.floor(START + clock.monotonic()) }));
  const first = await openStage({ store: shared(store) });
  const hears = { second: true };
  const listen: Store["listen"] = (onHint) => store.listen((hint) => void (hears.second && onHint(hint)));
  const second = await openStage({ store: shared({ ...store, listen }), seed: 2 });
  const pass = async (delay: number) => {
    clock.pause(delay);
    await first.system.advance(delay);
  };
  return {
    first,
    second,
    async advance(delay, step = 50) {
      for (let passed = 0; passed < delay; passed += step) {
        const rest = Math.min(step, delay - passed);
        await pass(rest);
        if (hears.second) await second.system.advance(rest);
      }
    },
    crashSecond: () => {
      hears.second = false;
    },
    async pauseSecond(delay) {
      hears.second = false;
      for (let passed = 0; passed < delay; passed += 100) await pass(Math.min(100, delay - passed));
      hears.second = true;
      second.system.pause(delay);
      await second.system.advance(0);
      await first.settle();
    },
  };
}

/** A job whose claim expired: the second engine claimed it and died before the start was committed. */
export async function jobWithExpiredClaim(
  pair: Pair,
  settings: PolicyOptions = {},
): Promise<{ readonly id: string }> {
  const { definition, processors } = jobWith(deaf, settings);
  pair.second.work(processors);
  const job = await pair.second.engine.enqueue(definition);
  await pair.advance(100);
  pair.crashSecond();
  await pair.advance(12_000);
  return job;
}

/** The error that a promise rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  const error = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  if (!(error instanceof Error)) throw new Error("it did not reject");
  return error as Error & Record<string, unknown>;
}

export type Handle = JobHandle<unknown>;
