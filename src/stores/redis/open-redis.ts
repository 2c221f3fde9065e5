import { CurfewError, checkCount, refuse } from "../../core/errors.ts";
import { CELLS } from "../../core/home/cell.ts";
import { createHomedIdSource } from "../../core/ids.ts";
import { reachOf } from "../../ports/capabilities.ts";
import type { Looked, LookRequest } from "../../ports/look.ts";
import type { Store } from "../../ports/store.ts";
import { rest, type System } from "../../ports/system.ts";
import { checkLook } from "../check-batch.ts";
import type { HomeStore } from "../homes/home-store.ts";
import { createHomedStore } from "../homes/homed-store.ts";
import { parseAddress } from "./address.ts";
import { checkServer, type Durability } from "./check-server.ts";
import { writeUnits } from "./commit.ts";
import { RedisConnection } from "./connection.ts";
import { createDialer, type Dialer } from "./dial.ts";
import { HintChannels } from "./hints.ts";
import { Home } from "./home.ts";
import { homeKey } from "./home-key.ts";
import { createInspector } from "./inspector.ts";
import { createJobStore } from "./job-store.ts";
import { createRecordStore } from "./record-store.ts";
import { closeClient, type RedisLike, withoutCommand } from "./redis-package.ts";
import { createTimeoutStore } from "./timeout-store.ts";

export interface RedisStoreOptions {
  /** `"redis://…"` or `"valkey://…"`; several hosts for a cluster or for Sentinels. */
  readonly connection: string;
  /** What all keys begin with. Two stores on one server need two prefixes. Default `"curfew"`. */
  readonly prefix?: string;
  /** `"local"`: AOF every second. `"replicated"`: a replica has every acknowledged write. Default `"local"`. */
  readonly durability?: Durability;
  /**
   * Into how many homes the store is divided, which a cluster spreads over its masters. Fixed when the store is created.
   * Default: as it was created, else 1.
   */
  readonly homes?: number;
  readonly system: Pick<System, "after" | "wall" | "fill">;
}

const REPLICAS_WITHIN = 1_000;
const PREFIX = /^[A-Za-z0-9_.-]{1,64}$/;
/** The layout of the keys. A store with another one is refused. Layout 1 had the timeouts of a saga in a set. */
const FORMAT = 2;

/** Opens a store on Redis 7 or Valkey: one node, a master behind Sentinels, or a cluster. */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const { connection: url, system } = options;
  const address = parseAddress(url, hidden(url));
  const given = address.options;
  const prefix = checkPrefix(options.prefix ?? given.get("prefix") ?? "curfew");
  const durability = checkDurability(options.durability ?? given.get("durability") ?? "local");
  const asked = options.homes ?? (given.has("homes") ? Number(given.get("homes")) : undefined);
  if (asked !== undefined) checkCount(asked, "homes", CELLS);
  const dialer = await createDialer(address).catch((error) => {
    throw openingFailed(error);
  });
  let patient: RedisLike | undefined;
  try {
    await Promise.all(dialer.masters().map((node) => checkServer(node, durability, dialer.visit)));
    const homes = await settleHomes(dialer, prefix, asked);
    const isReplicated = durability === "replicated";
    if (isReplicated) patient = await dialer.dial();
    const connection = new RedisConnection(
      { client: dialer.client, patient },
      {
        isCluster: dialer.isCluster,
        acknowledgement: isReplicated ? { replicas: 1, within: REPLICAS_WITHIN } : undefined,
        rest: (delay) => rest(system, delay),
      },
    );
    await connection.load();
    const channels = new HintChannels(() => dialer.dial({ isSubscriber: true }), dialer.isCluster);
    if (!dialer.isCluster) dialer.client.on("close", () => void channels.renew());
    return createStore(connection, channels, { prefix, homes, durability, system });
  } catch (error) {
    closeClient(dialer.client);
    if (patient) closeClient(patient);
    throw openingFailed(error);
  }
}

/** What a server answered is told without the command, which may be a whole library. */
function openingFailed(error: unknown): unknown {
  if (error instanceof CurfewError) return error;
  withoutCommand(error);
  const { message } = error as Error;
  const fix = message.startsWith("READONLY")
    ? "; this is a replica: name its master, or the Sentinels"
    : message.startsWith("NOPERM")
      ? "; allow the user INFO, FUNCTION, FCALL, SUBSCRIBE and the keys of the prefix"
      : "";
  return new CurfewError("store_failed", `cannot open the Redis store: ${message}${fix}`, { cause: error });
}

/** The number of homes that the store has. The first one to open it decides. Refuses keys that this version cannot read. */
async function settleHomes(dialer: Dialer, prefix: string, asked: number | undefined): Promise<number> {
  const own = `${FORMAT} ${asked ?? 1}`;
  const before = (await dialer.client.call("set", `{${prefix}}:layout`, own, "nx", "get")) as string | null;
  const [format, homes] = (before ?? own).split(" ").map(Number);
  if (format !== FORMAT || !homes) throw otherLayout(prefix, before, Number(format) < FORMAT);
  if (asked !== undefined && asked !== homes) {
    const fix = `this store was created with ${homes}: leave it out, or export into a store with another prefix`;
    throw refuse("invalid_option", "homes", asked, fix);
  }
  return homes;
}

function otherLayout(prefix: string, found: string | null, isOlder: boolean): CurfewError {
  const fix = isOlder
    ? "export its jobs with that version, and import them into a store with another prefix"
    : "update this process";
  return new CurfewError(
    "invalid_option",
    `Redis store: another version of curfew wrote the keys of ${prefix} (layout ${found}, not ${FORMAT}); ${fix}`,
  );
}

interface Layout extends Pick<RedisStoreOptions, "system"> {
  readonly prefix: string;
  readonly homes: number;
  readonly durability: Durability;
}

function createStore(connection: RedisConnection, channels: HintChannels, layout: Layout): Store {
  const { prefix, homes, durability, system } = layout;
  let open = homes;
  const release = async () => {
    open -= 1;
    if (open > 0) return;
    await channels.close();
    connection.close();
  };
  const all = Array.from({ length: homes }, (_, index) =>
    createHome(new Home(connection, homeKey(prefix, index, homes), release), channels, durability),
  );
  if (homes === 1) return all[0] as Store;
  const nextId = createHomedIdSource(
    () => system.wall(),
    (bytes) => system.fill(bytes),
  );
  return createHomedStore(all, { nextId });
}

async function look(home: Home, request: LookRequest): Promise<Looked> {
  home.assertOpen();
  checkLook(request);
  const { queues, destinations, records } = request;
  const reader = await home.call("look", [queues, destinations, records.flat()]);
  return {
    nextWakeAt: reader.read() as number | null,
    ready: reader.read() as string[],
    nextDueAt: reader.read() as number | null,
    versions: reader.read() as number[],
  };
}

function createHome(home: Home, channels: HintChannels, durability: Durability): HomeStore {
  return {
    capabilities: {
      name: "redis",
      durable: durability === "local" ? "interval" : "ack",
      tx: false,
      hints: "push",
      ...reachOf(1),
    },
    jobs: createJobStore(home),
    records: createRecordStore(home),
    timeouts: createTimeoutStore(home),
    inspect: createInspector(home),
    async clock() {
      const reader = await home.call("clock", null);
      return (reader.read() as number) * 1_000 + Math.floor((reader.read() as number) / 1_000);
    },
    look: (request) => look(home, request),
    commit: (units, options) => writeUnits(home, units, options),
    async listen(onHint) {
      home.assertOpen();
      return channels.listen(home.channel, onHint);
    },
    close: () => home.close(),
  };
}

function checkPrefix(prefix: string): string {
  if (PREFIX.test(prefix)) return prefix;
  throw refuse("invalid_option", "prefix", prefix, "use 1 to 64 of A-Z a-z 0-9 _ . -");
}

function checkDurability(durability: string): Durability {
  if (durability === "local" || durability === "replicated") return durability;
  throw refuse("invalid_option", "durability", durability, 'write "local" or "replicated"');
}

function hidden(address: string): string {
  return address.replace(/\/\/.*@/s, "//***@");
}
