import { CurfewError } from "../../core/errors.ts";
import { encode, type Packed, Reader } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import type { FunctionName } from "./lua/library.ts";

/** The most items of one call: a function occupies its node while it runs. */
export const ITEMS_PER_CALL = 200;
/** The most items and characters of one call. */
export const CALL_SIZE = { items: ITEMS_PER_CALL, text: 1_000_000 };

/** The functions of one home. */
export class Home {
  readonly #connection: RedisConnection;
  readonly #keys: readonly [string, string];
  readonly #release: () => Promise<void>;
  #isClosed = false;

  constructor(connection: RedisConnection, key: string, release: () => Promise<void>) {
    this.#connection = connection;
    this.#release = release;
    // The second key never exists; see lua/base.ts.
    this.#keys = [key, `${key}:-`];
  }

  get channel(): string {
    return `${this.#keys[0]}:hints`;
  }

  /** Reads, or writes what need not survive a failover: a claim that is undone is claimed again. */
  async call(name: FunctionName, value: Packed): Promise<Reader> {
    this.assertOpen();
    return new Reader(await this.#connection.call(name, this.#keys, encode(value), false));
  }

  /** Writes, and resolves when the write is as durable as the store promises. */
  async write(name: FunctionName, value: Packed): Promise<Reader> {
    this.assertOpen();
    return new Reader(await this.#connection.call(name, this.#keys, encode(value), true));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#release();
  }

  assertOpen(): void {
    if (this.#isClosed) throw new CurfewError("closed", "The Redis store is closed");
  }
}
