/**
 * What is no open transaction, of each library. Most of it does not compile as `tx`; all of it is refused at the call,
 * before anything is written.
 */
import { MikroORM } from "@mikro-orm/postgresql";
import { drizzle } from "drizzle-orm/node-postgres";
import Knex from "knex";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { DataSource } from "typeorm";
import type { Transaction } from "../curfew.ts";

interface Refused {
  readonly name: string;
  readonly tx: Transaction;
  /** What the error says. */
  readonly says: RegExp;
}

export async function openRefused(address: string): Promise<{ refused: Refused[]; close(): Promise<void> }> {
  const pool = new pg.Pool({ connectionString: address });
  const idle = await pool.connect();
  const db = drizzle(pool);
  const sql = postgres(address, { max: 1 });
  const reserved = await sql.reserve();
  const knex = Knex({ client: "pg", connection: address, pool: { min: 0, max: 1 } });
  const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
  const dataSource = await new DataSource({ type: "postgres", url: address }).initialize();
  const orm = await MikroORM.init({
    clientUrl: address,
    entities: [],
    discovery: { warnWhenNoEntities: false },
  });
  const refused: Refused[] = [
    // @ts-expect-error: a number
    { name: "a number", tx: 42, says: /options\.tx: 42.*pass the open transaction/ },
    // @ts-expect-error: null
    { name: "null", tx: null, says: /options\.tx: / },
    // @ts-expect-error: an object of nothing
    { name: "an empty object", tx: {}, says: /pass the open transaction/ },
    // @ts-expect-error: a pool
    { name: "a pool", tx: pool, says: /a pool.*pool\.connect\(\)/ },
    { name: "a client without a transaction", tx: idle, says: /without a transaction.*begin/ },
    // @ts-expect-error: a Drizzle database
    { name: "a Drizzle database", tx: db, says: /a Drizzle database.*db\.transaction/ },
    // @ts-expect-error: postgres.js outside of begin
    { name: "postgres.js itself", tx: sql, says: /postgres\.js.*sql\.begin/ },
    { name: "a reserved connection of postgres.js", tx: reserved, says: /without a transaction/ },
    // @ts-expect-error: knex itself
    { name: "knex itself", tx: knex, says: /knex.*knex\.transaction/ },
    // @ts-expect-error: a Kysely database
    { name: "a Kysely database", tx: kysely, says: /a Kysely database.*db\.transaction/ },
    // @ts-expect-error: a TypeORM data source
    { name: "a TypeORM data source", tx: dataSource, says: /TypeORM.*dataSource\.transaction/ },
    { name: "a TypeORM manager", tx: dataSource.manager, says: /TypeORM.*dataSource\.transaction/ },
    { name: "a MikroORM entity manager", tx: orm.em.fork(), says: /EntityManager.*em\.transactional/ },
  ];
  const close = async () => {
    idle.release();
    reserved.release();
    await Promise.all([sql.end(), knex.destroy(), dataSource.destroy(), orm.close()]);
    await pool.end();
  };
  return { refused, close };
}
