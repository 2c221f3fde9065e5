import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { ifMissing } from "../../core/load-package.ts";
import { keysOf } from "../../core/option-keys.ts";
import type { Instant } from "../../core/time.ts";
import type { Logger } from "../../ports/log.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";
import type { MongoClientLike, MongoCollection } from "./mongodb-driver.ts";
import { createMongoTimeouts } from "./mongodb-timeouts.ts";
import { INDEXES } from "./timeout-document.ts";

export interface MongoTimeoutsOptions {
  /** `"mongodb://host/database"`. Either this or a client. */
  readonly url?: string;
  /** A `MongoClient` of yours. It is not closed with the store. */
  readonly client?: object;
  /** Default: the one that the address names, or `"test"`, as the driver has it. */
  readonly database?: string;
  /** Default `"curfew_timeouts"`. */
  readonly collection?: string;
  /** Default `"majority"`. A number of members is warned of, because a failover may lose what they acknowledged; 0 is refused. */
  readonly w?: "majority" | number;
}

export interface MongoTimeoutStore {
  readonly timeouts: TimeoutStore;
  clock(): Promise<Instant>;
  close(): Promise<void>;
}

const KEYS = keysOf<MongoTimeoutsOptions & { readonly logger: Logger }>({
  url: true,
  client: true,
  database: true,
  collection: true,
  w: true,
  logger: true,
});
const COLLECTION = "curfew_timeouts";

/** Opens the store: checks that writes are acknowledged, and makes the indexes. */
export async function openMongoTimeouts(
  options: MongoTimeoutsOptions & { readonly logger: Logger },
): Promise<MongoTimeoutStore> {
  refuseUnknownKeys(options, "options", KEYS);
  const { database, collection: name = COLLECTION, logger } = options;
  const given = options.client as MongoClientLike | undefined;
  if ((given === undefined) === (options.url === undefined))
    throw refuse(
      "invalid_option",
      "options.url",
      given ? "url and client" : undefined,
      "pass a url or a client, not both",
    );
  const client = given ?? (await connect(options.url as string));
  try {
    const db = client.db(database);
    const collection = db.collection(name, concernOf(db.collection(name, {}), options.w, logger));
    await collection.createIndexes(INDEXES);
    return {
      timeouts: createMongoTimeouts(collection),
      async clock() {
        const { localTime } = (await db.command({ hello: 1 })) as { localTime?: Date };
        if (localTime instanceof Date) return localTime.getTime();
        throw new CurfewError(
          "store_failed",
          "clock: the server's answer to hello has no localTime; use MongoDB 5 or newer",
        );
      },
      close: async () => {
        if (!given) await client.close();
      },
    };
  } catch (error) {
    if (!given) await client.close();
    throw error;
  }
}

async function connect(url: string): Promise<MongoClientLike> {
  const { MongoClient } = await import("mongodb").catch(ifMissing("mongodb", "a mongodb:// store"));
  const client = new MongoClient(url) as unknown as MongoClientLike;
  // Refused before a connection is made: an address may switch acknowledgements off.
  refuseUnacknowledged(client.db().collection(COLLECTION, {}));
  await client.connect();
  return client;
}

function refuseUnacknowledged({ writeConcern }: MongoCollection): void {
  const { w, journal, j } = writeConcern ?? {};
  if (w === 0 || w === "0")
    throw refuse(
      "invalid_option",
      "w",
      w,
      'writes would not be acknowledged, and timeouts lost in silence: use "majority"',
    );
  if (journal === false || j === false)
    throw refuse(
      "invalid_option",
      "journal",
      false,
      "the server would acknowledge writes that a crash loses: leave it out",
    );
}

/** Reads come from the primary: a secondary may show a timeout as free that another process has claimed. */
function concernOf(inherited: MongoCollection, w: MongoTimeoutsOptions["w"], logger: Logger): object {
  refuseUnacknowledged(inherited);
  const chosen = w ?? inherited.writeConcern?.w ?? "majority";
  if (chosen === 0) refuseUnacknowledged({ ...inherited, writeConcern: { w: 0 } });
  if (chosen !== "majority") {
    if (typeof chosen === "number" && (!Number.isInteger(chosen) || chosen < 1))
      throw refuse("invalid_option", "options.w", w, 'write "majority", or a number of members from 1');
    logger.warn(
      { w: chosen },
      'the write concern is not "majority": a failover may lose acknowledged timeouts',
    );
  }
  return { writeConcern: { w: chosen }, readPreference: "primary", readConcern: { level: "local" } };
}
