import { z } from "zod";
import type { SagaContext } from "../../../src/core/saga/saga.ts";
import { defineSaga } from "../../../src/core/saga/saga-definition.ts";
import type { Duration } from "../../../src/core/time.ts";
import { HOSTILE_THROWS } from "../../hostile-values.ts";
import type { Dice } from "../dice.ts";
import type { Machine } from "../machine.ts";

/** What the handler of one event shall do. Each event has a number of its own, by which the checker knows it. */
export interface Script {
  readonly n: number;
  readonly requests: readonly {
    readonly key: string | null;
    readonly after: number;
    readonly script: Script;
  }[];
  readonly revokes: readonly string[];
  readonly completes: boolean;
  /** It takes the saga back. */
  readonly compensates: boolean;
  /** How many of its first tries fail, and how many take too long. */
  readonly fails: number;
  readonly hangs: number;
}

export interface SimState {
  readonly id: string;
  /** The numbers of all events that were handled, in their order. */
  readonly history: readonly number[];
}

/** Who watches handlers. */
export interface HandlerWatch {
  /** Notes an entry, and returns how many there were for this event before. */
  entered(by: Machine, n: number, eventId: string): number;
}

export const KEYS = ["a", "b"] as const;
const ATTEMPT = 2_000;

/** Whether the step of this number registers an undo. */
export const undoes = (n: number) => n % 3 === 0;
/** The number under which the undo of a step is known. */
export const undoNumber = (n: number) => -n - 1;

/** How many of the first tries of an undo fail. */
const undoFails = (n: number) => (n % 33 === 0 ? 12 : n % 21 === 0 ? 2 : 0);

const Scripted = z.custom<Script>();

/** An error, or for some scripts a value that throws when it is read. */
function thrownBy({ n }: Script): unknown {
  const hostile = HOSTILE_THROWS[n % (3 * HOSTILE_THROWS.length)];
  return hostile ? hostile[1]() : new Error(`fails as told: ${n}`);
}

/** The saga of one process: its handlers do what the script of their event says. */
export function simSaga(
  machine: Machine,
  watch: HandlerWatch,
  retention: Duration,
  onFailure: "keep" | "compensate",
) {
  const run = async (state: SimState, script: Script, saga: SagaContext): Promise<SimState> => {
    const before = watch.entered(machine, script.n, saga.eventId);
    const { isCompensating } = saga;
    for (const { key, after, script: next } of isCompensating ? [] : script.requests)
      saga.request("rung", `${after}ms`, { script: next }, key === null ? {} : { key });
    for (const key of script.revokes) saga.revoke(key);
    await machine.sleep(1 + (script.n % 7) * 3);
    if (before < script.hangs) await machine.sleep(ATTEMPT * 2);
    if (before < script.hangs + script.fails) throw thrownBy(script);
    if (undoes(script.n)) saga.undo("back", { n: script.n });
    const next = { ...state, history: [...state.history, script.n] };
    if (script.compensates) return saga.compensate(next);
    return script.completes && !isCompensating ? saga.complete(next) : next;
  };
  const back = async (
    state: SimState,
    { n }: { readonly n: number },
    saga: SagaContext,
  ): Promise<SimState> => {
    const before = watch.entered(machine, undoNumber(n), saga.eventId);
    await machine.sleep(1 + (n % 5) * 3);
    if (before < undoFails(n)) throw new Error(`the undo of ${n} fails as told`);
    return { ...state, history: [...state.history, undoNumber(n)] };
  };
  return defineSaga({
    type: "sim",
    state: z.custom<SimState>(),
    messages: { act: z.object({ id: z.string(), script: Scripted }) },
    timeouts: { rung: z.object({ script: Scripted }) },
    undos: { back: z.object({ n: z.int() }) },
    onUndo: { back: (state, undo, saga) => back(state, undo, saga as unknown as SagaContext) },
    onFailure,
    correlate: { act: ({ id }) => id },
    startedBy: "act",
    start: ({ id, script }, saga) => run({ id, history: [] }, script, saga as unknown as SagaContext),
    on: { act: (state, { script }, saga) => run(state, script, saga as unknown as SagaContext) },
    onTimeout: { rung: (state, { script }, saga) => run(state, script, saga as unknown as SagaContext) },
    identify: ({ id }) => id,
    attempt: `${ATTEMPT}ms`,
    retention,
  });
}

export type SimSaga = ReturnType<typeof simSaga>;

/** Draws scripts; numbers are never used twice. */
export class Scripts {
  readonly #dice: Dice;
  #next = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  draw(depth = 0): Script {
    const dice = this.#dice;
    const requests = depth > 2 ? 0 : dice.pick([0, 0, 1, 1, 2, 3]);
    return {
      n: this.#next++,
      requests: Array.from({ length: requests }, () => ({
        key: dice.chance(0.6) ? dice.pick(KEYS) : null,
        after: dice.chance(0.1) ? 0 : dice.between(5, 20_000),
        script: this.draw(depth + 1),
      })),
      revokes: KEYS.filter(() => dice.chance(0.3)),
      completes: dice.chance(0.1),
      compensates: dice.chance(0.06),
      fails: dice.chance(0.1) ? dice.pick([1, 1, 2, 12]) : 0,
      hangs: dice.chance(0.03) ? 1 : 0,
    };
  }
}
