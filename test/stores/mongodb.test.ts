import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/ports/log.ts";
import type { MongoClientLike, MongoCollection } from "../../src/stores/mongodb/mongodb-driver.ts";
import { openMongoTimeouts } from "../../src/stores/mongodb/open-mongodb.ts";
import { timeoutConformance } from "../../src/testing/index.ts";
import { openTimeouts } from "../../src/timeouts.ts";
import { type FakeData, fakeClient } from "../mongodb/fake-collection.ts";

const logger = silentLogger;
/** `npm run test:mongodb` sets it. */
const URL = process.env.CURFEW_MONGODB_URL;

/** Every call on the fake is one step over all its documents: how claims race and grow, only a server can show. */
const FOR_SERVERS = /claimers at once|does not notice/;

timeoutConformance({
  name: "mongodb (fake: shape, not atomicity)",
  runner: {
    describe,
    it: (name, run, timeout) => (FOR_SERVERS.test(name) ? undefined : it(name, run, timeout)),
  },
  async open() {
    const data: FakeData = { documents: [], indexes: [] };
    const open = () => openMongoTimeouts({ client: fakeClient(data), logger });
    return { ...(await open()), another: open, reopen: open };
  },
});

if (URL !== undefined) {
  timeoutConformance({
    name: `mongodb at ${new globalThis.URL(URL).host}`,
    runner: { describe, it },
    async open() {
      const { MongoClient } = await import("mongodb");
      const collection = `t${randomUUID().replaceAll("-", "")}`;
      const open = () => openMongoTimeouts({ url: URL, collection, logger });
      const store = await open();
      const dispose = async () => {
        const client = new MongoClient(URL);
        await client.db().collection(collection).drop();
        await client.close();
      };
      return { ...store, another: open, reopen: open, dispose };
    },
  });

  it("8 claimers at once over 2,000 timeouts: each is claimed by one of them", async () => {
    const collection = `t${randomUUID().replaceAll("-", "")}`;
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => openMongoTimeouts({ url: URL, collection, logger })),
    );
    const [first] = stores as [(typeof stores)[number]];
    const now = await first.clock();
    for (let from = 0; from < 2_000; from += 500)
      await first.timeouts.insert(
        Array.from({ length: 500 }, (_, index) => ({
          id: `t${from + index}`,
          destination: "kit",
          dueAt: now,
        })),
        { now },
      );
    const seen: string[] = [];
    const claimer = async ({ timeouts }: (typeof stores)[number], index: number) => {
      for (let round = 0; ; round++) {
        const claimed = await timeouts.claimDue({
          now,
          leaseUntil: now + 60_000,
          owner: `o${index}-${round}`,
          limit: 7,
        });
        if (claimed.length === 0) return;
        seen.push(...claimed.map(({ id }) => id));
      }
    };
    await Promise.all(stores.map(claimer));
    console.log(`8 claimers: ${seen.length} claims, ${seen.length - new Set(seen).size} doubles`);
    expect([seen.length, new Set(seen).size]).toEqual([2_000, 2_000]);
    await Promise.all(stores.map((store) => store.close()));
  });
}

describe("opening a MongoDB timeout store", () => {
  const withConcern = (writeConcern: MongoCollection["writeConcern"]) => fakeClient(undefined, writeConcern);
  const open = (client: MongoClientLike, more: object = {}) => openMongoTimeouts({ client, logger, ...more });

  it("makes its indexes, writes with majority and reads from the primary", async () => {
    const data: FakeData = { documents: [], indexes: [] };
    const client = fakeClient(data);
    await open(client);
    expect(client.asked.at(-1)).toMatchObject({ writeConcern: { w: "majority" }, readPreference: "primary" });
    expect(data.indexes.filter(({ unique }) => unique).map(({ key }) => Object.keys(key))).toEqual([
      ["id"],
      ["scope", "key"],
    ]);
  });

  it("refuses writes that are not acknowledged, from the client, the address and its own option", async () => {
    await expect(open(withConcern({ w: 0 }))).rejects.toThrow(/w: 0 .* would not be acknowledged/);
    await expect(open(withConcern({ w: "majority", journal: false }))).rejects.toThrow(/journal: false/);
    await expect(open(fakeClient(), { w: 0 })).rejects.toThrow(/w: 0/);
    await expect(open(fakeClient(), { w: 1.5 })).rejects.toThrow(/options.w: 1.5/);
    await expect(openTimeouts({ store: "mongodb://127.0.0.1:1/x?w=0", logger })).rejects.toThrow(
      /would not be acknowledged/,
    );
  });

  it("warns of a write concern that a failover may lose", async () => {
    const warned: unknown[] = [];
    await openMongoTimeouts({
      client: withConcern({ w: 1 }),
      logger: { ...logger, warn: (fields) => warned.push(fields) },
    });
    expect(warned).toEqual([{ w: 1 }]);
  });

  it("refuses an engine on MongoDB, and names what works", async () => {
    const { openEngine } = await import("../../src/index.ts");
    await expect(openEngine({ store: "mongodb://me:secret@host/x" })).rejects.toThrow(
      /MongoDB serves timeouts alone/,
    );
    await expect(openEngine({ store: "mongodb://me:secret@host/x" })).rejects.not.toThrow(/secret/);
  });

  it("needs a url or a client", async () => {
    await expect(openMongoTimeouts({ logger })).rejects.toThrow(/options.url/);
  });
});
