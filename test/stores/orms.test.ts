import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import pg from "pg";
import { beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import {
  confirmOrder,
  type OpenShop,
  type OpenShopAndStore,
  orderSaga,
  SoldOut,
} from "../../examples/orms/shop.ts";
import { type Engine, openEngine, processor, silentLogger } from "../../src/index.ts";
import { createDatabase } from "../postgres.ts";
import { testFolder } from "../support/folders.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

type Example<Open> = () => Promise<{ readonly openShop: Open }>;

const ON_POSTGRES: Record<string, Example<OpenShop>> = {
  "node-postgres": () => import("../../examples/orms/node-postgres.ts"),
  "postgres.js": () => import("../../examples/orms/postgres-js.ts"),
  "Drizzle on node-postgres": () => import("../../examples/orms/drizzle.ts"),
  "Drizzle on postgres.js": () => import("../../examples/orms/drizzle-postgres-js.ts"),
  Knex: () => import("../../examples/orms/knex.ts"),
  Kysely: () => import("../../examples/orms/kysely.ts"),
  TypeORM: () => import("../../examples/orms/typeorm.ts"),
  MikroORM: () => import("../../examples/orms/mikro-orm.ts"),
  Prisma: importPrisma,
};

const ON_SQLITE: Record<string, Example<OpenShopAndStore>> = {
  "better-sqlite3": () => import("../../examples/orms/better-sqlite3.ts"),
  "node:sqlite": () => import("../../examples/orms/node-sqlite.ts"),
  Drizzle: () => import("../../examples/orms/drizzle-sqlite.ts"),
  Kysely: () => import("../../examples/orms/kysely-sqlite.ts"),
};

/** Generates the client and checks the types of the example, which the rest of the project is checked without. */
async function importPrisma(): Promise<{ readonly openShop: OpenShop }> {
  const folder = join(root, "examples/orms/prisma");
  // The client is made without the schema engine, which Prisma would download for any command.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" };
  const prisma = join(root, "node_modules/.bin/prisma");
  await run(prisma, ["generate", "--schema", join(folder, "schema.prisma")], { cwd: folder, env });
  await run(join(root, "node_modules/.bin/tsc"), ["--noEmit", "-p", folder], { cwd: root });
  return import(join(folder, "prisma.ts")) as Promise<{ readonly openShop: OpenShop }>;
}

let postgres: { readonly url: string; readonly client: pg.Client; readonly engine: Engine };

beforeAll(async () => {
  const database = await createDatabase(inject("postgresUrl"));
  const client = new pg.Client(database.url);
  await client.connect();
  await client.query("create table orders (name text primary key)");
  const engine = await openEngine({ store: database.url, logger: silentLogger });
  postgres = { url: database.url, client, engine };
  return async () => {
    await engine.close({ drain: "0s" });
    await client.end();
    await database[Symbol.asyncDispose]();
  };
});

/** How many orders, jobs and timeouts there are of an order. A message is a timeout that is due at once. */
async function countOf(order: string): Promise<unknown> {
  const { rows } = await postgres.client.query(
    `select (select count(*)::int from orders where name = $1) as orders,
            (select count(*)::int from curfew.jobs where payload like '%' || $1 || '%') as jobs,
            (select count(*)::int from curfew.timeouts where payload like '%' || $1 || '%') as timeouts`,
    [order],
  );
  return rows[0];
}

describe("enqueue, send and request a timeout in a transaction, on PostgreSQL", () => {
  it.each(Object.entries(ON_POSTGRES))(
    "%s: all of it exists if and only if it commits",
    async (name, load) => {
      const { openShop } = await load();
      const shop = await openShop(postgres.url);
      onTestFinished(() => shop.close());
      const [lamp, unicorn] = [`lamp of ${name}`, `unicorn of ${name}`];
      await expect(shop.placeOrder(postgres.engine, unicorn, true)).rejects.toThrow(SoldOut);
      expect(await countOf(unicorn)).toEqual({ orders: 0, jobs: 0, timeouts: 0 });
      await shop.placeOrder(postgres.engine, lamp, false);
      expect(await countOf(lamp)).toEqual({ orders: 1, jobs: 1, timeouts: 2 });
    },
  );

  it("all of it is handled", async () => {
    const { engine } = postgres;
    const lamps = Object.keys(ON_POSTGRES).map((name) => `lamp of ${name}`);
    const { confirmed, started } = await handled(engine, lamps.length);
    expect(confirmed.toSorted()).toEqual(lamps.toSorted());
    expect(started.toSorted()).toEqual(lamps.toSorted());
  });
});

/** Runs a worker and a saga host until this many jobs and sagas are handled. */
async function handled(engine: Engine, count: number): Promise<{ confirmed: string[]; started: string[] }> {
  const [confirmed, started]: [string[], string[]] = [[], []];
  const work = ({ payload }: { payload: { order: string } }) => void confirmed.push(payload.order);
  engine.on("saga.started", ({ saga }) => void started.push(saga));
  await using _worker = engine.work({ processors: [processor(confirmOrder, work)] });
  await using _host = engine.host([orderSaga]);
  await expect.poll(() => confirmed.length >= count && started.length >= count).toBe(true);
  return { confirmed, started };
}

describe("enqueue, send and request a timeout in a transaction, on SQLite", () => {
  it.each(Object.entries(ON_SQLITE))(
    "%s: all of it exists if and only if it commits",
    async (_name, load) => {
      const folder = testFolder();
      const file = join(folder, "shop.db");
      withDatabase(file, (database) => database.exec("create table orders (name text primary key)"));
      const { openShop } = await load();
      const shop = await openShop(file);
      const engine = await openEngine({ store: shop.store, logger: silentLogger });
      await expect(shop.placeOrder(engine, "unicorn", true)).rejects.toThrow(SoldOut);
      expect(await engine.queues.depth()).toMatchObject({ available: 0 });
      expect(await engine.timeouts.count()).toMatchObject({ pending: 0 });
      await shop.placeOrder(engine, "lamp", false);
      expect(await handled(engine, 1)).toEqual({ confirmed: ["lamp"], started: ["lamp"] });
      expect(
        (await engine.timeouts.list({ destination: "reminders" })).map(({ payload }) => payload),
      ).toEqual(["lamp"]);
      await engine.close();
      await shop.close();
      const orders = withDatabase(file, (database) =>
        database.prepare("select name from orders").pluck().all(),
      );
      expect(orders).toEqual(["lamp"]);
    },
  );
});

function withDatabase<Result>(file: string, work: (database: Database.Database) => Result): Result {
  const database = new Database(file);
  try {
    return work(database);
  } finally {
    database.close();
  }
}
