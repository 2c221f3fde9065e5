import { afterAll, beforeAll, describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openRedisStore } from "../../src/stores/redis/open-redis.ts";
import { compareStores } from "../../src/testing/compare-stores.ts";
import { registerSections } from "../../src/testing/conformance/kit.ts";
import { CONFORMANCE } from "../../src/testing/conformance/store-conformance.ts";
import { DURABLE, findRedis, startNode, type TestRedis } from "../redis.ts";
import { startCluster } from "../redis-cluster.ts";
import { productionSystem } from "../support/system.ts";

/** `npm run test:redis` runs all cases on all servers, also those that fill a server, and more histories. */
const IS_LONG = process.env.CURFEW_REDIS_GROWTH === "1";
/** A server of the user's takes the place of one node. Its keys are not deleted, so each run has its own. */
const GIVEN = process.env.CURFEW_REDIS_URL;
const RUN = `${process.pid}-${Date.now()}-`;
const SEEDS = Number(process.env.CURFEW_HISTORIES ?? 1);
const STEPS = 150;
const REPLICAS = IS_LONG ? 2 : 1;
/** Where a cluster could differ from one node: units, fences, hints and looks. */
const SAMPLE = [
  "fencing",
  "crash points",
  "looking",
  "records and guards",
  "keyed units",
  "hints",
  "timeouts in units",
];

const servers = [
  { server: "Redis, one node", flavour: "redis", isCluster: false, homes: 1 },
  { server: "Valkey, a cluster with 4 homes", flavour: "valkey", isCluster: true, homes: 4 },
  ...(IS_LONG
    ? ([
        { server: "Valkey, a cluster", flavour: "valkey", isCluster: true, homes: 1 },
        { server: "Valkey, one node", flavour: "valkey", isCluster: false, homes: 1 },
      ] as const)
    : []),
] as const;

function sectionsFor(isCluster: boolean) {
  if (IS_LONG) return CONFORMANCE;
  return CONFORMANCE.filter(({ name }) => name !== "growth" && (!isCluster || SAMPLE.includes(name))).map(
    ({ name, cases }) => ({ name, cases: cases.filter((each) => !/200000/.test(each.name)) }),
  );
}

const casesOf = (sections: readonly { readonly cases: readonly unknown[] }[]) =>
  sections.reduce((sum, { cases }) => sum + cases.length, 0);

for (const { server: kind, flavour, isCluster, homes } of servers) {
  const sections = sectionsFor(isCluster);
  const name = `${kind}: ${casesOf(sections)} of ${casesOf(CONFORMANCE)} cases`;
  const isGiven = GIVEN !== undefined && !isCluster;
  const program = isGiven ? null : await findRedis(flavour);
  if (!program && !isGiven) console.error(`SKIPPED: ${casesOf(sections)} cases of the kit on ${kind}`);
  let server: TestRedis;
  let opened = 0;
  const open = (name: string) =>
    openRedisStore({ connection: server.url, prefix: RUN + name, homes, system: productionSystem });

  const fresh = () => {
    opened += 1;
    return open(`history${opened}`);
  };

  describe.skipIf(!program && !isGiven)(name, () => {
    beforeAll(async () => {
      if (!program) server = { url: GIVEN as string, async [Symbol.asyncDispose]() {} };
      else server = isCluster ? await startCluster(program, REPLICAS) : await startNode(program, DURABLE);
    });
    afterAll(async () => {
      await server?.[Symbol.asyncDispose]();
    });

    registerSections(sections, {
      runner: { describe, it },
      print: console.log,
      async open() {
        opened += 1;
        const prefix = `case${opened}`;
        return { store: await open(prefix), another: () => open(prefix), reopen: () => open(prefix) };
      },
    });

    const firstSeed = Number(process.env.CURFEW_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
    // The units of a history join rows of any home.
    it.skipIf(homes > 1)(
      `answers ${SEEDS} random histories as the memory store does (CURFEW_TEST_SEED=${firstSeed})`,
      async () => {
        for (let seed = firstSeed; seed < firstSeed + SEEDS; seed++) {
          await compareStores({
            seed,
            steps: STEPS,
            model: async () => createMemoryStore({ clock: () => 0 }),
            subject: fresh,
          });
        }
      },
      60_000 + SEEDS * 10_000,
    );
  });
}
