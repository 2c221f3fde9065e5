import { afterAll, beforeAll, describe, it } from "vitest";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openRedisStore } from "../../src/stores/redis/open-redis.ts";
import { compareStores } from "../../src/testing/compare-stores.ts";
import { registerSections } from "../../src/testing/conformance/kit.ts";
import { CONFORMANCE } from "../../src/testing/conformance/store-conformance.ts";
import { DURABLE, findRedis, startNode, type TestRedis } from "../redis.ts";
import { startCluster } from "../redis-cluster.ts";
import { productionSystem } from "../support/system.ts";

/** `npm run test:long -- redis` also runs the cases that fill a server, Valkey on one node, and more histories. */
const IS_LONG = process.env.CURFEW_REDIS_GROWTH === "1";
const SEEDS = Number(process.env.CURFEW_HISTORIES ?? 1);
const STEPS = 150;
const sections = CONFORMANCE.map(({ name, cases }) => ({
  name,
  cases: cases.filter((each) => IS_LONG || !/200000/.test(each.name)),
}));

const servers = [
  { name: "Redis, one node", flavour: "redis", isCluster: false },
  { name: "Valkey, a cluster", flavour: "valkey", isCluster: true },
  ...(IS_LONG ? [{ name: "Valkey, one node", flavour: "valkey", isCluster: false } as const] : []),
] as const;

for (const { name, flavour, isCluster } of servers) {
  const program = await findRedis(flavour);
  let server: TestRedis;
  let opened = 0;
  const open = (prefix: string) =>
    openRedisStore({ connection: server.url, prefix, system: productionSystem });

  const fresh = () => {
    opened += 1;
    return open(`history${opened}`);
  };

  describe.skipIf(!program)(name, () => {
    beforeAll(async () => {
      if (!program) return;
      server = isCluster ? await startCluster(program, 1) : await startNode(program, DURABLE);
    }, 60_000);
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
    it(
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
