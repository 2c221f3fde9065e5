import pg from "pg";
import { CurfewError } from "../../core/errors.ts";
import type { BatchSize } from "../sql/batches.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import type { Statement } from "./statements.ts";

/** The part of a `pg` client that the store uses, so that any compatible client works and a fake is small. */
export interface ClientLike {
  query(config: QueryLike): Promise<{ readonly rows: unknown[][] }>;
}

interface QueryLike {
  name?: string;
  text: string;
  values?: unknown[];
  rowMode: "array";
  types: { getTypeParser(oid: number): (text: string) => unknown };
}

/** A client from a pool. */
export interface PooledClient extends ClientLike {
  on(event: "error" | "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: NotificationLike) => void): unknown;
  release(destroy: boolean): void;
}

export interface NotificationLike {
  readonly processId: number;
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** A `pg` pool, or anything like it. The store keeps its clients until it is closed. */
export interface PoolLike {
  connect(): Promise<PooledClient>;
}

/**
 * The most that one statement carries. A larger text costs several times its size in memory on both sides, without a
 * gain.
 */
export const STATEMENT: BatchSize = { items: 1_000, text: 4_000_000 };

const CONNECT_TIMEOUT = 10_000;
/** A server that does not answer within this time counts as lost. No statement of the store takes even a second. */
const ANSWER_TIMEOUT = 60_000;

/** Connects by a connection string, in the form of a pool that lends each client once. */
export function poolOf(connectionString: string): PoolLike {
  return {
    async connect() {
      const client = new pg.Client({
        connectionString,
        application_name: "curfew",
        keepAlive: true,
        connectionTimeoutMillis: CONNECT_TIMEOUT,
        query_timeout: ANSWER_TIMEOUT,
      });
      // An unhandled error between two queries would end the process. The connection notices the loss by "end".
      client.on("error", () => {});
      await client.connect();
      const release = () => void client.end().catch(() => {});
      return Object.assign(client as ClientLike as PooledClient, { release });
    },
  };
}

const INTEGERS = new Set([20, 21, 23]);
const toNumber = (text: string): unknown => Number(text);
const toText = (text: string): unknown => text;

/** Passed with each query, because a user of the same `pg` may have changed the parsers of the process. */
const TYPES = { getTypeParser: (oid: number) => (INTEGERS.has(oid) ? toNumber : toText) };

/** Runs statements: a session, or a connection group that picks a connection. */
export interface Runner {
  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]>;
}

/** Replaces the schema name in statements. Cached per statement. */
export type SchemaBinding = (text: string) => string;

export function bindSchema(schema: string): SchemaBinding {
  const bound = new Map<string, string>();
  return (text) => {
    let result = bound.get(text);
    if (result === undefined) {
      result = text.replaceAll(/\bcurfew\./g, `"${schema}".`);
      bound.set(text, result);
    }
    return result;
  };
}

/**
 * One connection, one statement at a time. Statements are prepared by name only if the connection belongs to the
 * store.
 */
export class Session implements Runner {
  readonly #client: ClientLike;
  readonly #bind: SchemaBinding;
  readonly #isOwn: boolean;
  #lastRun: Promise<unknown> = Promise.resolve();

  constructor(client: ClientLike, bind: SchemaBinding, isOwn: boolean) {
    this.#client = client;
    this.#bind = bind;
    this.#isOwn = isOwn;
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    const query: QueryLike = { text: this.#bind(statement.text), rowMode: "array", types: TYPES };
    if (statement.name !== undefined && this.#isOwn) query.name = statement.name;
    if (values) query.values = values;
    const run = this.#lastRun.then(() => this.#query(query));
    this.#lastRun = run.then(ignore, ignore);
    return run;
  }

  async #query(query: QueryLike): Promise<SqlRow[]> {
    try {
      return (await this.#client.query(query)).rows;
    } catch (cause) {
      throw failure(cause);
    }
  }

  /**
   * Runs text that is not one of the store's statements: settings, transaction control. It may contain several
   * commands.
   */
  async execute(text: string): Promise<void> {
    await this.run({ text });
  }
}

function failure(cause: unknown): CurfewError {
  const message = cause instanceof Error && cause.message !== "" ? cause.message : String(cause);
  return new CurfewError("store_failed", `PostgreSQL: ${message}`, { cause });
}

/** The SQLSTATE of a failure; undefined if the server did not answer. */
export function sqlState(error: unknown): string | undefined {
  const cause = error instanceof CurfewError ? error.cause : undefined;
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Whether the connection is unusable after a failure. It is still usable only if the server answered. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof CurfewError) || error.code !== "store_failed") return false;
  const state = sqlState(error);
  return state === undefined || state.startsWith("57P") || state.startsWith("08");
}

export interface ConnectionOptions {
  readonly pool: PoolLike;
  readonly bind: SchemaBinding;
  /** Runs on each new connection before anything else. */
  readonly prepare: (session: Session, client: PooledClient) => Promise<void>;
  readonly onLost?: () => void;
}

interface Connected {
  readonly session: Session;
  readonly client: PooledClient;
}

/**
 * One connection of the store, opened at its first use and again after it was lost. Work runs one after the other, so
 * a transaction never contains statements of other work.
 */
export class Connection implements Runner {
  readonly #options: ConnectionOptions;
  #connected: Promise<Connected> | null = null;
  #lastRun: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /** How much work runs or waits. */
  load = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    return this.use((session) => session.run(statement, values));
  }

  /** All or nothing: if `work` throws, its writes are rolled back. */
  transaction<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    return this.use(async (session) => {
      await session.execute("begin");
      try {
        const result = await work(session);
        await session.execute("commit");
        return result;
      } catch (error) {
        if (!isConnectionLost(error)) await session.execute("rollback");
        throw error;
      }
    });
  }

  use<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    this.load += 1;
    const run = this.#lastRun.then(() => this.#work(work));
    this.#lastRun = run.then(ignore, ignore);
    return run;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lastRun;
    this.#drop();
  }

  async #work<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    try {
      if (this.#isClosed) throw new CurfewError("closed", "The PostgreSQL store is closed");
      const { session } = await this.#current();
      return await work(session);
    } catch (error) {
      if (isConnectionLost(error)) this.#drop();
      throw error;
    } finally {
      this.load -= 1;
    }
  }

  /** The connection, or a new one. A failed connect is not cached, so the next work tries again. */
  async #current(): Promise<Connected> {
    const connected = this.#connected ?? this.#connect();
    this.#connected = connected;
    try {
      return await connected;
    } catch (error) {
      if (this.#connected === connected) this.#connected = null;
      throw error;
    }
  }

  async #connect(): Promise<Connected> {
    const { pool, bind, prepare } = this.#options;
    const client = await pool.connect().catch((cause: unknown) => {
      throw failure(cause);
    });
    const session = new Session(client, bind, true);
    // A pool removes its own error listener when it lends a client, and an unhandled error ends the process.
    client.on("error", () => this.#forget(session));
    client.on("end", () => this.#forget(session));
    try {
      await prepare(session, client);
    } catch (error) {
      client.release(true);
      throw error;
    }
    return { session, client };
  }

  /** The connection ended by itself. The next work opens another. */
  #forget(session: Session): void {
    const connected = this.#connected;
    void connected?.then((current) => {
      if (current.session === session && this.#connected === connected) this.#drop();
    }, ignore);
  }

  #drop(): void {
    const connected = this.#connected;
    if (!connected) return;
    this.#connected = null;
    // Settings and prepared statements stay with a client, so it is destroyed and not returned to the pool.
    void connected.then(({ client }) => {
      client.release(true);
      if (!this.#isClosed) this.#options.onLost?.();
    }, ignore);
  }
}

function ignore(): void {}

/** Connections for the same kind of work. Each piece of work goes to the one with the least load. */
export class ConnectionGroup implements Runner {
  readonly #connections: readonly Connection[];

  constructor(size: number, options: ConnectionOptions) {
    this.#connections = Array.from({ length: size }, () => new Connection(options));
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    return this.#next().run(statement, values);
  }

  transaction<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    return this.#next().transaction(work);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #next(): Connection {
    return this.#connections.reduce((best, next) => (next.load < best.load ? next : best));
  }
}

/** Serialisation failure and deadlock: the server rolled everything back, and the work can be repeated. */
const REPEATABLE = new Set(["40001", "40P01"]);
const MOST_REPEATS = 10;

/** Repeats work that the server rolled back in favour of another transaction. */
export async function withRepeats<Result>(
  work: () => Promise<Result>,
  repeatable: ReadonlySet<string> = REPEATABLE,
): Promise<Result> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await work();
    } catch (error) {
      const state = sqlState(error);
      if (state === undefined || !repeatable.has(state) || repeats >= MOST_REPEATS) throw error;
    }
  }
}
