/** A promise, and the functions that settle it from outside. */
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
 * A point where the code under test waits until the test lets it continue, so that a test waits for events and never
 * sleeps: `await latch.reached()` in the test, `await latch.pass()` in the code, `latch.open()` in the test.
 */
export interface Latch {
  /** Waits until the latch is open. */
  pass(): Promise<void>;
  /** Resolves when `count` callers have reached the latch, including those that passed. */
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
