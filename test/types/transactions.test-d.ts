import type { DatabaseSync } from "node:sqlite";
import type Database from "better-sqlite3";
import type pg from "pg";
import { describe, expectTypeOf, it } from "vitest";
import type { EnqueueOptions, Transaction, TransactionClient } from "../../src/index.ts";

/* The transactions of ORMs are checked in examples/orms, which has their packages. */

describe("tx", () => {
  it("takes clients and handles that can have a transaction", () => {
    expectTypeOf<pg.Client>().toExtend<Transaction>();
    expectTypeOf<pg.PoolClient>().toExtend<Transaction>();
    expectTypeOf<Database.Database>().toExtend<Transaction>();
    expectTypeOf<DatabaseSync>().toExtend<Transaction>();
    expectTypeOf<TransactionClient>().toExtend<Transaction>();
    expectTypeOf<EnqueueOptions["tx"]>().toEqualTypeOf<Transaction | undefined>();
  });

  it("takes nothing else", () => {
    expectTypeOf<pg.Pool>().not.toExtend<Transaction>();
    expectTypeOf<number>().not.toExtend<Transaction>();
    expectTypeOf<string>().not.toExtend<Transaction>();
    expectTypeOf<object>().not.toExtend<Transaction>();
    expectTypeOf<unknown>().not.toExtend<Transaction>();
    expectTypeOf<Promise<pg.PoolClient>>().not.toExtend<Transaction>();
  });
});
