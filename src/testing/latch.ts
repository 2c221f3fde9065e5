/** A promise and the means to settle it from outside. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
  reject(reason: unknown): void;
}

export function createDeferred<Value = void>(): Deferred<Value> {
  let resolve!: (value: Value) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/**
 * A place where the code under test waits until the test lets it go on, so that a test waits for events and never
 * sleeps: `await limit.reached()` in the test, `await limit.pass()` in the code, `limit.open()` in the test.
 */
export interface Latch {
  /** Waits until the limit is open; one that is open lets everybody through. */
  pass(): Promise<void>;
  /** Resolves when so many have come to the limit, those who went through included. */
  reached(count?: number): Promise<void>;
  open(): void;
}

export function createLatch(): Latch {
  const opened = createDeferred();
  const watchers = new Set<{ readonly count: number; readonly arrived: Deferred<void> }>();
  let arrivals = 0;
  return {
    pass() {
      arrivals += 1;
      for (const watcher of watchers) {
        if (arrivals < watcher.count) continue;
        watchers.delete(watcher);
        watcher.arrived.resolve();
      }
      return opened.promise;
    },
    async reached(count = 1) {
      if (arrivals >= count) return;
      const arrived = createDeferred();
      watchers.add({ count, arrived });
      await arrived.promise;
    },
    open: () => opened.resolve(),
  };
}
