import type { Engine } from "../../src/engine/engine.ts";
import { Dice, subSeed } from "./dice.ts";
import { Machine } from "./machine.ts";
import { type FaultRates, Network } from "./network.ts";
import type { World } from "./world.ts";

/** Where a process runs; when its machine dies, another one is started there. */
export interface Place {
  readonly name: string;
  starts: number;
  machine: Machine;
  engine: Engine | undefined;
}

/** For worlds that are short. */
export const ROUGH: FaultRates = { drop: 0.02, loseReply: 0.02, slow: 0.02, crash: 0.003, loseHint: 0.2 };
/** For worlds in which one thing leads to the next, so that most of them still come to their end. */
export const MILD: FaultRates = { drop: 0.01, loseReply: 0.01, slow: 0.01, crash: 0.002, loseHint: 0.1 };

/** A network that is troubled in most worlds, and up to three times as much as `worst` says. */
export function troubledNetwork({ seed, dice, scheduler, trace }: World, worst: FaultRates) {
  const trouble = dice.chance(0.2) ? 0 : dice.pick([0.5, 1, 3]);
  const rate = (most: number) => most * trouble * dice.random();
  const network = new Network({
    rates: {
      drop: rate(worst.drop),
      loseReply: rate(worst.loseReply),
      slow: rate(worst.slow),
      crash: rate(worst.crash),
      loseHint: rate(worst.loseHint),
    },
    scheduler,
    dice: new Dice(subSeed(seed, "network")),
    trace,
    observer: { heard: () => {} },
  });
  return { network, isTroubled: trouble > 0 };
}

interface FleetOptions extends World {
  /** The longest that a place stays empty after a death. */
  readonly downFor: readonly [least: number, most: number];
  /** Starts the process of a place. */
  readonly open: (place: Place, machine: Machine) => Promise<void>;
}

/** Starts one to three places, and each again whenever it died. */
export function startFleet(options: FleetOptions): Place[] {
  return Array.from({ length: 1 + options.dice.int(3) }, (_, nth) => {
    const place = { name: `p${nth}`, starts: 0 } as Place;
    boot(place, options);
    return place;
  });
}

function boot(place: Place, options: FleetOptions): void {
  const { seed, dice, scheduler, trace, downFor, open } = options;
  const name = `${place.name}.${place.starts}`;
  const machine = new Machine({ name, seed: subSeed(seed, name), scheduler, trace, rate: 1 });
  place.starts += 1;
  place.machine = machine;
  place.engine = undefined;
  machine.onDeath = () => {
    if (place.machine !== machine) return;
    place.engine = undefined;
    scheduler.after(dice.between(...downFor), null, () => boot(place, options));
  };
  scheduler.after(1, machine, () => void open(place, machine));
}

/** Runs something this many times, each at a random place and a random moment of the span. */
export function scatter(
  { dice, scheduler }: World,
  places: readonly Place[],
  span: number,
  times: number,
  run: (place: Place) => void,
): void {
  for (let nth = 0; nth < times; nth++) {
    const place = dice.pick(places);
    scheduler.after(dice.random() * span, null, () => run(place));
  }
}

/** Kills, stops, suspends and replaces processes. */
export function scatterFaults(
  world: World,
  places: readonly Place[],
  { span, crashes }: { readonly span: number; readonly crashes: number },
): void {
  const { dice } = world;
  const repeat = (times: number, run: (place: Place) => void) => scatter(world, places, span, times, run);
  repeat(dice.int(crashes), ({ machine }) => machine.crash("kill -9"));
  repeat(dice.int(4), ({ machine }) => machine.pause(dice.between(200, 25_000), "SIGSTOP"));
  repeat(dice.int(2), ({ machine }) => machine.suspend(dice.between(300, 25_000)));
  repeat(dice.int(2), (place) => void redeploy(world, place));
}

async function redeploy({ dice }: World, { engine, machine }: Place): Promise<void> {
  if (!engine || machine.isDead) return;
  await engine.close({ drain: `${dice.int(4) * 500}ms` });
  if (!machine.isDead) machine.crash("is replaced");
}
