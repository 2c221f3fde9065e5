import { CurfewError, refuse } from "../../core/errors.ts";
import { ifMissing } from "../../core/load-package.ts";
import type { RedisAddress } from "./address.ts";
import { readFacts } from "./check-server.ts";
import { closeClient, type RedisLike, type RedisPackage, withoutCommand } from "./redis-package.ts";

/** A command that got no answer for this long has failed, so that a dead machine is noticed. */
const ANSWER_WITHIN = 6_000;
const LONGEST_RETRY = 1_000;
/** A replica that does not answer for this long is not asked for its settings. */
const VISIT_WITHIN = 1_000;
/** A Sentinel that does not answer for this long is passed over for the next one. */
const SENTINEL_WITHIN = 2_000;
/** A machine that vanished is noticed on a connection that waits for nothing: ten probes follow, one a second. */
const PROBE_AFTER = 5_000;

export interface Dialer {
  readonly client: RedisLike;
  readonly isCluster: boolean;
  masters(): readonly RedisLike[];
  dial(options?: { readonly isSubscriber?: boolean }): Promise<RedisLike>;
  /** Connects to one node, once and for a short time. */
  visit(host: string, port: number): Promise<RedisLike>;
}

/** Asks the first host that answers what it is, and connects accordingly. */
export async function createDialer(address: RedisAddress): Promise<Dialer> {
  const ioredis = await loadPackage();
  const { sentinel } = address;
  const visit = (host: string, port: number) => {
    const short = { connectTimeout: VISIT_WITHIN, commandTimeout: VISIT_WITHIN, retryStrategy: () => null };
    return connected(new ioredis.Redis({ ...single(address), ...short, host, port }), address);
  };
  if (sentinel !== undefined) {
    const dial = () => dialBehind(ioredis, address, sentinel);
    const client = await dial();
    return { client, isCluster: false, masters: () => [client], dial, visit };
  }
  const first = await firstReachable(ioredis, address);
  const facts = await readFacts(first).catch((error) => {
    closeClient(first);
    throw error;
  });
  // Valkey has another name for it.
  const mode = facts.get("server_mode") ?? facts.get("redis_mode");
  if (mode === "sentinel") {
    first.disconnect();
    const fix = "this is a Sentinel: add ?sentinel= and the name of the master";
    throw refuse("invalid_option", "store", address.hosts[0]?.host, fix);
  }
  if (mode !== "cluster") {
    if (address.hosts.length > 1) {
      closeClient(first);
      const fix = "these are not nodes of a cluster: name one host, or the Sentinels and ?sentinel=";
      throw refuse("invalid_option", "store", shownHosts(address), fix);
    }
    const dial = () => dialOne(ioredis, address, address.hosts[0]);
    return { client: first, isCluster: false, masters: () => [first], dial, visit };
  }
  closeClient(first);
  if (address.database !== 0)
    throw refuse(
      "invalid_option",
      "store",
      `/${address.database}`,
      "a cluster has only database 0: leave it out",
    );
  const dial = ({ isSubscriber = false } = {}) =>
    connected(new ioredis.Cluster(address.hosts, clusterOptions(address, isSubscriber)), address);
  const client = await dial();
  return { client, isCluster: true, masters: () => client.nodes?.("master") ?? [], dial, visit };
}

async function firstReachable(ioredis: RedisPackage, address: RedisAddress): Promise<RedisLike> {
  const failures: unknown[] = [];
  for (const host of address.hosts) {
    try {
      return await dialOne(ioredis, address, host);
    } catch (error) {
      failures.push(error);
    }
  }
  throw failures[0];
}

async function dialOne(ioredis: RedisPackage, address: RedisAddress, host?: object): Promise<RedisLike> {
  const options = { ...single(address), ...host, db: address.database };
  return inDatabase(await connected(new ioredis.Redis(options), address), address);
}

/** The client itself would go on in database 0 if the server has no other. */
async function inDatabase(client: RedisLike, { database }: RedisAddress): Promise<RedisLike> {
  if (database === 0) return client;
  try {
    await client.call("select", database);
    return client;
  } catch (error) {
    closeClient(client);
    if (!/out of range|not allowed/i.test((error as Error).message)) throw withoutCommand(error);
    const fix = "the server has no such database: see its setting databases";
    throw refuse("invalid_option", "store", `/${database}`, fix, { cause: withoutCommand(error) });
  }
}

/**
 * Connects to the master that Sentinels name. The client itself would ask them for ever: the first time each is asked once,
 * so that an address that is wrong is noticed.
 */
async function dialBehind(ioredis: RedisPackage, address: RedisAddress, name: string): Promise<RedisLike> {
  let isOpen = false;
  const options = {
    ...single(address),
    ...sentinelOptions(address, name),
    sentinelRetryStrategy: (times: number) => (isOpen ? Math.min(50 * times, LONGEST_RETRY) : null),
  };
  const client = await connected(new ioredis.Redis(options), address).catch((error: CurfewError) => {
    if (!/No such master|retry is disabled\.$/.test(error.message)) throw error;
    throw new CurfewError(
      "store_failed",
      `none of the Sentinels ${shownHosts(address)} knows a master "${name}"`,
      { cause: error },
    );
  });
  isOpen = true;
  return inDatabase(client, address);
}

function common({ username, password, tls }: RedisAddress): object {
  return {
    ...(username && { username }),
    ...(password && { password }),
    ...(tls && { tls: {} }),
    lazyConnect: true,
    protocol: 2,
    connectionName: "curfew",
    connectTimeout: ANSWER_WITHIN,
    commandTimeout: ANSWER_WITHIN,
    keepAlive: PROBE_AFTER,
    // A command that was sent may have run. The engine decides whether it is safe to repeat.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    retryStrategy: (times: number) => Math.min(50 * times, LONGEST_RETRY),
    // A master that became a replica: connect again, and the address or Sentinel leads to the new one.
    reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
  };
}

function single(address: RedisAddress): object {
  return {
    ...common(address),
    // Hints subscribe again by themselves: ioredis leaves the failure of its own attempt unhandled, which ends a process.
    autoResubscribe: false,
    // A master that stands still keeps its connections. The next one may lead to another master. A cluster says it by itself.
    socketTimeout: ANSWER_WITHIN,
  };
}

export function sentinelOptions(
  { hosts, username, password, tls, database }: RedisAddress,
  name: string,
): object {
  return {
    sentinels: hosts,
    name,
    role: "master",
    db: database,
    sentinelCommandTimeout: SENTINEL_WITHIN,
    // Without these, the client would talk to both in plain text.
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    ...(password && { sentinelPassword: password }),
    ...(username && { sentinelUsername: username }),
  };
}

function clusterOptions(address: RedisAddress, isSubscriber: boolean): object {
  const { lazyConnect, retryStrategy, ...redisOptions } = common(address) as Record<string, unknown>;
  return {
    lazyConnect,
    redisOptions,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshTimeout: 500,
    slotsRefreshInterval: 1_000,
    // As above: a command whose connection broke is not sent again in silence.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 100,
    // A slot that moves is waited for by the connection, which knows for how long.
    retryDelayOnTryAgain: 1,
    maxRedirections: 8,
    shardedSubscribers: isSubscriber,
    enableReadyCheck: true,
  };
}

const shownHosts = ({ hosts }: RedisAddress): string =>
  hosts.map(({ host, port }) => `${host}:${port}`).join(", ");

async function connected(client: RedisLike, address: RedisAddress): Promise<RedisLike> {
  let last: unknown;
  for (const event of ["error", "node error"])
    client.on(event, (error: unknown) => {
      last = withoutCommand(error);
    });
  try {
    await client.connect();
    return client;
  } catch (error) {
    closeClient(client);
    // The error of the call says only that the connection is closed.
    withoutCommand(error);
    if (error instanceof Error && error !== last) error.cause = last;
    const { message } = (last ?? error) as Error;
    throw new CurfewError("store_failed", `cannot connect to Redis at ${shownHosts(address)}: ${message}`, {
      cause: error,
    });
  }
}

async function loadPackage(): Promise<RedisPackage> {
  return (await import("ioredis").catch(ifMissing("ioredis", "A redis:// store"))) as unknown as RedisPackage;
}
