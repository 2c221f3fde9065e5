/** Gives the addresses of a host. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/**
 * The resolver of the operating system holds one of the process's four threads for each name, and a name server that
 * does not answer holds it for many seconds. Files and the names of databases need threads too.
 */
const MOST_AT_ONCE = 2;

interface Lookup {
  readonly host: string;
  readonly found: PromiseWithResolvers<readonly string[]>;
  /** Calls that wait for it. */
  waiting: number;
  isRunning: boolean;
}

/** Looks names up two at a time. Calls to one host that come meanwhile share its look-up. */
export class SharedLookups {
  readonly #resolve: Resolve;
  /** In the order in which they were asked for. */
  readonly #lookups = new Map<string, Lookup>();
  #running = 0;

  constructor(resolve: Resolve) {
    this.#resolve = resolve;
  }

  /** The addresses of a host. Rejects as soon as the call is given up; its name is then looked up only for others. */
  async of(host: string, signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted();
    const lookup = this.#lookups.get(host) ?? this.#added(host);
    lookup.waiting += 1;
    const given = Promise.withResolvers<never>();
    const giveUp = () => given.reject(signal.reason);
    signal.addEventListener("abort", giveUp);
    this.#next();
    try {
      return await Promise.race([lookup.found.promise, given.promise]);
    } finally {
      signal.removeEventListener("abort", giveUp);
      lookup.waiting -= 1;
      if (lookup.waiting === 0 && !lookup.isRunning) this.#lookups.delete(host);
    }
  }

  #added(host: string): Lookup {
    const lookup = { host, found: Promise.withResolvers<readonly string[]>(), waiting: 0, isRunning: false };
    // All who wait may have given up when it fails.
    lookup.found.promise.catch(() => {});
    this.#lookups.set(host, lookup);
    return lookup;
  }

  #next(): void {
    for (const lookup of this.#lookups.values()) {
      if (this.#running >= MOST_AT_ONCE) return;
      if (!lookup.isRunning) void this.#run(lookup);
    }
  }

  async #run(lookup: Lookup): Promise<void> {
    const { host, found } = lookup;
    lookup.isRunning = true;
    this.#running += 1;
    try {
      found.resolve(await this.#resolve(host));
    } catch (error) {
      found.reject(error);
    } finally {
      this.#running -= 1;
      this.#lookups.delete(host);
      this.#next();
    }
  }
}
