import { CurfewError } from "../../core/errors.ts";
import { type System, type Timer, within } from "../../ports/system.ts";
import type { BatchSize } from "../sql/batches.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import { hangUp } from "./dial.ts";
import {
  failure,
  ignore,
  isConnectionLost,
  isSilence,
  type PooledClient,
  type PoolLike,
  type Runner,
  readOnly,
  type SchemaBinding,
  Session,
  sqlState,
} from "./session.ts";
import { END_BACKEND, ENTER_CLUSTER, IDENTIFY, type Statement } from "./statements.ts";

/**
 * The most that one statement carries. A larger text costs several times its size in memory on both sides, without a
 * gain.
 */
export const STATEMENT: BatchSize = { items: 1_000, text: 4_000_000 };

/** What the connections of a store share. */
export interface ConnectionContext {
  readonly pool: PoolLike;
  readonly bind: SchemaBinding;
  readonly system: Pick<System, "after">;
  readonly peers: Peers;
  /** Whether each transaction may run in another session of the server. */
  readonly isPooled?: boolean;
}

export interface ConnectionOptions extends ConnectionContext {
  /** Milliseconds that the server has to answer a statement. */
  readonly limit: number;
  /** Runs on each new connection before anything else. */
  readonly prepare: (session: Session, client: PooledClient) => Promise<void>;
  /** Behind a pooler of transactions: settings that each transaction makes for itself. */
  readonly local?: string;
  readonly onLost?: () => void;
}

interface Connected {
  readonly session: Session;
  readonly client: PooledClient;
  /** The process of the server, and when it started. */
  readonly backend: SqlRow;
}

/** When one connection gets no answer, the others run a statement for no longer than this. */
const SUSPECT_LIMIT = 1_500;
/** Milliseconds for running work to end when the store closes. */
const CLOSE_WORK = 500;
/** Milliseconds for a server to end its side of a connection. */
const CLOSE_SOCKET = 250;

/**
 * The connections of one store. A server that does not answer one of them is gone for the others too. Each finding
 * that out by itself would take the limit once more.
 */
export class Peers {
  readonly #connections = new Set<Connection>();

  add(connection: Connection): void {
    this.#connections.add(connection);
  }

  suspectAll(): void {
    for (const connection of this.#connections) connection.suspect();
  }
}

/**
 * One connection of the store, opened at its first use and again after it was lost. Work runs one after the other, so
 * a transaction never contains statements of other work.
 */
export class Connection implements Runner {
  readonly #options: ConnectionOptions;
  #connected: Promise<Connected> | null = null;
  #session: Session | undefined;
  /** A client that the server let in, and that is not ready for work. */
  #opening: PooledClient | undefined;
  /** The server's process of a connection that was given up. It may still run a statement, and hold its locks. */
  #abandoned: SqlRow | undefined;
  #lastRun: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  /**
   * Counts failed connects and servers that did not answer. Work that waited behind one fails with it: each piece would
   * otherwise wait out the limit again.
   */
  #outages = 0;
  #outage: unknown;
  #isOpen = false;
  /** Whether there was work since the last `rest`. */
  #isUsed = false;
  /** How much work runs or waits. */
  load = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    options.peers.add(this);
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    const work = (session: Session) => session.run(statement, values);
    return this.#options.local === undefined ? this.use(work) : this.transaction(work);
  }

  /** All or nothing: if `work` throws, its writes are rolled back. */
  transaction<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    return this.use(async (session) => {
      await session.execute(beginText(this.#options));
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
    this.#isUsed = true;
    const outages = this.#outages;
    const run = this.#lastRun
      .then(() => {
        if (outages !== this.#outages) throw this.#outage;
        return this.#work(work);
      })
      .finally(() => {
        this.load -= 1;
      });
    this.#lastRun = run.then(ignore, ignore);
    return run;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Connects, if it is not connected, without waiting for it. Work that comes meanwhile may go elsewhere. */
  open(): void {
    if (this.#isClosed) return;
    this.#isUsed = true;
    this.#current().catch(ignore);
  }

  /** Resolves when the work that was given to it so far has ended. */
  get ended(): Promise<unknown> {
    return this.#lastRun;
  }

  /** Closes the connection if nothing used it since the last call. The next work opens another. */
  rest(): void {
    if (this.load > 0) return;
    const connected = this.#isUsed ? null : this.#connected;
    this.#isUsed = false;
    if (!connected) return;
    this.#connected = null;
    this.#isOpen = false;
    void connected.then(({ client }) => endInOrder(client, this.#options.system), ignore);
  }

  /** The server may be gone: an idle connection is given up, and a busy one soon. */
  suspect(): void {
    if (this.load === 0) this.#drop();
    else this.#session?.hurry(SUSPECT_LIMIT);
  }

  /** Lets running work end for a moment. Then it is cut off: a server that is gone must not delay a close. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { system } = this.#options;
    await within(system, CLOSE_WORK, this.#lastRun);
    // A server that is gone may never let it in.
    const isInUse = this.load > 0 || !this.#isOpen;
    const connected = this.#connected;
    this.#connected = null;
    if (this.#opening) hangUp(this.#opening);
    if (isInUse) void connected?.then(({ client }) => giveUp(client), ignore);
    else await connected?.then(({ client }) => endInOrder(client, system), ignore);
  }

  async #work<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    try {
      if (this.#isClosed) throw closed();
      const { session } = await this.#current();
      // A pooler may lead to another cluster without closing this connection.
      if (this.#options.isPooled && this.#options.local === undefined) await enterCluster(session);
      return await work(session);
    } catch (error) {
      if (isConnectionLost(error)) this.#drop();
      if (isSilence(error)) {
        this.#failWaiting(error);
        this.#options.peers.suspectAll();
      }
      throw error;
    }
  }

  #failWaiting(error: unknown): void {
    this.#outages += 1;
    this.#outage = error;
  }

  /** The connection, or a new one. A failed connect is not cached, so the next work tries again. */
  async #current(): Promise<Connected> {
    const connected = this.#connected ?? this.#connect();
    this.#connected = connected;
    try {
      const current = await connected;
      this.#isOpen = this.#connected === connected;
      return current;
    } catch (error) {
      if (this.#connected === connected) this.#connected = null;
      this.#failWaiting(error);
      throw error;
    }
  }

  async #connect(): Promise<Connected> {
    const { pool, bind, system, limit, prepare, isPooled } = this.#options;
    const client = await pool.connect().catch((cause: unknown) => {
      throw failure(cause);
    });
    const session = new Session(client, bind, { system, limit, isPooled: isPooled ?? false });
    // A pool removes its own error listener when it lends a client, and an unhandled error ends the process.
    client.on("error", () => this.#forget(session));
    client.on("end", () => this.#forget(session));
    client.on("notice", (notice) => session.heard(notice));
    this.#session = session;
    this.#opening = client;
    try {
      if (this.#isClosed) throw closed();
      const [backend = []] = await session.run(IDENTIFY);
      if (backend[2] === "on") throw failure(readOnly());
      await this.#endAbandoned(session);
      await enterCluster(session);
      await prepare(session, client);
      return { session, client, backend };
    } catch (error) {
      giveUp(client);
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }

  /** Ends what the server may still do for the connection that this one replaces. */
  async #endAbandoned(session: Session): Promise<void> {
    const backend = this.#abandoned;
    // A pooler has given the process of the server to other programs.
    if (!backend || this.#options.isPooled) return;
    await session.run(END_BACKEND, backend.slice(0, 2)).catch((error: unknown) => {
      if (isConnectionLost(error)) throw error;
    });
    this.#abandoned = undefined;
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
    this.#isOpen = false;
    void connected.then(({ client, backend }) => {
      this.#abandoned = backend;
      giveUp(client);
      if (!this.#isClosed) this.#options.onLost?.();
    }, ignore);
  }
}

function closed(): CurfewError {
  return new CurfewError("closed", "The PostgreSQL store is closed");
}

/** One text, so that the settings of a transaction cost no round trip. A pooler may lead to another cluster each time. */
function beginText({ isPooled, local, bind }: ConnectionOptions): string {
  if (!isPooled) return "begin";
  const begin = "begin isolation level read committed";
  return local === undefined ? begin : `${begin}; ${local}; ${bind(ENTER_CLUSTER.text)}`;
}

/** SQLSTATEs of a schema or function that is missing: the store migrates first. */
const NOT_MIGRATED = new Set(["3F000", "42883"]);

/** What this connection writes must not be numbered as something was in another cluster. */
async function enterCluster(session: Session): Promise<void> {
  await session.run(ENTER_CLUSTER).catch((error: unknown) => {
    if (!NOT_MIGRATED.has(sqlState(error) ?? "")) throw error;
  });
}

/** Settings and prepared statements stay with a client, so it is destroyed and not returned to the pool. */
function giveUp(client: PooledClient): void {
  client.release(true);
  hangUp(client);
}

/** Resolves when the server has ended its side too, so that no socket is left. */
function endInOrder(client: PooledClient, system: Pick<System, "after">): Promise<void> {
  return new Promise((resolve) => {
    const timer: Timer = system.after(CLOSE_SOCKET, end, { keepAlive: true });
    function end(): void {
      timer.cancel();
      hangUp(client);
      resolve();
    }
    client.on("end", end);
    client.release(true);
  });
}

/** Work that comes seldom goes to another group, so that it costs no connection of its own. */
export interface StandIn {
  readonly group: ConnectionGroup;
  /** How many pieces of work it takes between two rests. More are worth a connection of their own. */
  readonly most: number;
}

/** Milliseconds that work waits for a stand-in. Opening a connection takes about as long, and 10 ms of the server's CPU. */
const STAND_IN_WITHIN = 10;
/** How often work waits for a stand-in between two rests before a connection is opened at once. */
const MOST_WAITED = 3;

/** Connections for the same kind of work. Each piece of work goes to the one with the least load. */
export class ConnectionGroup implements Runner {
  readonly #connections: readonly Connection[];
  readonly #system: Pick<System, "after">;
  readonly #standIn: StandIn | undefined;
  /** How often the stand-in took work, and how often work waited for it, since the last `rest`. */
  #stoodIn = 0;
  #waited = 0;

  constructor(size: number, options: ConnectionOptions, standIn?: StandIn) {
    this.#connections = Array.from({ length: size }, () => new Connection(options));
    this.#system = options.system;
    this.#standIn = standIn;
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    return this.#with((connection) => connection.run(statement, values));
  }

  transaction<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    return this.#with((connection) => connection.transaction(work));
  }

  /** Runs work on one connection, outside a transaction. */
  use<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    return this.#with((connection) => connection.use(work));
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  /** Closes connections that nothing used since the last call. */
  rest(): void {
    this.#stoodIn = 0;
    this.#waited = 0;
    for (const connection of this.#connections) connection.rest();
  }

  #with<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const best = this.#best();
    if (best.isOpen || !this.#standIn) return work(best);
    const other = this.#takeStandIn(this.#standIn);
    if (other) return work(other);
    return this.#standIn.group.#open.length === 0 ? work(best) : this.#withFirst(this.#standIn, work);
  }

  /**
   * Runs work on a connection of the stand-in as soon as one is free. After a while it goes to an own one, and waits for that
   * alone: a server that is gone must not cost it a connect and then another.
   */
  async #withFirst<Result>(
    standIn: StandIn,
    work: (connection: Connection) => Promise<Result>,
  ): Promise<Result> {
    this.#waited += 1;
    if (this.#waited > MOST_WAITED) return work(this.#best());
    const late = Promise.withResolvers<void>();
    let isLate = false;
    const timer = this.#system.after(STAND_IN_WITHIN, () => {
      isLate = true;
      late.resolve();
    });
    for (;;) {
      await Promise.race([late.promise, ...standIn.group.#open.map(({ ended }) => ended)]);
      const best = this.#best();
      const first = isLate || best.isOpen ? best : this.#takeStandIn(standIn);
      if (!first) continue;
      timer.cancel();
      return work(first);
    }
  }

  #takeStandIn({ group, most }: StandIn): Connection | undefined {
    const other = group.#open.find(({ load }) => load === 0);
    if (!other) return undefined;
    this.#stoodIn += 1;
    if (this.#stoodIn > most) this.#best().open();
    return other;
  }

  #best(): Connection {
    return this.#connections.reduce((best, next) => (next.load < best.load ? next : best));
  }

  get #open(): Connection[] {
    return this.#connections.filter(({ isOpen }) => isOpen);
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
