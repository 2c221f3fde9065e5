import type pg from "pg";
import { refuse } from "../../core/errors.ts";
import { ifMissing } from "../../core/load-package.ts";
import type { System } from "../../ports/system.ts";
import { type ClientLike, type PooledClient, type PoolLike, readOnly, timedOut } from "./session.ts";

/** A server that does not complete a connection within this time counts as gone. */
const CONNECT_LIMIT = 4_000;
/** The first probe of an idle connection by the system. A peer that does not answer ten of them, one a second, is gone. */
const KEEPALIVE_DELAY = 5_000;

const ADDRESS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([^?]*)(?:\?(.*))?$/s;
/** Values of `target_session_attrs` that name a server which takes writes. The store needs one in any case. */
const WRITABLE = new Set(["any", "read-write", "primary"]);

/** Splits an address with several hosts, as libpq reads it, into one address per host. */
export function addressesOf(connectionString: string): string[] {
  const [, start = "", hosts = "", path = "", query = ""] = ADDRESS.exec(connectionString) ?? [];
  const parameters = query.split("&").filter((parameter) => parameter !== "");
  const wanted = parameters.filter((parameter) => parameter.startsWith(`${TARGET}=`));
  for (const parameter of wanted) checkTarget(decodeURIComponent(parameter.slice(TARGET.length + 1)));
  const names = hosts.split(",");
  if (names.length === 1 && wanted.length === 0) return [connectionString];
  if (names.length > 1 && names.includes("")) {
    throw refuse(
      "invalid_option",
      "connection",
      hosts,
      "name each host once, as in postgres://one,two/database",
    );
  }
  const rest = parameters.filter((parameter) => !wanted.includes(parameter)).join("&");
  return names.map((name) => `${start}${name}${path}${rest === "" ? "" : `?${rest}`}`);
}

const TARGET = "target_session_attrs";

function checkTarget(value: string): void {
  if (WRITABLE.has(value)) return;
  throw refuse("invalid_option", TARGET, value, 'the store writes: use "read-write", or leave it out');
}

/** Clients of the store's own, one for each call. It tries all hosts of its address, that of the last success first. */
export class OwnPool implements PoolLike {
  readonly #driver: typeof pg;
  readonly #addresses: readonly string[];
  readonly #dialling = new Set<pg.Client>();
  #first = 0;
  #isClosed = false;

  /** Loads the driver, which a user's own pool does not need. */
  static async load(connectionString: string): Promise<OwnPool> {
    const { default: driver } = await import("pg").catch(ifMissing("pg", "The PostgreSQL store"));
    return new OwnPool(driver, connectionString);
  }

  private constructor(driver: typeof pg, connectionString: string) {
    this.#driver = driver;
    this.#addresses = addressesOf(connectionString);
  }

  async connect(): Promise<PooledClient> {
    const count = this.#addresses.length;
    if (count === 1) return this.#dial(this.#addresses[0] as string);
    const first = this.#first;
    const failures: Error[] = [];
    for (let tries = 0; tries < count && !this.#isClosed; tries++) {
      const at = (first + tries) % count;
      try {
        const client = await this.#dial(this.#addresses[at] as string);
        await this.#checkWritable(client);
        this.#first = at;
        return client;
      } catch (error) {
        failures.push(error as Error);
      }
    }
    const says = failures.map(
      ({ message }, index) => `${hostOf(this.#addresses[(first + index) % count])}: ${message}`,
    );
    throw new AggregateError(failures, `no host takes writes (${says.join("; ")})`);
  }

  /** Ends connections that are being made. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.#dialling) hangUp(client as ClientLike as PooledClient);
  }

  async #dial(connectionString: string): Promise<PooledClient> {
    const client = new this.#driver.Client({
      connectionString,
      application_name: "curfew",
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_DELAY,
      connectionTimeoutMillis: CONNECT_LIMIT,
    });
    // An unhandled error between two queries would end the process. The connection notices the loss by "end".
    client.on("error", () => {});
    this.#dialling.add(client);
    try {
      await client.connect();
    } finally {
      this.#dialling.delete(client);
    }
    const release = () => void client.end().catch(() => {});
    return Object.assign(client as ClientLike as PooledClient, { release });
  }

  async #checkWritable(client: PooledClient): Promise<void> {
    const query = {
      text: "show transaction_read_only",
      rowMode: "array",
      types: this.#driver.types,
    } as const;
    try {
      const { rows } = await client.query({ ...query, query_timeout: CONNECT_LIMIT });
      if (rows[0]?.[0] === "on") throw readOnly();
    } catch (error) {
      client.release(true);
      hangUp(client);
      throw error;
    }
  }
}

function hostOf(address: string | undefined): string {
  return ADDRESS.exec(address ?? "")?.[2] ?? "";
}

/** Closes a socket at once. A client that ends in order waits for its server, which may be gone. */
export function hangUp(client: PooledClient): void {
  client.connection?.stream?.destroy();
}

/**
 * A user's pool with a limit on each connect. Without one, a server that vanished would keep a connect, and its place
 * in the pool, for ever.
 */
export class BorrowedPool implements PoolLike {
  readonly #pool: PoolLike & { options?: { connectionTimeoutMillis?: number } };
  readonly #system: Pick<System, "after">;
  #limited = 0;
  #given: number | undefined;

  constructor(pool: PoolLike, system: Pick<System, "after">) {
    this.#pool = pool;
    this.#system = system;
  }

  connect(): Promise<PooledClient> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      // The pool's own limit comes first and also ends the connect. This one is for pools that have none.
      const timer = this.#system.after(CONNECT_LIMIT + 500, () => {
        isLate = true;
        reject(timedOut(`the pool gave no connection within ${CONNECT_LIMIT / 1_000} s`));
      });
      this.#connect().then(
        (client) => {
          timer.cancel();
          if (isLate) client.release(false);
          else resolve(client);
        },
        (error: unknown) => {
          timer.cancel();
          reject(error as Error);
        },
      );
    });
  }

  /** Sets the pool's `connectionTimeoutMillis` for one tick, in which the pool reads it, and puts the old one back. */
  #connect(): Promise<PooledClient> {
    const { options } = this.#pool;
    if (!options) return this.#pool.connect();
    const isLimited = options.connectionTimeoutMillis && options.connectionTimeoutMillis <= CONNECT_LIMIT;
    if (isLimited && this.#limited === 0) return this.#pool.connect();
    if (this.#limited === 0) this.#given = options.connectionTimeoutMillis;
    this.#limited += 1;
    options.connectionTimeoutMillis = CONNECT_LIMIT;
    try {
      return this.#pool.connect();
    } finally {
      process.nextTick(() => {
        this.#limited -= 1;
        if (this.#limited > 0) return;
        if (this.#given === undefined) delete options.connectionTimeoutMillis;
        else options.connectionTimeoutMillis = this.#given;
      });
    }
  }
}
