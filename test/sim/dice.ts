import { type Random, seededRandom } from "../../src/core/random.ts";

/** Seeded chance. Each part of a world throws its own, so that a change in one does not reshuffle all others. */
export class Dice {
  readonly random: Random;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  chance(probability: number): boolean {
    return probability > 0 && this.random() < probability;
  }

  int(below: number): number {
    return Math.floor(this.random() * below);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(items.length)] as Item;
  }

  /** A whole number of milliseconds, short ones as likely as long ones: most races live at the short end. */
  between(low: number, high: number): number {
    return Math.round(low * (high / low) ** this.random());
  }
}

/** A seed for one part of a world. */
export function subSeed(seed: number, part: string): number {
  let hash = (seed ^ 0x9e3779b9) >>> 0;
  for (let index = 0; index < part.length; index++)
    hash = Math.imul(hash ^ part.charCodeAt(index), 0x01000193) >>> 0;
  return hash;
}
