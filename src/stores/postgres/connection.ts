import pg from "pg";
import { CurfewError } from "../../core/errors.ts";
import type { BatchSize } from "../sql/batches.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import type { Statement } from "./statements.ts";

/** The part of a `pg` client that the store uses, so that any compatible client fits and a fake is small. */
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

/** A client that a pool lends out. */
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

/** A `pg` pool, or anything like one. The store keeps its clients until it is closed. */
export interface PoolLike {
  connect(): Promise<PooledClient>;
}

/** What one statement takes. A larger text costs memory on both sides several times over, and gains nothing. */
export const STATEMENT: BatchSize = { items: 1_000, text: 4_000_000 };

const CONNECT_TIMEOUT = 10_000;
/** A server that does not answer for so long is taken for lost: no statement of the store takes even a second. */
const ANSWER_TIMEOUT = 60_000;

/** Connects by a connection string, in the shape of a pool that lends each client once. */
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
      // An error between two queries would end the process if nobody listened; the lane hears of it by "end".
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

/** Given with each query, because a user of the same `pg` may have changed its parsers for the whole process. */
const TYPES = { getTypeParser: (oid: number) => (INTEGERS.has(oid) ? toNumber : toText) };

/** Whatever runs statements: a session, or a group of lanes that picks one. */
export interface Runner {
  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]>;
}

/** Puts a schema's name into the statements, once for each. */
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

/** One connection, one statement at a time. Statements are prepared by name where the connection is the store's own. */
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

  /** Runs text that is no statement of ours: settings, transaction control. Several commands may stand in one text. */
  async execute(text: string): Promise<void> {
    await this.run({ text });
  }
}

function failure(cause: unknown): CurfewError {
  const message = cause instanceof Error && cause.message !== "" ? cause.message : String(cause);
  return new CurfewError("store_failed", `PostgreSQL: ${message}`, { cause });
}

/** The SQLSTATE behind a failure, undefined where the server said nothing. */
export function sqlState(error: unknown): string | undefined {
  const cause = error instanceof CurfewError ? error.cause : undefined;
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** A failure after which the connection is of no use: none but the server's own answers leave it whole. */
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
 * One connection of the store's own, opened when it is first needed and again after it was lost. Work takes turns, so
 * a transaction never has a stranger's statement in its middle.
 */
export class Connection implements Runner {
  readonly #options: ConnectionOptions;
  #connected: Promise<Connected> | null = null;
  #lastTurn: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /** How many turns are taken or waited for. */
  load = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    return this.use((session) => session.run(statement, values));
  }

  /** All or nothing: what `work` wrote is undone if it throws. */
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
    const turn = this.#lastTurn.then(() => this.#work(work));
    this.#lastTurn = turn.then(ignore, ignore);
    return turn;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lastTurn;
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

  /** The connection, or a new one; a failure to connect is forgotten, so that the next turn tries again. */
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
    // A pool's own listener leaves when the pool lends the client out, and an error that nobody hears ends the process.
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

  /** The connection ended by itself: the next turn opens another. */
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
    // Session settings and prepared statements stay with a client, so it does not go back to whoever lent it.
    void connected.then(({ client }) => {
      client.release(true);
      if (!this.#isClosed) this.#options.onLost?.();
    }, ignore);
  }
}

function ignore(): void {}

/** Lanes that do the same work; each piece goes to the one with the least to do. */
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
    await Promise.all(this.#connections.map((lane) => lane.close()));
  }

  #next(): Connection {
    return this.#connections.reduce((best, lane) => (lane.load < best.load ? lane : best));
  }
}

/** Serialisation failure and deadlock: the server undid everything and asks to try again. */
const REPEATABLE = new Set(["40001", "40P01"]);
const MOST_REPEATS = 10;

/** Repeats work that the server undid in favour of somebody else's. */
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
