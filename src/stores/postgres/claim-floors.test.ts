import { describe, expect, it } from "vitest";
import { type Rank, rankOf } from "../../core/job/job.ts";
import { type Random, randomInt, seededRandom } from "../../core/random.ts";
import { ClaimFloors, type ClaimUnderWay, lowestRanks, type RankRanges } from "./claim-floors.ts";

/** A clock that the test sets. */
function fakeSystem() {
  const system = { time: 0, monotonic: () => system.time };
  return system;
}

function openFloors(system = fakeSystem()): ClaimFloors {
  const floors = new ClaimFloors(system);
  floors.hasHints = true;
  return floors;
}

function covers({ starts, ends }: RankRanges, rank: Rank): boolean {
  return starts.some((start, nth) => rank >= start && rank < (ends[nth] as Rank));
}

/** Claims that took these ranks, one call. */
function claimed(floors: ClaimFloors, ranks: readonly Rank[], from: Rank = 0): void {
  floors.begin("q", from).end(ranks, false);
}

const at = (time: number, priority = 0) => rankOf(priority, time);

describe("floors of claims", () => {
  it("pass by what was claimed, and look at every other priority", () => {
    const floors = openFloors();
    claimed(floors, [at(100), at(200)]);
    const next = floors.begin("q", 0);
    expect(covers(next, at(199))).toBe(false);
    for (const rank of [at(200), at(201), at(1, 10), at(1, -10)]) expect(covers(next, rank)).toBe(true);
    expect(covers(floors.begin("other", 0), at(1))).toBe(true);
  });

  it("are lowered by a hint, also by one that arrives while a claim is under way", () => {
    const floors = openFloors();
    claimed(floors, [at(200)]);
    floors.lower("q", [at(150)]);
    expect(covers(floors.begin("q", 0), at(150))).toBe(true);
    claimed(floors, [at(200)]);
    const underWay = floors.begin("q", 0);
    floors.lower("q", [at(250)]);
    underWay.end([at(300)], true);
    const next = floors.begin("q", 0);
    expect([at(249), at(250)].map((rank) => covers(next, rank))).toEqual([false, true]);
  });

  it("rise to where they were when a claim finds no more than what a hint named", () => {
    const floors = openFloors();
    claimed(floors, [at(200)]);
    floors.lower("q", [at(100)]);
    floors.begin("q", 0).end([at(100)], false);
    expect(covers(floors.begin("q", 0), at(150))).toBe(true);
    floors.begin("q", 0).end([at(100)], true);
    expect(covers(floors.begin("q", 0), at(150))).toBe(false);
  });

  it("do not rise by a claim that began above them", () => {
    const floors = openFloors();
    claimed(floors, [at(100)]);
    claimed(floors, [at(300)], at(200));
    expect(covers(floors.begin("q", 0), at(150))).toBe(true);
  });

  it("are forgotten after a claim that failed, a hint without ranks, and when hints stop", () => {
    const forgets: ((floors: ClaimFloors) => void)[] = [
      (floors) => floors.begin("q", 0).fail(),
      (floors) => floors.lower("q", null),
      (floors) => {
        floors.hasHints = false;
      },
    ];
    for (const forget of forgets) {
      const floors = openFloors();
      claimed(floors, [at(200)]);
      const underWay = floors.begin("q", 0);
      forget(floors);
      underWay.end([at(300)], true);
      expect(covers(floors.begin("q", 0), at(1))).toBe(true);
    }
  });

  it("let a look at all ranks take a twentieth of the time", () => {
    const system = fakeSystem();
    const floors = openFloors(system);
    claimed(floors, [at(200)]);
    expect(floors.look("q").isFull).toBe(true);
    floors.looked(["q"], 100);
    system.time = 1_999;
    expect(floors.look("q").isFull).toBe(false);
    system.time = 2_000;
    expect(floors.look("q").isFull).toBe(true);
    expect(floors.wantsLook("q")).toBe(false);
    system.time = 3_000;
    expect([floors.wantsLook("q"), floors.wantsLook("q")]).toEqual([true, false]);
  });

  it("keep the lowest rank of each priority for a hint", () => {
    expect(lowestRanks([at(5), at(9, 1)], [at(3), at(10, 1)])).toEqual([at(3), at(9, 1)]);
    expect(lowestRanks([at(5)], null)).toBe(null);
  });
});

/** Two processes claim from one table. Jobs come back with old ranks, and hints take their time. */
class World {
  readonly random: Random;
  readonly system = fakeSystem();
  readonly processes = [openFloors(this.system), openFloors(this.system)];
  readonly available = new Set<Rank>();
  readonly active: Rank[] = [];
  readonly underWay: { claim: ClaimUnderWay; taken: Rank[]; isAll: boolean }[] = [];
  readonly hints: { to: ClaimFloors; rank: Rank }[] = [];
  #time = 1_000;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[randomInt(this.random, items.length)] as Item;
  }

  #take<Item>(items: Item[]): Item | undefined {
    return items.splice(randomInt(this.random, items.length), 1)[0];
  }

  /** A commit makes a job available. Its rank may be older than its commit. */
  #add(rank: Rank): void {
    this.available.add(rank);
    for (const to of this.processes) this.hints.push({ to, rank });
  }

  claim(floors: ClaimFloors, limit: number): Rank[] {
    const claim = floors.begin("q", 0);
    const seen = [...this.available].sort((a, b) => a - b).filter((rank) => covers(claim, rank));
    const taken = seen.slice(0, limit);
    for (const rank of taken) this.available.delete(rank);
    this.underWay.push({ claim, taken, isAll: taken.length > 0 && taken.length < limit });
    return taken;
  }

  end(): void {
    const ended = this.#take(this.underWay);
    if (!ended) return;
    ended.claim.end(ended.taken, ended.isAll);
    this.active.push(...ended.taken);
  }

  hear(): void {
    const hint = this.#take(this.hints);
    hint?.to.lower("q", [hint.rank]);
  }

  step(): void {
    this.#time += randomInt(this.random, 10);
    const acts = [
      () => this.#add(rankOf(this.#pick([0, 0, 0, 5]), this.#time - randomInt(this.random, 200))),
      () => this.claim(this.#pick(this.processes), 1 + randomInt(this.random, 4)),
      () => this.end(),
      () => this.hear(),
      () => {
        const released = this.#take(this.active);
        if (released !== undefined) this.#add(released);
      },
    ];
    this.#pick(acts)();
  }
}

describe("floors of claims, drawn from seeds", () => {
  it("never hide an available job from a process that heard of all jobs", () => {
    let hidden = 0;
    for (let seed = 1; seed <= 500; seed++) {
      const world = new World(seed);
      for (let step = 0; step < 120; step++) world.step();
      while (world.underWay.length > 0) world.end();
      // Between the commit and its hint, a floor may hide a job. After it, never.
      const everywhere = world.processes.map((floors) => floors.begin("q", 0));
      hidden += [...world.available].filter(
        (rank) => !everywhere.every((claim) => covers(claim, rank)),
      ).length;
      while (world.hints.length > 0) world.hear();
      const claims = world.processes.map((floors) => floors.begin("q", 0));
      for (const rank of world.available)
        for (const claim of claims) expect(covers(claim, rank), `seed ${seed}`).toBe(true);
    }
    expect(hidden).toBeGreaterThan(0);
  });
});
