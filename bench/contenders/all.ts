import type { Contender } from "../contender.ts";
import { bullmq } from "./bullmq.ts";
import { bunqueue } from "./bunqueue.ts";
import { curfew } from "./curfew.ts";
import { floorPostgres } from "./floor-postgres.ts";
import { floorSqlite } from "./floor-sqlite.ts";
import { graphileWorker } from "./graphile-worker.ts";
import { pgBoss } from "./pg-boss.ts";
import { plainjob } from "./plainjob.ts";

export const CONTENDERS: readonly Contender[] = [
  curfew("postgres", "drop"),
  curfew("postgres", "keep"),
  curfew("postgres", "drop", "durable"),
  curfew("postgres", "keep", "durable"),
  graphileWorker,
  pgBoss,
  floorPostgres,
  curfew("sqlite", "drop"),
  curfew("sqlite", "keep"),
  curfew("sqlite", "keep", "durable"),
  plainjob,
  bunqueue,
  floorSqlite,
  bullmq,
];

/** The name in arguments and results: `postgres/curfew-drop`. */
export function keyOf({ database, name }: Contender): string {
  return `${database}/${name.replaceAll(" ", "-")}`;
}

export function contenderOf(key: string): Contender {
  const contender = CONTENDERS.find((each) => keyOf(each) === key);
  if (!contender) throw new Error(`no contender is called ${key}`);
  return contender;
}
