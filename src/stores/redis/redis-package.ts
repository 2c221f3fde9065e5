/*
 * The part of ioredis that the store uses. Its own types are not named here, so that a program without the package compiles.
 */

export type RedisArgument = string | number | Buffer;

export interface RedisLike {
  readonly status: string;
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  callBuffer(command: string, ...args: RedisArgument[]): Promise<unknown>;
  pipeline(): RedisPipeline;
  connect(): Promise<void>;
  /** Closes the connection for good, or to connect again. */
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: never[]) => void): unknown;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  sunsubscribe(...channels: string[]): Promise<unknown>;
  /** Only a cluster has it. */
  nodes?(role: "master" | "slave" | "all"): RedisLike[];
  refreshSlotsCache?(): void;
}

export interface RedisPipeline {
  callBuffer(command: string, ...args: RedisArgument[]): RedisPipeline;
  call(command: string, ...args: RedisArgument[]): RedisPipeline;
  exec(): Promise<[Error | null, unknown][] | null>;
}

/** What is needed of the package. */
export interface RedisPackage {
  readonly Redis: new (options: object) => RedisLike;
  readonly Cluster: new (nodes: readonly object[], options: object) => RedisLike;
}

/**
 * Closes a connection for good. A cluster of ioredis that is closed during a refresh of its slots begins the next one a
 * second later, for ever, and the process never ends. So there is no next one.
 */
export function closeClient(client: RedisLike): void {
  client.disconnect();
  if (client.refreshSlotsCache) client.refreshSlotsCache = () => {};
}

/** Removes what a failed command carried from its error: passwords and payloads must not be in a log. */
export function withoutCommand(error: unknown): unknown {
  if (error instanceof Error && "command" in error) delete error.command;
  return error;
}
