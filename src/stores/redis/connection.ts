import { CurfewError } from "../../core/errors.ts";
import { createLibrary, type FunctionName, type Library } from "./lua/library.ts";
import { closeClient, type RedisLike, withoutCommand } from "./redis-package.ts";

/** How many replicas must have a write before it is acknowledged, and how long to wait for them. */
export interface Acknowledgement {
  readonly replicas: number;
  readonly within: number;
}

/** Errors of a node that refused a command without running it, also when the client gave up on following them. */
const NOT_RUN =
  /^(Too many Cluster redirections\. Last error: \w*Error: )?(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|LOADING|READONLY)\b/;
const NO_FUNCTION = /function not found/i;
const TRIES = 60;
const PAUSE = 50;
/**
 * Parts of the time to wait for replicas. Each WAIT asks them anew how far they are: one that connected after the last question
 * says so only once a second, and after a failover all do.
 */
const ASKED_AGAIN = [0.1, 0.3, 0.6];

/** Calls the functions of the store, and loads them where they are missing. */
export class RedisConnection {
  readonly #client: RedisLike;
  /** Its commands wait for replicas, so that no other command waits behind them. */
  readonly #patient: RedisLike | undefined;
  readonly #library: Library;
  readonly #acknowledgement: Acknowledgement | undefined;
  readonly #rest: (delay: number) => Promise<void>;

  constructor(
    clients: { readonly client: RedisLike; readonly patient?: RedisLike | undefined },
    options: {
      readonly isCluster: boolean;
      readonly acknowledgement?: Acknowledgement | undefined;
      readonly rest: (delay: number) => Promise<void>;
    },
  ) {
    this.#client = clients.client;
    this.#patient = clients.patient;
    this.#library = createLibrary(options);
    this.#acknowledgement = options.acknowledgement;
    this.#rest = options.rest;
  }

  async call(
    name: FunctionName,
    keys: readonly [string, string],
    value: Buffer,
    isDurable: boolean,
  ): Promise<Buffer> {
    const function_ = this.#library.nameOf(name);
    for (let tries = 1; ; tries++) {
      try {
        return (await (isDurable && this.#acknowledgement
          ? this.#callAndWait(function_, keys, value, this.#acknowledgement)
          : this.#client.callBuffer("fcall", function_, 2, ...keys, value))) as Buffer;
      } catch (error) {
        const message = (error as Error).message;
        if (tries > TRIES) throw failed(name, error);
        if (NO_FUNCTION.test(message)) await this.load();
        else if (NOT_RUN.test(message)) await this.#rest(PAUSE);
        else {
          // Its node may be gone: look for the new one before the next call.
          this.#client.refreshSlotsCache?.();
          this.#patient?.refreshSlotsCache?.();
          throw failed(name, error);
        }
      }
    }
  }

  /** Loads the functions into every master. A replica gets them from its master. */
  async load(): Promise<void> {
    const nodes = this.#client.nodes?.("master") ?? [this.#client];
    await Promise.all(
      nodes.map(async (node) => {
        try {
          await node.call("function", "load", this.#library.code);
        } catch (error) {
          // Another process was first, or this node has just become a replica.
          if (!/already exists|READONLY/i.test((error as Error).message)) throw error;
        }
      }),
    );
  }

  async #callAndWait(
    function_: string,
    keys: readonly [string, string],
    value: Buffer,
    { replicas, within }: Acknowledgement,
  ): Promise<unknown> {
    const pipeline = (this.#patient ?? this.#client).pipeline();
    pipeline.callBuffer("fcall", function_, 2, ...keys, value, "1");
    for (const part of ASKED_AGAIN) pipeline.call("wait", replicas, Math.round(within * part));
    const [called, ...waits] = (await pipeline.exec()) ?? [];
    const waited = waits.at(-1);
    if (called?.[0]) throw called[0];
    if (!called || !waited) throw new Error("the pipeline was not run");
    if (waited[0]) throw waited[0];
    const reached = Number(waited[1]);
    if (reached < replicas)
      throw new Error(`${reached} of ${replicas} replicas had the write within ${within} ms`);
    return called[1];
  }

  close(): void {
    closeClient(this.#client);
    if (this.#patient) closeClient(this.#patient);
  }
}

function failed(name: string, cause: unknown): CurfewError {
  withoutCommand(cause);
  const message = (cause as Error).message;
  const fix = /^OOM/.test(message)
    ? "; the server has reached maxmemory: raise it, or let jobs end and be pruned"
    : "";
  return new CurfewError("store_failed", `${name}: ${message}${fix}`, { cause });
}
