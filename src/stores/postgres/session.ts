import { CurfewError } from "../../core/errors.ts";
import type { System, Timer } from "../../ports/system.ts";
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
  query_timeout?: number;
}

/** A client from a pool. */
export interface PooledClient extends ClientLike {
  on(event: "error" | "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: NotificationLike) => void): unknown;
  on(event: "notice", listener: (notice: NoticeLike) => void): unknown;
  release(destroy: boolean): void;
  /** The process of the server as the handshake named it. A pooler names another one. */
  readonly processID?: number | null;
  /** The socket, so that one whose server is gone can be closed at once. */
  readonly connection?: { readonly stream?: { destroy(): unknown } };
}

export interface NotificationLike {
  readonly processId: number;
  readonly channel: string;
  readonly payload?: string | undefined;
}

interface NoticeLike {
  /** The function of the server that sent the notice. */
  readonly routine?: string | undefined;
}

/** A `pg` pool, or anything like it. The store keeps its clients until it is closed. */
export interface PoolLike {
  connect(): Promise<PooledClient>;
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

/** How long a session waits for an answer. */
export interface AnswerLimit {
  readonly system: Pick<System, "after">;
  readonly limit: number;
  /** Whether each statement may run in another session, so that none is prepared by name. */
  readonly isPooled?: boolean;
}

/** An answer that is here when the limit is over is still read: timers come first after a standstill of the process. */
const READ_ANSWER = 250;

/**
 * One connection, one statement at a time. Statements are prepared by name, and answers limited in time, only if the
 * connection belongs to the store.
 */
export class Session implements Runner {
  readonly #client: ClientLike;
  readonly #bind: SchemaBinding;
  readonly #answers: AnswerLimit | undefined;
  #limit: number;
  #lastRun: Promise<unknown> = Promise.resolve();
  #timer: Timer | undefined;
  #hurried: Timer | undefined;
  #giveUp: (() => void) | undefined;
  #isUnreplicated = false;

  constructor(client: ClientLike, bind: SchemaBinding, answers?: AnswerLimit) {
    this.#client = client;
    this.#bind = bind;
    this.#answers = answers;
    this.#limit = answers?.limit ?? 0;
  }

  run(statement: Statement, values?: unknown[]): Promise<SqlRow[]> {
    const query: QueryLike = { text: this.#bind(statement.text), rowMode: "array", types: TYPES };
    if (statement.name !== undefined && this.#answers && !this.#answers.isPooled) query.name = statement.name;
    if (values) query.values = values;
    const run = this.#lastRun.then(() => this.#query(query));
    this.#lastRun = run.then(ignore, ignore);
    return run;
  }

  async #query(query: QueryLike): Promise<SqlRow[]> {
    try {
      const { rows } = await this.#answer(query);
      if (this.#isUnreplicated) throw new Error(UNREPLICATED);
      return rows;
    } catch (cause) {
      throw failure(cause);
    }
  }

  #answer(query: QueryLike): Promise<{ readonly rows: unknown[][] }> {
    if (!this.#answers) return this.#client.query(query);
    return new Promise((resolve, reject) => {
      this.#giveUp = () => reject(timedOut("the server does not answer"));
      this.#arm(this.#answers as AnswerLimit);
      const end = () => {
        this.#timer?.cancel();
        this.#hurried?.cancel();
        this.#hurried = undefined;
        this.#giveUp = undefined;
      };
      this.#client.query(query).then(
        (result) => {
          end();
          resolve(result);
        },
        (error: unknown) => {
          end();
          reject(error as Error);
        },
      );
    });
  }

  #arm({ system }: AnswerLimit): void {
    this.#timer = system.after(this.#limit, () => {
      this.#timer = system.after(READ_ANSWER, () => this.#giveUp?.());
    });
  }

  /** Waits for a running statement no longer than this from now on. */
  hurry(limit: number): void {
    if (!this.#giveUp || this.#hurried) return;
    this.#hurried = this.#answers?.system.after(limit, () => this.#giveUp?.());
  }

  /** Runs work whose statements may each take this long. */
  async patiently<Result>(limit: number, work: () => Promise<Result>): Promise<Result> {
    const usual = this.#limit;
    this.#limit = limit;
    try {
      return await work();
    } finally {
      this.#limit = usual;
    }
  }

  /** Heard a notice. A commit whose wait for its standby was cancelled is not acknowledged. */
  heard({ routine }: NoticeLike): void {
    if (routine === "SyncRepWaitForLSN") this.#isUnreplicated = true;
  }

  /**
   * Runs text that is not one of the store's statements: settings, transaction control. It may contain several
   * commands.
   */
  async execute(text: string): Promise<void> {
    await this.run({ text });
  }
}

const UNREPLICATED = "a commit did not wait for its synchronous standby, so a failover may lose it";

/** SQLSTATEs of a prepared statement that is unknown or known already. Only a pooler between causes them. */
const FOREIGN_SESSION = new Set(["26000", "42P05"]);

export function failure(cause: unknown): CurfewError {
  const message = cause instanceof Error && cause.message !== "" ? cause.message : String(cause);
  const fix = FOREIGN_SESSION.has(codeOf(cause) ?? "") ? `; ${POOL_SESSIONS}` : "";
  return new CurfewError("store_failed", `PostgreSQL: ${message}${fix}`, { cause });
}

export const POOL_SESSIONS = "a pooler in between must pool sessions (pool_mode = session), not transactions";

function codeOf(cause: unknown): string | undefined {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** The SQLSTATE of a failure; undefined if the server did not answer. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof CurfewError ? codeOf(error.cause) : undefined;
}

/**
 * Whether the connection is unusable after a failure. It is still usable only if the server answered, and takes
 * writes: one that led to a standby would refuse them for ever.
 */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof CurfewError) || error.code !== "store_failed") return false;
  const state = sqlState(error);
  if (state === undefined || state === READ_ONLY || FOREIGN_SESSION.has(state)) return true;
  return state.startsWith("57P") || state.startsWith("08");
}

/** Whether the server gave no answer at all in time. */
export function isSilence(error: unknown): boolean {
  if (!(error instanceof CurfewError)) return false;
  const { cause } = error;
  return typeof cause === "object" && cause !== null && "code" in cause && cause.code === "ETIMEDOUT";
}

/** The SQLSTATE of a write on a standby or in a read-only session. */
const READ_ONLY = "25006";

/** What a session is refused with that takes no writes. It has the code of the server's own answer. */
export function readOnly(): Error {
  return Object.assign(new Error("the server is a standby or read-only"), { code: READ_ONLY });
}

/** A failure with the code of the network, so that an opening is tried again. */
export function timedOut(message: string): Error {
  return Object.assign(new Error(message), { code: "ETIMEDOUT" });
}

export function ignore(): void {}
