import { Engine } from "../../../src/engine/engine.ts";
import {
  type AttemptContext,
  defineJob,
  type Processor,
  processor,
  type WorkOptions,
} from "../../../src/index.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import type { Store } from "../../../src/ports/store.ts";
import { createSimSystem, type SimSystem } from "../../../src/testing/index.ts";

/** The virtual time at which every situation begins. */
const START = Date.UTC(2030, 0, 1);
/** Virtual time moves in steps of this many milliseconds, and waits for the store after each. */
const STEP = 100;

type Call = "commit" | `${"jobs" | "records" | "inspect" | "timeouts"}.${string}`;

/** A process of its own on the shared store. */
export interface Process {
  readonly engine: Engine;
  /** It is gone as with SIGKILL: nothing that it asks of the store is done or answered any more. */
  kill(): void;
  /** From now on this call never answers. */
  hang(call: Call): void;
  /** From now on this call fails. */
  fail(call: Call): void;
  work(
    processors: readonly Processor[],
    options?: Omit<WorkOptions, "processors">,
  ): ReturnType<Engine["work"]>;
}

/**
 * Engines under virtual time on any store. A real store answers in real time: before virtual time moves on, every call
 * that is under way has its answer. The store gives no hints, so that processes hear of each other by asking alone.
 */
export class Rig {
  readonly system: SimSystem;
  readonly #store: Store;
  readonly #processes: Process[] = [];
  #underWay = 0;
  /** Called when no call is under way any more. */
  readonly #waiting: (() => void)[] = [];

  constructor(store: Store) {
    this.system = createSimSystem({ seed: 1, startAt: START });
    this.#store = store;
  }

  async open(hangs: readonly Call[] = []): Promise<Process> {
    const state = { isKilled: false, hangs: new Set<string>(hangs), fails: new Set<string>() };
    const opening = Engine.open({ store: this.#wrap(state), system: this.system, logger: silentLogger });
    await this.#idle();
    const engine = await opening;
    const process: Process = {
      engine,
      kill: () => {
        state.isKilled = true;
      },
      hang: (call) => void state.hangs.add(call),
      fail: (call) => void state.fails.add(call),
      work: (processors, options) => engine.work({ processors, ...options }),
    };
    this.#processes.push(process);
    return process;
  }

  now(): number {
    return Math.floor(START + this.system.monotonic());
  }

  /** Lets everything happen that needs no virtual time. */
  settle(): Promise<void> {
    return this.#idle();
  }

  async advance(delay: number): Promise<void> {
    await this.#idle();
    for (let left = delay; left > 0; left -= STEP) {
      await this.system.advance(Math.min(STEP, left));
      await this.#idle();
    }
  }

  /** Waits for something that needs the store, and no virtual time. */
  async of<Value>(promise: Promise<Value>): Promise<Value> {
    promise.catch(() => {});
    await this.#idle();
    return promise;
  }

  /** Asks in a process of its own, which has nothing but the rows to go by and does not sweep. */
  async ask<Answer>(question: (engine: Engine) => Promise<Answer>): Promise<Answer> {
    const { engine } = await this.open(["jobs.sweep"]);
    return this.of(question(engine));
  }

  async close(): Promise<void> {
    let isClosed = false;
    const closing = Promise.all(this.#processes.map(({ engine }) => engine.close({ drain: "0s" }))).then(
      () => {
        isClosed = true;
      },
    );
    for (let seconds = 0; seconds < 40 && !isClosed; seconds++) await this.advance(1_000);
    await closing;
  }

  /** No call is under way, and stays so for a few turns of the real event loop. */
  async #idle(): Promise<void> {
    for (let quiet = 0; quiet < 3; ) {
      await this.system.settle();
      quiet = this.#underWay === 0 ? quiet + 1 : 0;
      if (this.#underWay > 0) await new Promise<void>((answered) => this.#waiting.push(answered));
    }
  }

  #wrap(state: { isKilled: boolean; hangs: Set<string>; fails: Set<string> }): Store {
    const through =
      (name: string, run: (...args: never[]) => unknown) =>
      async (...args: never[]) => {
        if (state.isKilled || state.hangs.has(name)) return new Promise(() => {});
        if (state.fails.has(name)) throw new Error(`${name} fails`);
        this.#underWay += 1;
        try {
          return await run(...args);
        } finally {
          this.#underWay -= 1;
          if (this.#underWay === 0) for (const answered of this.#waiting.splice(0)) answered();
        }
      };
    const part = <Part extends object>(name: string, methods: Part): Part =>
      Object.fromEntries(
        Object.entries(methods).map(([key, run]) => [
          key,
          typeof run === "function" ? through(`${name}.${key}`, run) : run,
        ]),
      ) as Part;
    const { jobs, records, timeouts, inspect, commit, look } = this.#store;
    return {
      capabilities: this.#store.capabilities,
      jobs: part("jobs", jobs),
      records: part("records", records),
      timeouts: part("timeouts", timeouts),
      inspect: part("inspect", inspect),
      commit: through("commit", commit as never) as Store["commit"],
      clock: async () => this.now(),
      look: through("look", look.bind(this.#store) as never) as Store["look"],
      listen: async () => ({ [Symbol.asyncDispose]: async () => {} }),
      close: async () => {},
    };
  }
}

type Definition = Parameters<typeof defineJob>[0];

/** A definition, and a processor that runs it so. */
export function job(
  run: (context: AttemptContext) => unknown,
  options: Omit<Definition, "type"> & { readonly type?: string } = {},
) {
  const definition = defineJob({ type: "mail.send", ...options });
  return { definition, processor: processor(definition, run as never) };
}

/** A handler that hears nothing and never ends. */
export const deaf = (): Promise<never> => new Promise<never>(() => {});

/** A handler that ends when its signal aborts. */
export const obedient = ({ signal }: AttemptContext): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
