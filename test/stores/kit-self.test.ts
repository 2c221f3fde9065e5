import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import {
  CONFORMANCE,
  type ConformanceCase,
  compareStores,
  runCase,
  storeConformance,
  timeoutConformance,
} from "../../src/testing/index.ts";
import { BROKEN_STORES, breakStore } from "./kit-self-broken.ts";
import { BROKEN_EVENT_STORES } from "./kit-self-broken-events.ts";
import { BROKEN_TIMEOUT_STORES } from "./kit-self-broken-timeouts.ts";
import { BROKEN_LINES, BROKEN_WALKS } from "./kit-self-broken-walks.ts";

const BROKEN = {
  ...BROKEN_STORES,
  ...BROKEN_TIMEOUT_STORES,
  ...BROKEN_WALKS,
  ...BROKEN_LINES,
  ...BROKEN_EVENT_STORES,
};

const openMemory = async () => createMemoryStore({ clock: () => Date.now() });

function casesFrom(section: string, words: string): ConformanceCase[] {
  const cases = CONFORMANCE.find(({ name }) => name === section)?.cases ?? [];
  return cases.filter(({ name }) => name.includes(words));
}

/** A kit that accepts everything would pass every store: each of these must be found out by the case meant for it. */
describe("the kit finds", () => {
  describe.each(Object.entries(BROKEN))("a store that %s", (_flaw, broken) => {
    it.each(broken.foundBy)("in %s: %s", async (section, words) => {
      const cases = casesFrom(section, words);
      expect(cases).not.toEqual([]);
      for (const each of cases) {
        const open = async () => ({ store: breakStore(await openMemory(), broken) });
        await expect(runCase(each, open), each.name).rejects.toThrow();
      }
    });
  });
});

describe("the kit", () => {
  it("says what it skips and why", async () => {
    const runs: Promise<void>[] = [];
    const lines: string[] = [];
    storeConformance({
      name: "quiet",
      async open() {
        const store = await openMemory();
        return { store: { ...store, capabilities: { ...store.capabilities, hints: "poll" } } };
      },
      runner: {
        describe: (_name, run) => run(),
        it: (name, run) => {
          if (name.includes("listening")) runs.push(run());
        },
      },
      print: (line) => lines.push(line),
    });
    await Promise.all(runs);
    expect(lines).toEqual([
      expect.stringMatching(/^skipped: hints > a caller that stopped listening .*: the store gives no hints/),
    ]);
  });
});

describe("the kit for timeouts alone", () => {
  it("runs on a store that serves nothing else, and says what it skips where there are no leases", async () => {
    const runs: Promise<void>[] = [];
    const lines: string[] = [];
    timeoutConformance({
      name: "lone",
      async open() {
        const store = await openMemory();
        const timeouts = { ...store.timeouts, leases: false };
        return { timeouts, clock: () => store.clock(), close: () => store.close() };
      },
      runner: {
        describe: (_name, run) => run(),
        it: (name, run) => {
          if (/^(insert|extend)/.test(name)) runs.push(run());
        },
      },
      print: (line) => lines.push(line),
    });
    await Promise.all(runs);
    expect(runs.length).toBe(7);
    expect(lines).toEqual([
      expect.stringMatching(/^skipped: timeouts: leases > extend: a caller .*: the store has no leases/),
      expect.stringMatching(/^skipped: timeouts: leases > extend: the lease .*: the store has no leases/),
    ]);
  });
});

describe("the comparison", () => {
  it.each([1, 2, 3, 4, 5])("finds nothing between a store and itself, seed %i", async (seed) => {
    await compareStores({ model: openMemory, subject: openMemory, seed, steps: 300 });
  });

  it.each([
    "ignores fences",
    "ignores revisions",
    "forgets the salt",
    "does not hold what it swept",
    "claims what others hold",
    "lets anybody remove",
    "ignores the guard of a timeout",
  ] as const)("finds a store that %s, with a seed and a short list", async (flaw) => {
    const subject = async () => breakStore(await openMemory(), BROKEN[flaw]);
    const seeds = Array.from({ length: 10 }, (_, seed) => seed);
    const failures = await Promise.allSettled(
      seeds.map((seed) => compareStores({ model: openMemory, subject, seed, steps: 200 })),
    );
    const messages = failures.flatMap((each) =>
      each.status === "rejected" ? [each.reason.message as string] : [],
    );
    expect(messages[0]).toMatch(/^seed \d+: the stores differ after\n {2}0\. /);
    expect(messages[0]?.match(/^ {2}\d+\. /gm)?.length).toBeLessThan(40);
  });
});
