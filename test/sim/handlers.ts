import { Discard, type Snooze, snooze } from "../../src/core/job/reasons.ts";
import type { Json } from "../../src/core/schema.ts";
import type { Duration } from "../../src/core/time.ts";
import { isInstance } from "../../src/core/user-values.ts";
import { type AttemptContext, type Processor, processor } from "../../src/engine/attempt/processor.ts";
import { HOSTILE_RETURNS, HOSTILE_THROWS } from "../hostile-values.ts";
import type { Checker } from "./checker.ts";
import type { Dice } from "./dice.ts";
import type { Run } from "./ledger.ts";
import type { Machine } from "./machine.ts";
import type { SimJobType, SimPayload } from "./plan.ts";
import { short, type Trace } from "./trace.ts";

export interface HandlerWorld {
  readonly machine: Machine;
  readonly checker: Checker;
  readonly dice: Dice;
  /** For values that throw when they are read. Its own dice, so that a seed means otherwise what it did. */
  readonly hostileDice: Dice;
  readonly trace: Trace;
  /** Enqueues a child through the context of a running job. */
  enqueueChild(context: AttemptContext): Promise<void>;
}

type Answer = Json | undefined | Snooze;
type Behaviour = (context: AttemptContext, run: Run, world: HandlerWorld) => Answer | Promise<Answer>;

class Boom extends Error {
  override readonly name = "Boom";
}

/** Makes the handler return the value, which the engine cannot store: the attempt fails as if it had thrown. */
class Returned {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/** What a failing handler throws: an error of its own, or a value that throws when it is read. */
function thrown({ hostileDice }: HandlerWorld, error: Error): unknown {
  if (!hostileDice.chance(0.3)) return error;
  if (hostileDice.chance(0.7)) return hostileDice.pick(HOSTILE_THROWS)[1]();
  return new Returned(hostileDice.pick(HOSTILE_RETURNS)[1]());
}

/** A new promise each time: all who wait for one that never settles are kept in memory with it. */
function never(): Promise<never> {
  return new Promise(() => {});
}
const LONGEST_RUN = 40_000;

/** Sleeps in steps and gives signs of life, the way a handler with a heartbeat does. */
async function workOn(context: AttemptContext, run: Run, world: HandlerWorld, length: number): Promise<void> {
  const step = world.dice.between(50, 2_000);
  for (let left = length; left > 0; left -= step) {
    await world.machine.sleep(Math.min(step, left));
    world.checker.beat(run);
    if (world.dice.chance(0.5)) context.beat();
    else context.progress(1 - left / length, { left });
  }
}

function untilSignal(context: AttemptContext, world: HandlerWorld): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (context.signal.aborted) resolve();
    else context.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  // Not all jobs have a deadline, and a world in which one hangs for ever would never settle.
  return Promise.race([aborted, world.machine.sleep(LONGEST_RUN)]);
}

const BEHAVIOURS: readonly (readonly [weight: number, name: string, run: Behaviour])[] = [
  [6, "returns at once", ({ id }) => ({ id })],
  [
    8,
    "returns soon",
    async (_context, _run, { machine, dice }) => {
      await machine.sleep(dice.between(1, 300));
      return "done";
    },
  ],
  [
    4,
    "works and beats",
    async (context, run, world) => {
      await workOn(context, run, world, world.dice.between(100, 15_000));
      return { worked: true };
    },
  ],
  [
    2,
    "goes quiet",
    async (context, _run, { machine, dice }) => {
      context.beat();
      await machine.sleep(dice.between(500, 20_000));
      return "quiet";
    },
  ],
  [
    2,
    "throws at once",
    (_context, _run, world) => {
      throw thrown(world, new Boom("at once"));
    },
  ],
  [
    3,
    "throws later",
    async (_context, _run, world) => {
      const { machine, dice } = world;
      await machine.sleep(dice.between(1, 3_000));
      throw thrown(world, dice.chance(0.5) ? new Boom("later") : new DOMException("its own", "AbortError"));
    },
  ],
  [2, "snoozes", (_context, _run, { dice }) => snooze({ after: `${dice.between(1, 5_000)}ms` as Duration })],
  [
    1,
    "discards",
    async (_context, _run, { machine, dice }) => {
      await machine.sleep(dice.between(1, 100));
      throw new Discard("enough");
    },
  ],
  [
    4,
    "waits for the signal",
    async (context, _run, world) => {
      await untilSignal(context, world);
      if (world.dice.chance(0.3)) await world.machine.sleep(world.dice.between(1, 2_000));
      if (world.dice.chance(0.3)) return "after all";
      throw thrown(world, context.signal.reason ?? new Boom("nobody stopped it"));
    },
  ],
  [
    3,
    "ignores the signal",
    async (_context, _run, { machine, dice }) => {
      await machine.sleep(dice.between(1_000, LONGEST_RUN));
      return "late";
    },
  ],
  [
    3,
    "saves its way",
    async (context, run, { machine, checker, dice }) => {
      for (let step = 0; step < 3; step++) {
        context.log(`step ${step}`, { step });
        checker.beat(run);
        await context.checkpoint({ step, before: context.lastCheckpoint ?? null });
        await machine.sleep(dice.between(1, 1_000));
        checker.beat(run);
        context.progress(step / 3);
      }
      return context.lastCheckpoint ?? null;
    },
  ],
  [
    2,
    "enqueues children",
    async (context, _run, world) => {
      await world.enqueueChild(context);
      await world.machine.sleep(world.dice.between(1, 500));
      return "parent";
    },
  ],
  [
    1,
    "blocks its process",
    async (_context, _run, { machine, dice }) => {
      machine.pause(dice.between(100, 8_000), "a handler blocks the event loop");
      await machine.sleep(1);
      return "blocked";
    },
  ],
];

const WEIGHT = BEHAVIOURS.reduce((sum, [weight]) => sum + weight, 0);

function drawBehaviour(dice: Dice): { name: string; run: Behaviour } {
  let draw = dice.random() * WEIGHT;
  for (const [weight, name, run] of BEHAVIOURS) {
    draw -= weight;
    if (draw < 0) return { name, run };
  }
  return { name: "returns nothing", run: () => undefined };
}

function killerOf(kills: "at once" | "soon"): { name: string; run: Behaviour } {
  return {
    name: `kills its process ${kills}`,
    run: async (_context, _run, { machine, dice }) => {
      if (kills === "soon") await machine.sleep(dice.between(1, 3_000));
      machine.crash("a handler took it down");
      return never();
    },
  };
}

/** A handler that behaves differently each time, and tells the checker what it sees. */
export function simProcessor({ definition }: SimJobType, world: HandlerWorld): Processor {
  return processor(definition, (context) => enter(context, world));
}

function enter(context: AttemptContext, world: HandlerWorld): Answer | Promise<Answer> {
  const { machine, checker, dice, trace } = world;
  // A process that has just died runs to its next await here, which a real one would not.
  if (machine.isDead) return never();
  const { kills } = context.payload as SimPayload;
  const { name, run: behave } = kills ? killerOf(kills) : drawBehaviour(dice);
  const isListening = name === "waits for the signal" || dice.chance(0.7);
  const { id, attempt, deadline } = context;
  trace.add(machine.name, `${short(id)} enters attempt ${attempt}: ${name}`);
  const run = checker.entered(machine, { id, attempt, deadline, isListening });
  if (!run) return undefined;
  if (isListening) {
    context.signal.addEventListener(
      "abort",
      () => !machine.isDead && checker.signalled(run, context.signal.reason),
    );
    context.onCleanup(() => {
      if (!machine.isDead) checker.cleanedUp(run);
      if (dice.chance(0.1)) throw thrown(world, new Boom("in a cleanup hook"));
    });
  }
  return observe(world, run, () => behave(context, run, world));
}

/** Stays synchronous where the handler is: the engine treats the two differently. */
function observe(
  { machine, checker, trace }: HandlerWorld,
  run: Run,
  behave: () => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  const end = (hasReturned: boolean) => {
    if (machine.isDead) return;
    trace.add(machine.name, `${short(run.job.id)} ${hasReturned ? "returns" : "throws"}`);
    checker.ended(run, hasReturned);
  };
  const fail = (error: unknown): Answer => {
    end(false);
    if (isInstance(error, Returned)) return error.value as Answer;
    throw error;
  };
  try {
    const answer = behave();
    if (!(answer instanceof Promise)) {
      end(true);
      return answer;
    }
    return answer.then(
      (value) => {
        end(true);
        return value;
      },
      (error) => fail(error),
    );
  } catch (error) {
    return fail(error);
  }
}
