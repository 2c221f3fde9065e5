import type { Hint } from "../../ports/store.ts";
import { decode } from "./codec.ts";
import { closeClient, type RedisLike } from "./redis-package.ts";

type Listener = (hint: Hint) => void;

/** Listens to the channels of homes over one connection, or one per node of a cluster. */
export class HintChannels {
  readonly #dial: () => Promise<RedisLike>;
  readonly #isCluster: boolean;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #subscribed = new Map<string, Promise<unknown>>();
  #client: Promise<RedisLike> | undefined;
  #isClosed = false;

  constructor(dial: () => Promise<RedisLike>, isCluster: boolean) {
    this.#dial = dial;
    this.#isCluster = isCluster;
  }

  async listen(channel: string, onHint: Listener): Promise<AsyncDisposable> {
    // A new function, so that a callback that is registered twice is called twice and removed once.
    const listener: Listener = (hint) => onHint(hint);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    try {
      await this.#subscribe(channel);
    } catch (error) {
      listeners.delete(listener);
      throw error;
    }
    return {
      [Symbol.asyncDispose]: async () => {
        listeners.delete(listener);
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    const client = await this.#client?.catch(() => undefined);
    if (client) closeClient(client);
  }

  /**
   * Connects anew. A server that stands still keeps this connection, which waits for nothing: that it was replaced shows on
   * the connection of commands alone.
   */
  async renew(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    if (client) this.#reconnect(client);
  }

  /** One that is not ready connects already, and ioredis would give up on it for good. */
  #reconnect(client: RedisLike): void {
    if (!this.#isClosed && client.status === "ready") client.disconnect(true);
  }

  #subscribe(channel: string): Promise<unknown> {
    let subscribed = this.#subscribed.get(channel);
    if (!subscribed) {
      subscribed = this.#connect().then((client) =>
        this.#isCluster ? client.ssubscribe(channel) : client.subscribe(channel),
      );
      this.#subscribed.set(channel, subscribed);
      subscribed.catch(() => this.#subscribed.delete(channel));
    }
    return subscribed;
  }

  #connect(): Promise<RedisLike> {
    if (!this.#client) {
      this.#client = this.#dial().then((client) => {
        const hear = (channel: Buffer, message: Buffer) => this.#hear(channel.toString(), message);
        client.on(this.#isCluster ? "smessageBuffer" : "messageBuffer", hear);
        this.#watch(client);
        if (this.#isClosed) closeClient(client);
        return client;
      });
      this.#client.catch(() => {
        this.#client = undefined;
      });
    }
    return this.#client;
  }

  /** What is published while a connection is away is lost. */
  #watch(client: RedisLike): void {
    let wasLost = false;
    client.on("close", () => {
      wasLost = true;
    });
    client.on("ready", () => {
      if (wasLost) void this.#resubscribe(client);
      wasLost = false;
    });
    // A node of a cluster came or went, so some channels have moved.
    if (this.#isCluster) client.on("-node", () => this.#notifyAll({ missed: true }));
  }

  /** Listeners ask for what they missed once nothing more can be missed. */
  async #resubscribe(client: RedisLike): Promise<void> {
    const channels = [...this.#subscribed.keys()];
    try {
      // A cluster does it by itself.
      if (!this.#isCluster && channels.length > 0) await client.subscribe(...channels);
      this.#notifyAll({ missed: true });
    } catch {
      // The next connection subscribes. A busy server may leave the subscription unanswered on one that stays open: without
      // a new one, no hint would come any more.
      this.#reconnect(client);
    }
  }

  #notifyAll(hint: Hint): void {
    for (const listeners of this.#listeners.values()) for (const listener of listeners) listener(hint);
  }

  #hear(channel: string, message: Buffer): void {
    const listeners = this.#listeners.get(channel);
    if (!listeners || listeners.size === 0) return;
    const parts = decode(message) as (string | number)[];
    for (let at = 0; at < parts.length; at += 2) {
      const hint = hintOf(parts[at] as string, parts[at + 1] as string | number);
      for (const listener of listeners) listener(hint);
    }
  }
}

function hintOf(kind: string, value: string | number): Hint {
  if (kind === "t") return { timeouts: value as number };
  const name = value as string;
  return kind === "r" ? { ready: name } : kind === "s" ? { settled: name } : { lost: name };
}
