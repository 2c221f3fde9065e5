import { hostname } from "node:os";
import { type CurfewError, checkCount, refuse, refuseUnknownKeys } from "./core/errors.ts";
import type { PolicyOptions } from "./core/job/policy/policy.ts";
import { refuseOldNode } from "./core/node-version.ts";
import { keysOf } from "./core/option-keys.ts";
import { backoff } from "./core/pace.ts";
import { type Duration, parseDuration } from "./core/time.ts";
import { parseAllowList } from "./core/webhook/endpoint.ts";
import type { Engine } from "./engine/engine.ts";
import type { EncryptionOptions } from "./engine/runtime/aes-sealing.ts";
import { consoleLogger } from "./engine/runtime/console-logger.ts";
import { realSystem } from "./engine/runtime/real-system.ts";
import type { WebhookSetup } from "./engine/webhooks/webhook-delivery.ts";
import type { Logger } from "./ports/log.ts";
import { packageVersion } from "./ports/package-file.ts";
import type { Store } from "./ports/store.ts";
import { rest, type System } from "./ports/system.ts";
import type { Tracing } from "./ports/trace.ts";
import { createMemoryStore } from "./stores/memory/memory-store.ts";
import type { MongoTimeoutStore, MongoTimeoutsOptions } from "./stores/mongodb/open-mongodb.ts";
import type { PostgresStoreOptions } from "./stores/postgres/postgres-store.ts";
import type { RedisStoreOptions } from "./stores/redis/open-redis.ts";
import type { MigrationPlan } from "./stores/sql/migrator.ts";
import type { BackupResult, RestoreResult } from "./stores/sqlite/backup.ts";
import { machineClock } from "./stores/sqlite/machine-clock.ts";
import type { FileOptions } from "./stores/sqlite/open-file.ts";

/** For the command line, which opens engines through this file alone. */
export { processor } from "./engine/attempt/processor.ts";

export interface OpenOptions extends PolicyOptions {
  /** `"sqlite:curfew.db"`, `"postgres://…"`, `"redis://…"`, `"memory:"`, or a store that you opened. */
  readonly store: string | Store;
  /** Where warnings and errors go; pino and winston fit. Default: one line each on standard error. */
  readonly logger?: Logger;
  /** How long to wait for a database that is still starting. Default 30 s. */
  readonly openWithin?: Duration;
  /** Where spans of enqueues and attempts go: `openTelemetry()` of `curfew/tracing`. Default: no traces. */
  readonly tracing?: Tracing;
  /** Clock, timers and randomness; tests pass virtual ones. Default: those of the machine. */
  readonly system?: System;
  /** The most bytes of a payload, result, checkpoint or progress note. Default 1 MB. */
  readonly documentLimit?: number;
  /** Encrypts payloads, results, checkpoints and notes of progress before they reach the store. */
  readonly encryption?: EncryptionOptions;
  /**
   * Whether job events are recorded in the store for `engine.journal`. "durable" turns recording on, here and in every
   * engine on the same store that is not set to "off". Default: the store's setting, which begins as off. A server
   * turns it on.
   */
  readonly events?: "durable" | "off";
  /**
   * `"producer"` for a process that only enqueues, sends and inspects. On PostgreSQL it holds two connections, makes no
   * statement while nobody calls it, and may be behind a pooler of transactions.
   * `"operator"` for a process that looks, and does what people ask for: it runs no jobs and leaves all that is due to
   * others, as the commands of `curfew` do. Default: it does all.
   */
  readonly role?: "producer" | "operator";
  /**
   * Only for a PostgreSQL address that leads to a pooler of transactions: the address of the server itself. Hints, and what a
   * process looks for at rest, go there over one connection; all others go to the pooler. Default: `store`.
   */
  readonly hints?: string;
  /**
   * Delivers webhooks in this process: `true`, or what may be called beside public addresses. Default: it manages
   * subscriptions, and leaves deliveries to processes that have this option, such as `curfew serve`.
   */
  readonly webhooks?: boolean | WebhookServing;
  /** How long recorded events are stored. Default 1 day. */
  readonly keepEvents?: Duration;
  /** How long audit entries are stored. Default 90 days. */
  readonly keepAudit?: Duration;
  /**
   * The lease on a due timeout or saga message: if its process dies, another takes it after this time. Slow handlers
   * renew it. Default 5 min.
   */
  readonly timeoutLease?: Duration;
}

/** How webhooks are delivered in this process. */
export interface WebhookServing {
  /**
   * Hosts such as `"hooks.internal"` and `"*.example.internal"`, and address ranges such as `"10.1.0.0/16"`, that
   * endpoints may have, with any port and without TLS. Default: none, so only public addresses over https are called.
   */
  readonly allow?: readonly string[];
  /** Calls that run at once in this process, from 1 to 1,000. Default 64. */
  readonly concurrency?: number;
  /** Gives the addresses of a host. Default: the resolver of the operating system. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
}

const WEBHOOK_KEYS = keysOf<WebhookServing>({ allow: true, concurrency: true, resolve: true });
const KEYS = keysOf<OpenOptions>({
  store: true,
  logger: true,
  openWithin: true,
  system: true,
  tracing: true,
  documentLimit: true,
  encryption: true,
  events: true,
  keepEvents: true,
  keepAudit: true,
  timeoutLease: true,
  role: true,
  hints: true,
  webhooks: true,
  timeouts: true,
  retry: true,
  retention: true,
});
const SQLITE_KEYS = ["path", "database", "system"];
const MOST_CALLS = 1_000;
export const OPEN_WITHIN = 30_000;
const BACKOFF = { first: 100, factor: 2, most: 2_000 };

/** Opens an engine on a store. This is the only place that assembles an engine. */
export async function openEngine(options: OpenOptions): Promise<Engine> {
  refuseUnknownKeys(options, "options", KEYS);
  refuseOldNode(process.versions.node);
  const own = { zoneData: process.versions.tz, host: hostname() };
  const {
    store: address,
    openWithin,
    webhooks: serving,
    hints,
    system = onThisMachine(),
    logger = consoleLogger(),
    ...given
  } = options;
  const webhooks =
    serving === undefined || serving === false ? undefined : await webhookSetup(serving, system);
  checkHints(hints, address);
  const rest = { ...given, ...(webhooks && { webhooks }) };
  if (typeof address !== "string") {
    if (typeof address !== "object" || address === null) throw unknownStore(address);
    const { Engine } = await engineModule();
    return Engine.open({ ...rest, ...own, store: address, system, logger });
  }
  const within =
    openWithin === undefined ? OPEN_WITHIN : parseDuration(openWithin, "openWithin", { zero: true });
  const open = async () => {
    const role = rest.role === "producer" ? rest.role : undefined;
    const store = await openStore(address, system, { role, hints });
    try {
      const { Engine } = await engineModule();
      return await Engine.open({ ...rest, ...own, store, system, logger });
    } catch (error) {
      await store.close();
      throw error;
    }
  };
  return retryUnreachable(open, within, system, logger);
}

/** Loaded only if this process delivers webhooks. */
async function webhookSetup(serving: true | WebhookServing, system: System): Promise<WebhookSetup> {
  const { allow = [], concurrency, resolve } = serving === true ? {} : serving;
  if (serving !== true) refuseUnknownKeys(serving, "webhooks", WEBHOOK_KEYS);
  const allowed = parseAllowList(allow, "webhooks.allow");
  if (concurrency !== undefined) checkCount(concurrency, "webhooks.concurrency", MOST_CALLS);
  const { httpSender } = await import("./webhooks/http-sender.ts");
  const sender = httpSender({ system, allowed, resolve, version: packageVersion() });
  return { sender, ...(concurrency !== undefined && { concurrency }) };
}

/** Loaded when an engine opens, so that a program that only defines jobs, such as a sandbox, starts faster. */
const engineModule = () => import("./engine/engine.ts");

/** The real system, with the clock that all processes of this machine share, if there is one. */
export function onThisMachine(): System {
  const machine = machineClock();
  return machine ? { ...realSystem, machine } : realSystem;
}

/** Loads a driver only if the address names it. */
export async function openStore(
  address: string,
  system: System,
  { role, hints }: { readonly role?: "producer" | undefined; readonly hints?: string | undefined } = {},
): Promise<Store> {
  if (address === "memory:") return createMemoryStore({ clock: monotonicWall(system) });
  if (address.startsWith("sqlite:")) {
    return openSqliteStore({ path: address.slice("sqlite:".length), system });
  }
  if (isPostgresAddress(address)) return openPostgresStore({ connection: address, system, role, hints });
  if (isRedisAddress(address)) return openRedisStore({ connection: address, system });
  if (isMongoAddress(address)) {
    const fix =
      "MongoDB serves timeouts alone: use openTimeouts of curfew/timeouts, or sqlite: or postgres:// here";
    throw refuse("unknown_store", "store", hidePassword(address), fix);
  }
  throw unknownStore(address);
}

function isPostgresAddress(address: unknown): boolean {
  return typeof address === "string" && /^postgres(ql)?:\/\//.test(address);
}

/** Without this, an address that nothing uses would seem to work. */
function checkHints(hints: unknown, store: unknown): void {
  if (hints === undefined) return;
  if (!isPostgresAddress(hints)) {
    const shown = typeof hints === "string" ? hidePassword(hints) : hints;
    throw refuse("invalid_option", "hints", shown, "write the address of the server, postgres://…");
  }
  if (!isPostgresAddress(store))
    throw refuse("invalid_option", "hints", "given", "it goes with a store of the form postgres://… only");
}

export type { MongoTimeoutsOptions };

export function isRedisAddress(address: string): boolean {
  return /^(redis|valkey)s?:\/\//.test(address);
}

export function isMongoAddress(address: string): boolean {
  return /^mongodb(\+srv)?:\/\//.test(address);
}

/** Opens a timeout store on MongoDB. Nothing of the driver is loaded before this call. */
export async function openMongoTimeouts(
  options: MongoTimeoutsOptions & { readonly logger: Logger },
): Promise<MongoTimeoutStore> {
  const mongodb = await import("./stores/mongodb/open-mongodb.ts");
  return mongodb.openMongoTimeouts(options);
}

/** Opens a SQLite store with what an address cannot say: your own database, whose copy of SQLite it shares. */
export async function openSqliteStore(options: FileOptions & { readonly system?: System }): Promise<Store> {
  refuseUnknownKeys(options, "options", SQLITE_KEYS);
  const sqlite = await import("./stores/sqlite/sqlite-store.ts");
  return sqlite.openSqliteStore({ system: onThisMachine(), ...options });
}

/** Opens a PostgreSQL store with options that an address cannot express, such as your own pool or another schema. */
export async function openPostgresStore(
  options: Omit<PostgresStoreOptions, "system"> & { readonly system?: System },
): Promise<Store> {
  const postgres = await import("./stores/postgres/postgres-store.ts");
  return postgres.openPostgresStore({ system: realSystem, ...options });
}

/** Opens a store on Redis or Valkey with options that need no address to carry them. */
export async function openRedisStore(
  options: Omit<RedisStoreOptions, "system"> & { readonly system?: System },
): Promise<Store> {
  const redis = await import("./stores/redis/open-redis.ts");
  return redis.openRedisStore({ system: realSystem, ...options });
}

/**
 * Copies a SQLite file as it is at one moment into a new file, while engines work on it. Pass the engine if it runs in
 * this process, else the path or the address of the file.
 */
export async function backupSqlite(from: Engine | Store | string, to: string): Promise<BackupResult> {
  const { Engine } = await engineModule();
  const { backup } = await import("./stores/sqlite/backup.ts");
  return backup(from instanceof Engine ? from.store : from, to, onThisMachine());
}

/**
 * Puts a backup in the place of a SQLite file, which no process may have open. The file that was there is kept under
 * another name, which is returned.
 */
export async function restoreSqlite(from: string, to: string): Promise<RestoreResult> {
  const { restore } = await import("./stores/sqlite/backup.ts");
  return restore(from, to, onThisMachine());
}

/** Reads which migrations a store still needs, and changes nothing; Redis has none. `schema` is for PostgreSQL. */
export async function planMigrations(
  address: string,
  { schema }: { readonly schema?: string | undefined } = {},
): Promise<MigrationPlan> {
  if (address.startsWith("sqlite:")) {
    const { planSqliteMigrations } = await import("./stores/sqlite/plan-migrations.ts");
    return planSqliteMigrations(address.slice("sqlite:".length), onThisMachine());
  }
  if (isRedisAddress(address)) return { applied: [], pending: [] };
  if (!isPostgresAddress(address)) throw unknownStore(address);
  const { planPostgresMigrations } = await import("./stores/postgres/plan-migrations.ts");
  return planPostgresMigrations(address, onThisMachine(), schema);
}

/** Retries while a database is unreachable. Other errors, such as a wrong password or a newer schema, are final. */
export async function retryUnreachable<Value>(
  open: () => Promise<Value>,
  within: number,
  system: System,
  logger: Logger,
): Promise<Value> {
  const givesUpAt = system.monotonic() + within;
  for (let tries = 1; ; tries++) {
    try {
      return await open();
    } catch (error) {
      const delay = backoff(tries, BACKOFF);
      if (!isUnreachable(error) || system.monotonic() + delay > givesUpAt) throw error;
      logger.warn({ error, delay }, "cannot reach the store yet; trying again");
      await rest(system, delay);
    }
  }
}

/** Codes of the network, and of a PostgreSQL that is starting, stopping, full, or still a standby. */
const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EAI_AGAIN",
  // A container's name is unknown until its service is up.
  "ENOTFOUND",
  "EPIPE",
  "57P01",
  "57P02",
  "57P03",
  "53300",
  "25006",
]);

/** A Redis that is starting, still a replica, or between two masters; and Sentinels that are not there yet. */
const NOT_YET =
  /^All sentinels are unreachable.* Last error: (?!ERR No such master)|^(Too many Cluster redirections\. Last error: \w*Error: )?(READONLY|LOADING|CLUSTERDOWN|MASTERDOWN)\b/;

function isUnreachable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string" && UNREACHABLE.has(at.code)) return true;
    // The driver gives no code when a connection ends during or right after its handshake.
    if (/^Connection terminated|^timeout expired|^Client has encountered a connection error/.test(at.message))
      return true;
    if (NOT_YET.test(at.message)) return true;
    if (at instanceof AggregateError && at.errors.some(isUnreachable)) return true;
  }
  return false;
}

/** Wall clock at the start plus monotonic time: a store in this process must not jump with the machine's clock. */
function monotonicWall(system: System): () => number {
  const offset = system.wall() - system.monotonic();
  return () => Math.floor(system.monotonic() + offset);
}

export function unknownStore(address: unknown): CurfewError {
  const shown = typeof address === "string" ? hidePassword(address) : address;
  return refuse(
    "unknown_store",
    "store",
    shown,
    'write "memory:", "sqlite:path", "postgres://…" or "redis://…"',
  );
}

/**
 * An address as it may be shown. Everything up to the last `@` is masked, because a password may hold `@`, `/` and `?`, and
 * so are passwords in the query.
 */
export function hidePassword(address: string): string {
  return address.replace(/([?&](?:ssl)?pass(?:word|wd)?=)[^&#]*/gi, "$1***").replace(/\/\/.*@/s, "//***@");
}
